// SPDX-License-Identifier: Apache-2.0
// The coordinate of a level: how the coordinate of a position is known.

#ifndef LACIS_COORDINATE_INTERFACE_TD
#define LACIS_COORDINATE_INTERFACE_TD

include "mlir/IR/OpBase.td"

def Lacis_CoordinateInterface : AttrInterface<"CoordinateInterface"> {
  let cppNamespace = "::lacis";
  let description = [{
    What a pass may ask a coordinate. Methods with an answer here are optional.
  }];
  let methods = [
    InterfaceMethod<"The name in the grammar.", "std::string", "getMnemonic", (ins),
      [{ return ConcreteAttr::getMnemonic().str(); }]>,
    InterfaceMethod<"The arguments as they are written, in order.", "void", "printArguments",
      (ins "::lacis::KindArguments &":$arguments)>,
    InterfaceMethod<"Refuses an extent, or digits, that the coordinate cannot stand with.", "::llvm::LogicalResult",
      "verifyUnder", (ins "::mlir::Attribute":$extent, "::llvm::ArrayRef<::lacis::Digit>":$digits,
                          "::llvm::function_ref<::mlir::InFlightDiagnostic()>":$emitError),
      "", [{ return ::mlir::success(); }]>,
    InterfaceMethod<"The stored arrays.", "::llvm::SmallVector<::lacis::BufferSpec>", "getBuffers", (ins),
      "", [{ return {}; }]>,
    InterfaceMethod<"Loops over this kind can be generated.", "bool", "hasCode", (ins), "", [{ return false; }]>,
    InterfaceMethod<"The coordinate is the place within the fibre.", "bool", "isImplicit", (ins), "", [{ return false; }]>,
    InterfaceMethod<"One stored number for every position.", "bool", "isStored", (ins), "", [{ return false; }]>,
    InterfaceMethod<"The type of its coordinates in an array that lists them; null where it says none.",
      "::mlir::IntegerType", "getListedType", (ins), "", [{ return {}; }]>,
    InterfaceMethod<"Coordinates ascend within a fibre.", "bool", "isOrdered", (ins), "", [{ return true; }]>,
    InterfaceMethod<"No coordinate occurs twice in a fibre.", "bool", "isUnique", (ins), "", [{ return true; }]>,
    InterfaceMethod<"Positions may hold no entry.", "bool", "isPadded", (ins), "", [{ return false; }]>,
    InterfaceMethod<"A coordinate is known without the ones before it.", "bool", "isStateless", (ins),
      "", [{ return true; }]>,
    InterfaceMethod<"The coordinate at `pos`, and whether it is an entry.", "::lacis::Coordinate", "emitCoordinate",
      (ins "::lacis::LevelBuilder &":$builder, "::mlir::Value":$lo, "::mlir::Value":$pos), "", [{ return {}; }]>,
    InterfaceMethod<"What the first position under `parent`, `lo`, must know; nothing where it is stateless.",
      "::llvm::SmallVector<::mlir::Value>", "emitOpen",
      (ins "::lacis::LevelBuilder &":$builder, "::mlir::Value":$parent, "::mlir::Value":$lo), "", [{ return {}; }]>,
    InterfaceMethod<"The same as `emitCoordinate`, with what the position before it left, in a walk in order.",
      "::lacis::Coordinate", "emitNext",
      (ins "::lacis::LevelBuilder &":$builder, "::mlir::Value":$lo, "::mlir::Value":$pos, "::mlir::ValueRange":$state),
      "", [{ return $_attr.emitCoordinate(builder, lo, pos); }]>,
    InterfaceMethod<"A coordinate can be sought among positions.", "bool", "canSeek", (ins), "", [{ return false; }]>,
    InterfaceMethod<"The first position in [lo, hi) whose coordinate is at least `crd`, or `hi`.", "::mlir::Value",
      "emitSeek", (ins "::lacis::LevelBuilder &":$builder, "::mlir::Value":$lo, "::mlir::Value":$hi,
                       "::mlir::Value":$crd), "", [{ return {}; }]>,
    InterfaceMethod<"A coordinate can be found under a parent, whatever lies before it.", "bool", "canFind", (ins), "",
      [{ return false; }]>,
    InterfaceMethod<"The position of `crd` under `parent`, and whether it has one.",
      "std::pair<::mlir::Value, ::mlir::Value>", "emitFind",
      (ins "::lacis::LevelBuilder &":$builder, "::mlir::Value":$parent, "::mlir::Value":$crd), "", [{ return {}; }]>,
    InterfaceMethod<"An i32 whose bit c says that coordinate c, of at most 32, is stored under `parent`.",
      "::mlir::Value", "emitPresence", (ins "::lacis::LevelBuilder &":$builder, "::mlir::Value":$parent),
      "", [{ return {}; }]>,
  ];
}

#endif // LACIS_COORDINATE_INTERFACE_TD
