// SPDX-License-Identifier: Apache-2.0
/// \file
/// Artifacts round-trip; every damaged or malformed one is refused.
#include "lacis/Target/Artifact.h"

#include <gtest/gtest.h>

using namespace lacis;

static Artifact makeArtifact() {
  Artifact artifact;
  artifact.target = "cuda:sm_90a";
  artifact.kind = "ptx";
  Artifact::Argument storage, dim, output, workspace;
  storage.kind = "storage";
  storage.name = "pos1";
  storage.part = "ell";
  dim.kind = "dim";
  dim.operand = 1;
  output.kind = "output";
  workspace.kind = "workspace";
  artifact.args = {storage, dim, output, workspace};
  Artifact::Tensor pos;
  pos.part = "ell";
  pos.name = "pos1";
  pos.dtype = "i32";
  pos.shaped = true;
  pos.dims = {{{{0, 16, 1}}, 1}};
  artifact.sizes = {{"i", 8, -1}};
  artifact.tensors = {pos};
  artifact.output = {"f32", {{{1, 16, 2}, {-1, 1, 3}}}};
  artifact.workspace = {{{-1, 1, 64}}};
  Artifact::Launch launch;
  launch.entry = "linear_0";
  launch.grid = {{{1, 32, 1}}, {}, {}};
  launch.block = {128, 1, 1};
  launch.shared = 1024;
  artifact.launches = {launch};
  artifact.code = std::string("code\0with zeros", 15);
  return artifact;
}

/// `makeArtifact`, which also reads the array of argument 0 in boxes.
static Artifact makeBoxed() {
  Artifact artifact = makeArtifact();
  Artifact::Argument map;
  map.kind = "tensor_map";
  artifact.args.push_back(map);
  Artifact::TensorMap box;
  box.shape = {{{-1, 1, 64}}, {{1, 1, 1, -1}}};
  box.box = {64, 256};
  box.swizzle = 128;
  box.dtype = "bf16";
  artifact.tensorMaps = {box};
  return artifact;
}

static bool refuses(llvm::StringRef bytes) {
  llvm::Expected<Artifact> artifact = Artifact::parse(bytes);
  if (artifact)
    return false;
  llvm::consumeError(artifact.takeError());
  return true;
}

static std::string problem(const Artifact &artifact) { return llvm::toString(artifact.verify()); }

TEST(Artifact, RoundTrip) {
  Artifact artifact = makeArtifact();
  std::string bytes = artifact.serialise();
  llvm::Expected<Artifact> read = Artifact::parse(bytes);
  ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
  EXPECT_EQ(read->serialise(), bytes);
  EXPECT_EQ(read->code, artifact.code);
  EXPECT_EQ(read->args[0].part, "ell");
  EXPECT_EQ(read->output.shape[0][0].div, 16);
  EXPECT_EQ(read->sizes[0].multiple, 8);
  EXPECT_EQ(read->tensors[0].part, "ell");
  EXPECT_EQ(read->tensors[0].dims[0].plus, 1);
}

TEST(Artifact, TensorMapsRoundTrip) {
  std::string bytes = makeBoxed().serialise();
  llvm::Expected<Artifact> read = Artifact::parse(bytes);
  ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
  EXPECT_EQ(read->serialise(), bytes);
  EXPECT_EQ(read->tensorMaps[0].box[1], 256);
  EXPECT_EQ(read->tensorMaps[0].shape[1][0].add, -1);
}

TEST(Artifact, MalformedTensorMapsAreRefused) {
  Artifact artifact = makeBoxed();
  artifact.tensorMaps[0].pointer = 1;
  EXPECT_EQ(problem(artifact), "malformed artifact: a tensor map of argument 1, which is no pointer");
  artifact = makeBoxed();
  artifact.tensorMaps[0].box = {64, 257};
  EXPECT_EQ(problem(artifact), "malformed artifact: a tensor map with a box of 257");
  artifact = makeBoxed();
  artifact.tensorMaps[0].swizzle = 48;
  EXPECT_EQ(problem(artifact), "malformed artifact: a tensor map with lines of 48 bytes");
  artifact = makeBoxed();
  artifact.args.back().index = 1;
  EXPECT_EQ(problem(artifact), "malformed artifact: tensor map 1 of 1");
}

