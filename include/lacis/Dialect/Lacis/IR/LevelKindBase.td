// SPDX-License-Identifier: Apache-2.0
// What the declaration of a level kind builds on.

#ifndef LACIS_LEVEL_KIND_BASE_TD
#define LACIS_LEVEL_KIND_BASE_TD

include "lacis/Dialect/Lacis/IR/LacisDialect.td"
include "lacis/Dialect/Lacis/IR/CoordinateInterface.td"
include "lacis/Dialect/Lacis/IR/ExtentInterface.td"

/// An attribute that stands in the grammar under its mnemonic. `methods` are those of the interfaces' optional
/// methods that the kind has; besides, it defines `fromArguments` and `printArguments`.
class Lacis_Kind<string name, string kindMnemonic, list<Trait> traits> : Lacis_Attr<name, kindMnemonic, traits> {
  let hasCustomAssemblyFormat = 1;
  code kindDeclaration = [{}];
  let extraClassDeclaration = [{
    /// The kind with these arguments; takes those it knows, null after an error.
    static ::mlir::Attribute fromArguments(::mlir::MLIRContext *context, ::lacis::KindArguments &arguments,
                                           ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError);
  }] # kindDeclaration;
  let extraClassDefinition = [{
    ::mlir::Attribute $cppClass::parse(::mlir::AsmParser &parser, ::mlir::Type) {
      return ::lacis::parseKindAttribute(parser, getMnemonic(), &$cppClass::fromArguments);
    }
    void $cppClass::print(::mlir::AsmPrinter &printer) const {
      ::lacis::KindArguments arguments(getContext());
      printArguments(arguments);
      arguments.print(printer);
    }
  }];
}

class Lacis_Extent<string name, string mnemonic, list<string> methods = []>
    : Lacis_Kind<name # "Extent", mnemonic, [DeclareAttrInterfaceMethods<Lacis_ExtentInterface, methods>]>;

class Lacis_Coordinate<string name, string mnemonic, list<string> methods = []>
    : Lacis_Kind<name # "Coordinate", mnemonic, [DeclareAttrInterfaceMethods<Lacis_CoordinateInterface, methods>]>;

/// A kind that does not factor: it stands in both places, and answers what both interfaces ask once.
class Lacis_ExtentAndCoordinate<string name, string mnemonic, list<string> extentMethods = [],
                                list<string> coordinateMethods = []>
    : Lacis_Kind<name # "Kind", mnemonic, [
          DeclareAttrInterfaceMethods<Lacis_ExtentInterface, !listconcat(["getBuffers", "hasCode", "isPadded"], extentMethods)>,
          DeclareAttrInterfaceMethods<Lacis_CoordinateInterface, coordinateMethods>]>;

#endif // LACIS_LEVEL_KIND_BASE_TD
