// SPDX-License-Identifier: Apache-2.0
// The extent of a level: how many positions lie under one parent.

#ifndef LACIS_EXTENT_INTERFACE_TD
#define LACIS_EXTENT_INTERFACE_TD

include "mlir/IR/OpBase.td"

def Lacis_ExtentInterface : AttrInterface<"ExtentInterface"> {
  let cppNamespace = "::lacis";
  let description = [{
    What a pass may ask an extent. Methods with an answer here are optional; a pass that needs one which is
    absent refuses with the level's name.
  }];
  let methods = [
    InterfaceMethod<"The name in the grammar.", "std::string", "getMnemonic", (ins),
      [{ return ConcreteAttr::getMnemonic().str(); }]>,
    InterfaceMethod<"The arguments as they are written, in order.", "void", "printArguments",
      (ins "::lacis::KindArguments &":$arguments)>,
    InterfaceMethod<"Refuses a coordinate that makes no sense under this extent.", "::llvm::LogicalResult",
      "verifyCoordinate", (ins "::lacis::CoordinateInterface":$coordinate,
                           "::llvm::function_ref<::mlir::InFlightDiagnostic()>":$emitError),
      "", [{ return ::mlir::success(); }]>,
    InterfaceMethod<"The stored arrays.", "::llvm::SmallVector<::lacis::BufferSpec>", "getBuffers", (ins),
      "", [{ return {}; }]>,
    InterfaceMethod<"The name of the operation that defines the kind; null where none does.",
      "::mlir::FlatSymbolRefAttr", "getDefinition", (ins), "", [{ return {}; }]>,
    InterfaceMethod<"The kind that knows what the operation says of it.", "::mlir::Attribute", "withFacts",
      (ins "::mlir::DictionaryAttr":$facts), "", [{ return $_attr; }]>,
    InterfaceMethod<"Loops over this kind can be generated.", "bool", "hasCode", (ins), "", [{ return false; }]>,
    InterfaceMethod<"A packer tells its entries, so that loops walk a companion index where they cannot walk itself.",
      "bool", "hasCompanion", (ins), "", [{ return $_attr.hasCode(); }]>,
    InterfaceMethod<"Positions under each parent when the format says so.", "std::optional<int64_t>", "getTrip", (ins),
      "", [{ return std::nullopt; }]>,
    InterfaceMethod<"A limit of positions under a parent exists, so that entries may not fit.", "bool", "hasCapacity",
      (ins), "", [{ return false; }]>,
    InterfaceMethod<"Every coordinate has a position.", "bool", "coversDomain", (ins), "", [{ return false; }]>,
    InterfaceMethod<"Values alone have its coordinates: the levels below are one pattern, whose positions do not see it.",
      "bool", "sharesPattern", (ins), "", [{ return false; }]>,
    InterfaceMethod<"One position under each parent, at the parent's own position.", "bool", "followsParent", (ins),
      "", [{ return false; }]>,
    InterfaceMethod<"Positions are slots of another order of the same values.", "bool", "isLink", (ins),
      "", [{ return false; }]>,
    InterfaceMethod<"Padding fills the end of every fibre.", "bool", "isPadded", (ins), "", [{ return false; }]>,
    InterfaceMethod<"Positions [lo, hi) under `parent`.", "std::pair<::mlir::Value, ::mlir::Value>", "emitBounds",
      (ins "::lacis::LevelBuilder &":$builder, "::mlir::Value":$parent), "", [{ return {}; }]>,
    InterfaceMethod<"The parent of a position can be told from the position.", "bool", "hasOwner", (ins), "",
      [{ return false; }]>,
    InterfaceMethod<"The last of `parents` parents whose positions do not begin after `position`.", "::mlir::Value",
      "emitOwner", (ins "::lacis::LevelBuilder &":$builder, "::mlir::Value":$position, "::mlir::Value":$parents), "",
      [{ return {}; }]>,
    InterfaceMethod<"Number of positions under `parents` parents.", "::mlir::Value", "emitSlots",
      (ins "::lacis::LevelBuilder &":$builder, "::mlir::Value":$parents), "", [{ return {}; }]>,
    InterfaceMethod<"The position of a coordinate, where every coordinate has one.", "::mlir::Value", "emitLocate",
      (ins "::lacis::LevelBuilder &":$builder, "::mlir::Value":$parent, "::mlir::Value":$crd), "", [{ return {}; }]>,
  ];
}

#endif // LACIS_EXTENT_INTERFACE_TD