TEST(Artifact, EveryTruncationIsRefused) {
  std::string bytes = makeArtifact().serialise();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_TRUE(refuses(llvm::StringRef(bytes).take_front(size))) << size;
}

TEST(Artifact, EveryFlippedBitIsRefused) {
  std::string bytes = makeArtifact().serialise();
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] ^= char(1 << (bit % 8));
    EXPECT_TRUE(refuses(damaged)) << bit;
  }
}

TEST(Artifact, MalformedRecordsAreRefused) {
  auto with = [](auto change) {
    Artifact artifact = makeArtifact();
    change(artifact);
    return problem(artifact);
  };
  EXPECT_EQ(problem(makeArtifact()), "");
  EXPECT_NE(with([](Artifact &a) { a.target = "cuda:"; }), "");
  EXPECT_NE(with([](Artifact &a) { a.target = "../x"; }), "");
  EXPECT_NE(with([](Artifact &a) { a.indexBits = 33; }), "");
  EXPECT_NE(with([](Artifact &a) { a.launches.clear(); }), "");
  EXPECT_NE(with([](Artifact &a) { a.launches[0].entry = "a b"; }), "");
  EXPECT_NE(with([](Artifact &a) { a.launches[0].block = {2048, 1, 1}; }), "");
  EXPECT_NE(with([](Artifact &a) { a.launches[0].block = {512, 4, 1}; }), "");
  EXPECT_NE(with([](Artifact &a) { a.launches[0].grid.pop_back(); }), "");
  EXPECT_NE(with([](Artifact &a) { a.launches[0].grid[0][0].arg = 0; }), "");
  EXPECT_NE(with([](Artifact &a) { a.launches[0].grid[0][0].arg = 4; }), "");
  EXPECT_NE(with([](Artifact &a) { a.launches[0].grid[0][0].div = 0; }), "");
  EXPECT_NE(with([](Artifact &a) { a.launches[0].units = {{-1, 1, 1}}; }), "");
  EXPECT_NE(with([](Artifact &a) { a.args[0].kind = "tensor"; }), "");
  EXPECT_NE(with([](Artifact &a) { a.args[1].operand = -2; }), "");
  EXPECT_NE(with([](Artifact &a) { a.args[3].index = 1; }), "");
  EXPECT_NE(with([](Artifact &a) { a.sizes[0].multiple = 0; }), "");
  EXPECT_NE(with([](Artifact &a) { a.tensors[0].dims[0].size[0].arg = 1; }), "");
  EXPECT_NE(with([](Artifact &a) { a.tensors[0].dims[0].size[0].div = 0; }), "");
  EXPECT_NE(with([](Artifact &a) { a.tensors[0].operand = -1; }), "");
}

TEST(Artifact, HeadersAreReadStrictly) {
  auto accepts = [](std::string text, llvm::StringRef from, llvm::StringRef to) {
    size_t at = text.find(from.str());
    EXPECT_NE(at, std::string::npos) << from.str();
    text.replace(at, from.size(), to.str());
    llvm::Expected<Artifact> artifact = Artifact::parseHeader(text);
    bool accepted = bool(artifact);
    llvm::consumeError(artifact.takeError());
    return accepted;
  };
  std::string header = makeArtifact().header();
  EXPECT_TRUE(accepts(header, "ptx", "cubin"));
  EXPECT_FALSE(accepts(header, "\"format_version\":3", "\"format_version\":1"));
  EXPECT_FALSE(accepts(header, "\"index_bits\":32", "\"index_bits\":\"32\""));
  EXPECT_FALSE(accepts(header, "\"index_bits\":32", "\"index_bits\":32,\"more\":1"));
  EXPECT_FALSE(accepts(header, "\"kind\":\"dim\"", "\"kind\":7"));
  EXPECT_FALSE(accepts(header, "\"shared\":1024", "\"shared\":1e30"));
  EXPECT_FALSE(accepts(header, "{", "["));
}
