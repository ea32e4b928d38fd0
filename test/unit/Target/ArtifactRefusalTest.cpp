// SPDX-License-Identifier: Apache-2.0
/// \file
/// What an artifact's record may not say, each with its message.
#include "Artifacts.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

#include <gtest/gtest.h>

using namespace lacis;

template <typename Change> static std::string problem(Artifact artifact, Change change) {
  change(artifact);
  std::string text = llvm::toString(artifact.verify());
  llvm::StringRef rest = text;
  EXPECT_TRUE(rest.empty() || rest.consume_front("malformed artifact: ")) << text;
  return rest.str();
}

TEST(ArtifactRefusal, Records) {
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.indexBits = 32; }), "");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.target = "cuda:"; }), "target 'cuda:'");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.target = "../x"; }), "target '../x'");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.kind = "p t x"; }), "code of kind 'p t x'");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.indexBits = 33; }), "index_bits 33");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.packed = 64; }), "packed operand 64");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.output.dtype = ""; }), "output of dtype ''");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.launches.clear(); }), "no launches");
}

TEST(ArtifactRefusal, Arguments) {
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.args[0].kind = "tensor"; }), "argument of kind 'tensor'");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.args[1].operand = -2; }), "dim of operand -2");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.args[1].dim = 64; }), "dim of dimension 64");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.args[1].operand = -1, a.args[1].dim = 1; }),
            "dim 1 of an output of rank 1");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.args[1].strided = true; }), "dim that is strided");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.args[3].index = 1; }), "workspace 1 of 1");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.args[0].kind = "bytes", a.args[0].index = 4; }),
            "bytes of argument 4 of 4");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.args[0].derived = 1; }), "derived of step 1 of 1");
}

TEST(ArtifactRefusal, Derived) {
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.derived[0].function = ""; }), "a derived array of function ''");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.derived[0].source = 0; }), "step 0 is made from step 0");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.derived[0].operand = 64; }), "step 0 is made from operand 64");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.tensors[0].derived = 1; }), "an array 'pos1' of step 1 of 1");
}

TEST(ArtifactRefusal, Sizes) {
  auto ofGrid = [](Size size) {
    return problem(makeArtifact(), [&](Artifact &a) { a.launches[0].grid[0] = std::move(size); });
  };
  EXPECT_EQ(ofGrid(Size::constant(-1)), "a size of -1");
  EXPECT_EQ(ofGrid(Size::ceilDiv(Size::argument(1), 0)), "a size divided by 0");
  EXPECT_EQ(ofGrid(Size::within(Size::argument(1), -2, -1)), "a condition between -2 and -1");
  EXPECT_EQ(ofGrid(Size::argument(4)), "a size of argument 4 of 4");
  EXPECT_EQ(ofGrid(Size::argument(0)), "a size of argument 0, which is no dimension");
  EXPECT_EQ(ofGrid(Size::product({Size::argument(0)})), "a size of argument 0, which is no dimension");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.sizes[0].multiple = 0; }), "size 'i' of -1, a multiple of 0");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.sizes[0].most = 1; }), "size 'i' below number 1 of 1");
}

TEST(ArtifactRefusal, Tensors) {
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.tensors[0].operand = 64; }),
            "a tensor of operand 64 and rank 1");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.tensors[0].copies = 2; }),
            "2 dimensions of copies in a tensor of rank 1");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.tensors[0].operand = -1; }), "an array 'pos1' of the output");
  EXPECT_EQ(problem(makeArtifact(),
                    [](Artifact &a) { a.tensors[0].operand = -1, a.tensors[0].name = "", a.tensors[0].dims.clear(); }),
            "an output of 0 and of 1 dimensions");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.tensors[0].dims[0] = Size::argument(1); }),
            "a dimension of size 1 of 1");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.tensors[0].dims[0] = Size::ceilDiv(Size::argument(0), 0); }),
            "a size divided by 0");
}

TEST(ArtifactRefusal, TensorMaps) {
  EXPECT_EQ(problem(makeBoxed(), [](Artifact &a) { a.args.back().index = 1; }), "tensor map 1 of 1");
  EXPECT_EQ(problem(makeBoxed(), [](Artifact &a) { a.tensorMaps[0].pointer = 5; }), "a tensor map of argument 5 of 5");
  EXPECT_EQ(problem(makeBoxed(), [](Artifact &a) { a.tensorMaps[0].pointer = 1; }),
            "a tensor map of argument 1, which is no pointer");
  EXPECT_EQ(problem(makeBoxed(), [](Artifact &a) { a.tensorMaps[0].box = {64}; }),
            "a tensor map of rank 2 with a box of rank 1");
  auto ofStrided = [](Artifact &a) {
    a.args[0].kind = "operand", a.args[0].strided = true;
    a.tensors[0].derived = -1, a.tensors[0].name = "", a.tensors[0].dims.resize(3, Size::constant(1));
  };
  EXPECT_EQ(problem(makeBoxed(), ofStrided), "a tensor map of rank 2 of an operand that is strided, of rank 3");
  EXPECT_EQ(problem(makeBoxed(), [](Artifact &a) { a.tensorMaps[0].box = {64, 257}; }),
            "a tensor map with a box of 257");
  EXPECT_EQ(problem(makeBoxed(), [](Artifact &a) { a.tensorMaps[0].swizzle = 48; }),
            "a tensor map with lines of 48 bytes");
}

