// SPDX-License-Identifier: Apache-2.0
/// \file
/// Small artifacts that tests change and read.
#ifndef LACIS_TEST_UNIT_TARGET_ARTIFACTS_H
#define LACIS_TEST_UNIT_TARGET_ARTIFACTS_H

#include "lacis/Target/Artifact.h"

namespace lacis {

inline Artifact makeArtifact() {
  Artifact artifact;
  artifact.target = "cuda:sm_90a";
  artifact.kind = "ptx";
  Artifact::Argument storage, dim, output, workspace;
  storage.kind = "derived";
  storage.name = "pos1";
  storage.derived = 0;
  dim.kind = "dim";
  dim.operand = 1;
  output.kind = "output";
  workspace.kind = "workspace";
  artifact.args = {storage, dim, output, workspace};
  Artifact::Derived layout;
  layout.function = "layout";
  layout.parameters = llvm::json::Object{{"capacity", 12}, {"format", "#lacis.format<>"}};
  layout.part = "ell";
  layout.arrays = {{"pos1", "i32", true, {Size::min({Size::argument(0), Size::constant(8)})}}, {"words", "i32", false, {}}};
  artifact.derived = {layout};
  Artifact::Tensor pos;
  pos.derived = 0;
  pos.name = "pos1";
  pos.dtype = "i32";
  pos.shaped = true;
  pos.dims = {Size::sum(Size::ceilDiv(Size::argument(0), 16), 1)};
  artifact.sizes = {{"i", 8, -1}};
  artifact.tensors = {pos};
  Size tiles = Size::ceilDiv(Size::argument(1), 16);
  artifact.output = {"f32", {Size::product({tiles, Size::constant(6)})}};
  artifact.workspace = {Size::within(Size::argument(1), 0, 64)};
  Artifact::Launch launch;
  launch.entry = "linear_0";
  launch.grid = {Size::ceilDiv(Size::argument(1), 32), {}, {}};
  launch.block = {128, 1, 1};
  launch.shared = 1024;
  launch.waits = true;
  artifact.launches = {launch};
  artifact.code = std::string("code\0with zeros", 15);
  return artifact;
}

/// `makeArtifact`, which also reads the array of argument 0 in boxes.
inline Artifact makeBoxed() {
  Artifact artifact = makeArtifact();
  Artifact::Argument map;
  map.kind = "tensor_map";
  artifact.args.push_back(map);
  Artifact::TensorMap box;
  box.shape = {Size::constant(64), Size::sum(Size::argument(1), -1)};
  box.box = {64, 256};
  box.swizzle = 128;
  box.dtype = "bf16";
  artifact.tensorMaps = {box};
  return artifact;
}

} // namespace lacis

#endif // LACIS_TEST_UNIT_TARGET_ARTIFACTS_H
