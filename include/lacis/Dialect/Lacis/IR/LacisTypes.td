// SPDX-License-Identifier: Apache-2.0
// The types: patterns of sparse tensors, and what tile operations work on.

#ifndef LACIS_TYPES_TD
#define LACIS_TYPES_TD

include "lacis/Dialect/Lacis/IR/LacisDialect.td"

def Lacis_PatternType : TypeDef<Lacis_Dialect, "Pattern"> {
  let mnemonic = "pattern";
  let summary = "The structure of a sparse tensor without its values.";
  let description = [{
    ```mlir
    func.func private @mask(!lacis.pattern<?x64, #lacis.format<(i, j) -> (i : dense, j : compressed)>>)
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Attribute":$format);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

//===- Tiles --------------------------------------------------------------===//

class Lacis_TileTypeBase<string name, string typeMnemonic> : TypeDef<Lacis_Dialect, name> {
  let mnemonic = typeMnemonic;
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Lacis_TileType : Lacis_TileTypeBase<"Tile", "tile"> {
  let summary = "A dense tile in fast memory, or a list of them: `<rows x columns>`, `<count x rows x columns>`.";
  let description = [{
    Where its elements lie is the architecture's business.
    ```mlir
    func.func private @uses(!lacis.tile<256x64xbf16>, !lacis.tile<12x64x16xbf16>)
    ```
  }];
  let extraClassDeclaration = [{
    bool isList() const { return getShape().size() == 3; }
    int64_t getCount() const { return isList() ? getShape()[0] : 1; }
    int64_t getRows() const { return getShape()[getShape().size() - 2]; }
    int64_t getColumns() const { return getShape().back(); }
    int64_t getBytes() const;
    /// How much of a contraction one tile covers: its columns, or its rows where it is transposed.
    int64_t getDepth(bool transposed) const { return transposed ? getRows() : getColumns(); }
  }];
}

def Lacis_AccType : Lacis_TileTypeBase<"Acc", "acc"> {
  let summary = "A matrix that one consumer holds and adds products to. One column holds a number for each row, four "
                "columns parts of one.";
  let description = [{
    ```mlir
    func.func private @scores(!lacis.acc<64x256xf32>) -> !lacis.acc<64x1xf32>
    ```
  }];
  let extraClassDeclaration = [{
    int64_t getRows() const { return getShape()[0]; }
    int64_t getColumns() const { return getShape()[1]; }
    /// It holds a number for each row, or parts of one.
    bool isOfRows() const { return getColumns() == 1 || getColumns() == kRowParts; }
    static constexpr int64_t kRowParts = 4;
  }];
}

def Lacis_RingType : TypeDef<Lacis_Dialect, "Ring"> {
  let mnemonic = "ring";
  let summary = "Stages of tiles in fast memory that a producer fills and consumers empty, in turn.";
  let description = [{
    The value is a place in the ring: it moves on by one stage with each `lacis.release`.
    ```mlir
    func.func private @uses(!lacis.ring<4, <256x64xbf16>, <2x64x64xbf16>>)
    ```
  }];
  let parameters = (ins "int64_t":$stages, ArrayRefParameter<"::lacis::TileType">:$tiles);
  let assemblyFormat = "`<` $stages `,` $tiles `>`";
  let genVerifyDecl = 1;
}

//===- What operations take -----------------------------------------------===//

def Lacis_Lanes : VectorOfRankAndType<[1], [I1]>;
def Lacis_Condition : AnyTypeOf<[I1, Lacis_Lanes], "a condition, or one a lane">;
def Lacis_Number : AnyTypeOf<[AnyFloat, AnySignlessInteger, VectorOfRankAndType<[1], [AnyFloat, AnySignlessInteger]>],
                             "a number, or a vector of numbers">;
/// What a loop hands on from round to round.
def Lacis_Carried : AnyTypeOf<[Lacis_Number, Index, Lacis_TileType, Lacis_AccType, Lacis_RingType],
                              "a number, an index, a tile or a place in a ring">;

#endif // LACIS_TYPES_TD
