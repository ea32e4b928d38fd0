// SPDX-License-Identifier: Apache-2.0
/// \file
/// Artifacts round-trip; every damaged one is refused.
#include "Artifacts.h"

#include <gtest/gtest.h>

using namespace lacis;

static bool refuses(llvm::StringRef bytes) {
  llvm::Expected<Artifact> artifact = Artifact::parse(bytes);
  if (artifact)
    return false;
  llvm::consumeError(artifact.takeError());
  return true;
}

TEST(Artifact, RoundTrip) {
  Artifact artifact = makeArtifact();
  std::string bytes = artifact.serialise();
  llvm::Expected<Artifact> read = Artifact::parse(bytes);
  ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
  EXPECT_EQ(read->serialise(), bytes);
  EXPECT_EQ(read->code, artifact.code);
  EXPECT_EQ(read->args[0].derived, 0);
  EXPECT_EQ(read->derived[0].function, "layout");
  EXPECT_EQ(read->derived[0].part, "ell");
  EXPECT_EQ(read->derived[0].source, -1);
  EXPECT_EQ(read->derived[0].parameters.getInteger("capacity"), 12);
  EXPECT_EQ(read->derived[0].arrays[0].sizes[0].evaluate({11}), 8);
  EXPECT_FALSE(read->derived[0].arrays[1].shaped);
  EXPECT_EQ(read->output.shape[0].of[0].number, 16);
  EXPECT_EQ(read->sizes[0].multiple, 8);
  EXPECT_EQ(read->tensors[0].derived, 0);
  EXPECT_EQ(read->tensors[0].dims[0].number, 1);
}

TEST(Artifact, TensorMapsRoundTrip) {
  std::string bytes = makeBoxed().serialise();
  llvm::Expected<Artifact> read = Artifact::parse(bytes);
  ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
  EXPECT_EQ(read->serialise(), bytes);
  EXPECT_EQ(read->tensorMaps[0].box[1], 256);
  EXPECT_EQ(read->tensorMaps[0].shape[1].number, -1);
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

TEST(Size, IsComputedFromNumbers) {
  Size tiles = Size::ceilDiv(Size::sum(Size::argument(0), -1), 4), few = Size::within(Size::argument(1), 2, 5);
  Size all = Size::product({few, tiles, Size::constant(3)});
  EXPECT_EQ(tiles.evaluate({9, 0}), 2);
  EXPECT_EQ(tiles.evaluate({10, 0}), 3);
  EXPECT_EQ(all.evaluate({9, 5}), 6);
  EXPECT_EQ(all.evaluate({9, 2}), 0);
  EXPECT_EQ(all.evaluate({9, 6}), 0);
  EXPECT_EQ(Size::within(Size::argument(0), 2, -1).evaluate({1000}), 1);
  EXPECT_EQ(Size().evaluate({}), 1);
}
