// SPDX-License-Identifier: Apache-2.0
// The dialect: formats of sparse tensors as attributes, and the few operations between linalg and scf.

#ifndef LACIS_DIALECT_TD
#define LACIS_DIALECT_TD

include "mlir/IR/DialectBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Lacis_Dialect : Dialect {
  let name = "lacis";
  let cppNamespace = "::lacis";
  let summary = "Sparse tensors whose formats are compositions of levels.";
  let description = [{
    The payload stays `linalg.generic` on builtin tensors; a format is the encoding of a tensor type.
    Level kinds and schedule steps register themselves: see `lacis::Room`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 0;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Adds attributes of a room; those that are extents or coordinates join the grammar under their mnemonic.
    template <typename... Attrs> void addKinds() {
      addAttributes<Attrs...>();
      (kinds.add<Attrs>(), ...);
    }
    const ::lacis::KindRegistry &getKinds() const { return kinds; }
    void addAlias(::llvm::StringRef name, ::llvm::StringRef extent, ::llvm::StringRef coordinate) {
      kinds.addAlias(name, extent, coordinate);
    }

    ::mlir::Attribute parseAttribute(::mlir::DialectAsmParser &parser, ::mlir::Type type) const override;
    void printAttribute(::mlir::Attribute attr, ::mlir::DialectAsmPrinter &printer) const override;

  private:
    void registerTypes();
    ::lacis::KindRegistry kinds;

  public:
  }];
}

class Lacis_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Lacis_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

class Lacis_Op<string mnemonic, list<Trait> traits = []> : Op<Lacis_Dialect, mnemonic, traits>;

#endif // LACIS_DIALECT_TD
