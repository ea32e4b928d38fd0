// SPDX-License-Identifier: Apache-2.0
// An extent and a coordinate that live outside of the core's folders.

#ifndef OUTSIDE_LEVELS_TD
#define OUTSIDE_LEVELS_TD

include "lacis/Dialect/Lacis/IR/LevelKindBase.td"

def Outside_EvenExtent : Lacis_Extent<"Even", "even",
    ["getBuffers", "hasCode", "isPadded", "emitBounds", "emitSlots"]> {
  let summary = "Like `var`, but every segment begins at an even position.";
  let parameters = (ins "::mlir::IntegerType":$pos);
}

def Outside_MirroredCoordinate : Lacis_Coordinate<"Mirrored", "mirrored",
    ["getBuffers", "hasCode", "isStored", "isPadded", "emitCoordinate"]> {
  let summary = "Coordinates counted from the far end of the axis.";
  let parameters = (ins "bool":$pad, "::mlir::IntegerType":$crd);
}

def Outside_RunsCoordinate : Lacis_Coordinate<"Runs", "runs",
    ["getBuffers", "hasCode", "isStateless", "emitOpen", "emitNext"]> {
  let summary = "Entries in runs of neighbours: a bit for each that begins one, and where the runs begin.";
}

#endif // OUTSIDE_LEVELS_TD