TEST(ArtifactRefusal, Launches) {
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.launches[0].entry = "a b"; }), "entry 'a b'");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.launches[0].grid.clear(); }),
            "launch 'linear_0' has a block or shared memory, and no grid");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.launches[0].grid.pop_back(); }),
            "launch 'linear_0' needs three extents of grid and of block");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.launches[0].units = Size(); }),
            "launch 'linear_0' has both a grid and units");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.launches[0].block = {2048, 1, 1}; }),
            "a block of 2048 threads");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.launches[0].block = {512, 4, 1}; }), "a block of 2048 threads");
  EXPECT_EQ(problem(makeArtifact(), [](Artifact &a) { a.launches[0].shared = -1; }), "-1 bytes of shared memory");
}

/// What the reader says of `header` with one piece of its text replaced.
static std::string reading(const std::string &from, const std::string &to) {
  std::string text = makeBoxed().header();
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  llvm::Expected<Artifact> artifact = Artifact::parseHeader(text);
  return artifact ? "" : llvm::toString(artifact.takeError());
}

TEST(ArtifactRefusal, Headers) {
  EXPECT_EQ(reading("ptx", "cubin"), "");
  EXPECT_NE(reading("{", "[").find("Expected , or ] after array element"), std::string::npos);
  EXPECT_EQ(reading("\"format_version\":5", "\"format_version\":1"),
            "artifact of format version 1; this build reads version 5");
  EXPECT_EQ(reading("\"index_bits\":32,", ""), "artifact has no key 'index_bits'");
  EXPECT_EQ(reading("\"index_bits\":32", "\"index_bits\":\"32\""), "artifact.index_bits is no integer");
  EXPECT_EQ(reading("\"index_bits\":32", "\"index_bits\":32,\"more\":1"), "artifact has an unknown key 'more'");
  EXPECT_EQ(reading("\"kind\":\"dim\"", "\"kind\":7"), "artifact.args[1].kind is no string");
  EXPECT_EQ(reading("\"shared\":1024", "\"shared\":1e30"), "artifact.launches[0].shared is no integer");
  EXPECT_EQ(reading("\"waits\":true", "\"waits\":1"), "artifact.launches[0].waits is no boolean");
  EXPECT_EQ(reading("\"zero\":false", "\"zero\":0"), "artifact.output.zero is no boolean");
  EXPECT_EQ(reading("\"parameters\":{", "\"parameters\":3,\"more\":{"), "artifact.derived[0].parameters is no object");
  EXPECT_EQ(reading("\"sizes\":[{\"multiple", "\"sizes\":[3,{\"multiple"), "artifact.sizes[0] is no object");
  EXPECT_EQ(reading("\"steps\":[]", "\"steps\":{}"), "artifact.steps is no list");
  EXPECT_EQ(reading("\"steps\":[]", "\"steps\":[3]"), "artifact.steps[0] is no string");
  EXPECT_EQ(reading("\"box\":[64", "\"box\":[\"64\""), "artifact.tensor_maps[0].box[0] is no integer");
  EXPECT_EQ(reading("\"product\":[", "\"product\":[[],"), "artifact.output.shape[0].product[0] is no size");
  EXPECT_EQ(reading("\"within\":[", "\"within\":[3,"), "artifact.workspace[0].bytes.within is no size");
  EXPECT_EQ(reading("},0,64]", "},\"0\",64]"), "artifact.workspace[0].bytes.within[1] is no size");
  EXPECT_EQ(reading("\"ceildiv\"", "\"floordiv\""), "artifact.launches[0].grid[0] is no size");
}

/// What the reader says of bytes whose digest is made anew.
static std::string reading(llvm::StringRef bytes) {
  auto hash = llvm::SHA256::hash(llvm::arrayRefFromStringRef(bytes));
  std::string whole = bytes.str() + std::string(reinterpret_cast<const char *>(hash.data()), hash.size());
  llvm::Expected<Artifact> artifact = Artifact::parse(whole);
  return artifact ? "" : llvm::toString(artifact.takeError());
}

TEST(ArtifactRefusal, Bytes) {
  constexpr size_t digest = 32, header = 16;
  std::string bytes = makeArtifact().serialise();
  llvm::StringRef content = llvm::StringRef(bytes).drop_back(digest);
  EXPECT_EQ(reading(content), "");
  EXPECT_EQ(reading("lacis"), "not an artifact");
  EXPECT_EQ(llvm::toString(Artifact::parse(content.take_front(header)).takeError()), "artifact cut short at 16 bytes");
  EXPECT_EQ(llvm::toString(Artifact::parse(content).takeError()),
            "damaged artifact: the digest does not agree with the content");
  EXPECT_EQ(reading(content.take_front(header)), "artifact with a header longer than itself");
  EXPECT_EQ(reading(content.take_front(header + makeArtifact().header().size())), "artifact without code");
}
