// SPDX-License-Identifier: Apache-2.0
// The operations of the tiles stage: loads, products and stores of tiles. They name no machine.

#ifndef LACIS_TILE_OPS_TD
#define LACIS_TILE_OPS_TD

include "lacis/Dialect/Lacis/IR/LacisAttrs.td"
include "lacis/Dialect/Lacis/IR/LacisTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Lacis_IndexLike : AnyTypeOf<[Index, I32, I64]>;
def Lacis_Pointer : Type<CPred<"::llvm::isa<::mlir::LLVM::LLVMPointerType>($_self)">, "a pointer">;
/// What tiles are loaded from and stored to: a tensor, or, where levels were lowered, what it lies behind.
def Lacis_MatrixType : AnyTypeOf<[AnyRankedTensor, Lacis_Pointer]>;

def Lacis_Sizes : TypedArrayAttrBase<Lacis_SizeAttr, "sizes of rows and columns">;

def Lacis_DerivedAttr : Attr<CPred<"::llvm::isa<::lacis::DerivedInterface>($_self)">, "a derived array"> {
  let storageType = "::lacis::DerivedInterface";
  let returnType = "::lacis::DerivedInterface";
  let convertFromStorage = "$_self";
}

//===- Derived structures -------------------------------------------------===//

def Lacis_RegroupOp : Lacis_Op<"regroup", [Pure]> {
  let summary = "The same entries in an execution layout: an ordinary format, made of pattern and values.";
  let description = [{
    The result has the format of the layout. Rows may stand in another order: see `lacis.origin`. The layout of values in
    copies that share a pattern is that of the pattern, without the axes of the batch.
  }];
  let arguments = (ins AnyRankedTensor:$source, Lacis_LayoutAttr:$layout);
  let results = (outs AnyRankedTensor:$result);
  let builders = [OpBuilder<(ins "mlir::Value":$source, "LayoutAttr":$layout)>];
  let assemblyFormat = "qualified($layout) `of` $source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
}

def Lacis_OriginOp : Lacis_Op<"origin", [Pure]> {
  let summary = "The source's row group at a place of a regrouped tensor; one beyond the last where there is none.";
  let arguments = (ins AnyRankedTensor:$tensor, Index:$place);
  let results = (outs Index:$group);
  let assemblyFormat = "$tensor `at` $place attr-dict `:` type($tensor)";
  let hasVerifier = 1;
}

def Lacis_BalanceOp : Lacis_Op<"balance", [Pure]> {
  let summary = "Work lists over the panels of the source: what each worker does, by a schedule.";
  let description = [{
    The result is a structure with a format that has one axis a level: the list, where each worker has several; the worker,
    the panel, and what else an item of `#lacis.tile_schedule` or `#lacis.segment_schedule` says. The axis of workers has
    one entry a worker. Lists of a schedule without a period are `over` a dense axis of so many elements.
  }];
  let arguments = (ins AnyRankedTensor:$source, Optional<Index>:$extent, Lacis_DerivedAttr:$schedule);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$schedule `of` $source (`over` $extent^)? attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
}

//===- Loads --------------------------------------------------------------===//

def Lacis_LoadTileOp : Lacis_Op<"load_tile", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Starts to load a box into a tile; elements outside of the tensor are zero.";
  let description = [{
    Of a dense matrix from `[row, column]`; of a packed one from the stored block `[position, row, column]`, read in
    the order of its values, or, of values in copies that share a pattern, from `[copy, position, row, column]`; of a
    vector from `[first]`, into a tile of one row. A dense tensor of more axes is a batch of matrices, of the last two,
    loaded from `[matrix, row, column]`, or, of up to five axes, with a number for each: then it may be strided. From
    `[row, column]` it is one matrix whose rows are all axes but the last.
    `to %list[%n]` fills one tile of a list, `to %list` all of them, side by side. After the levels are lowered the source
    is a pointer to rows and columns, or to matrices of them, whose sizes `shape` tells by the kernel's arguments; `strides`
    tells those of all axes but the last, in elements, where they are not contiguous.
    `part = [n, count]` fills part n of `count` equal ones: of the tile's rows, or of the columns of a tile of one row.
  }];
  let arguments = (ins Lacis_MatrixType:$source, Variadic<Lacis_IndexLike>:$indices, Lacis_TileType:$tile,
                       Optional<Lacis_IndexLike>:$place, OptionalAttr<Lacis_Sizes>:$shape,
                       OptionalAttr<Lacis_Sizes>:$strides, OptionalAttr<DenseI64ArrayAttr>:$part);
  let builders = [OpBuilder<(ins "::mlir::Value":$source, "::mlir::ValueRange":$indices, "::mlir::Value":$tile,
                                 "::mlir::Value":$place, "::mlir::ArrayAttr":$shape,
                                 CArg<"::mlir::ArrayAttr", "{}">:$strides),
                            [{ build($_builder, $_state, source, indices, tile, place, shape, strides, nullptr); }]>];
  let assemblyFormat = [{
    $source `[` $indices `]` `to` $tile (`[` $place^ `:` type($place) `]`)? attr-dict
    `:` type($source) `[` type($indices) `]` `to` qualified(type($tile))
  }];
  let hasVerifier = 1;
}

def Lacis_LoadRunOp : Lacis_Op<"load_run", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Starts to load `count` stored tiles that lie one after another in an execution layout.";
  let arguments = (ins Lacis_MatrixType:$source, Lacis_IndexLike:$position, Lacis_IndexLike:$count, Lacis_TileType:$tile);
  let assemblyFormat = [{
    $source `at` $position `count` $count `to` $tile attr-dict
    `:` type($source) `,` type($position) `,` type($count) `to` qualified(type($tile))
  }];
  let hasVerifier = 1;
}

//===- Accumulators -------------------------------------------------------===//

def Lacis_SplatOp : Lacis_Op<"splat", [Pure]> {
  let summary = "An accumulator that holds one number everywhere.";
  let arguments = (ins AnyFloat:$value);
  let results = (outs Lacis_AccType:$acc);
  let assemblyFormat = "$value attr-dict `:` qualified(type($value)) `to` qualified(type($acc))";
}

def Lacis_MmaOp : Lacis_Op<"mma", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Adds the product of two tiles: acc[m, n] += sum over k of a[m, k] * b[n, k].";
  let description = [{
    A `transposed` tile has its rows along k: a[k, m], b[k, n]. `%a[%first]` takes one tile of a list, or as many as m or n
    are long: transposed ones side by side, others one below the other. With `present`, `a` is a list of tiles that cover the
    k of `b` one after another; bit k of `present` says that tile k is stored, and the stored ones begin at `first`.
    The tiles of a list `b` without a place follow each other along k; so do those of `a`, from `first` on where it is
    given. `a` may be an accumulator of a half type, whose columns are k. Without `into` the sum begins at 0.
    The product is complete only after `lacis.complete`. One in `tf32` takes 10 bits of the mantissa of its float32
    elements where the machine has such products.
  }];
  let arguments = (ins AnyTypeOf<[Lacis_TileType, Lacis_AccType]>:$a, Optional<Lacis_IndexLike>:$first,
                       UnitAttr:$aTransposed, Optional<I32>:$present, Lacis_TileType:$b,
                       Optional<Lacis_IndexLike>:$second, UnitAttr:$bTransposed, Optional<Lacis_AccType>:$acc,
                       UnitAttr:$tf32);
  let results = (outs Lacis_AccType:$result);
  let assemblyFormat = [{
    $a (`[` $first^ `:` type($first) `]`)? (`transposed` $aTransposed^)? (`present` $present^)? `,`
    $b (`[` $second^ `:` type($second) `]`)? (`transposed` $bTransposed^)? (`into` $acc^)? (`in` `tf32` $tf32^)? attr-dict
    `:` qualified(type($a)) `,` qualified(type($b)) `into` custom<SumTypes>(type($acc), type($result), ref($acc))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The left operand where it is a tile; null where it is an accumulator.
    ::lacis::TileType getATile() { return ::llvm::dyn_cast<::lacis::TileType>(getA().getType()); }
    /// How much of the contraction the product covers.
    int64_t getDepth();
  }];
}

def Lacis_MmaGatheredOp : Lacis_Op<"mma_gathered", [AttrSizedOperandSegments, AllTypesMatch<["acc", "result"]>,
                                                    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Adds products of gathered parts of two tiles, side by side in one accumulator.";
  let description = [{
    Both are lists of transposed tiles, which stand side by side: a[k, m], b[k, n]. The accumulator is as many groups of
    columns as there are `columns`; each is the product of its own rows, as many groups as `rows` has for it, which
    begin at those columns of a, and of neighbouring columns of b: acc[g, c] += sum over k of a[k, rows[g]] b[k, columns[c]].
    The product is complete, and the stage free, where the stage is released.
  }];
  let arguments = (ins Lacis_TileType:$a, Variadic<Lacis_IndexLike>:$rows, Lacis_TileType:$b,
                       Variadic<Lacis_IndexLike>:$columns, Lacis_AccType:$acc);
  let results = (outs Lacis_AccType:$result);
  let assemblyFormat = [{
    $a `[` $rows `]` `,` $b `[` $columns `]` `into` $acc attr-dict `:` qualified(type($a)) `[` type($rows) `]` `,`
    qualified(type($b)) `[` type($columns) `]` `into` qualified(type($acc))
  }];
  let hasVerifier = 1;
}

def Lacis_VersionOp : Lacis_Op<"version", [Pure]> {
  let summary = "The first of some numbers that is not less than `least`: tiles are compiled for each of them.";
  let description = [{
    The numbers ascend; `least` is not above the last. What a tile has of its columns may follow from it:
    ```mlir
    func.func @stepsOf(%count: index) -> index {
      %0 = lacis.version %count of [2, 4, 8]
      return %0 : index
    }
    ```
  }];
  let arguments = (ins Index:$least, DenseI64ArrayAttr:$numbers);
  let results = (outs Index:$result);
  let assemblyFormat = "$least `of` $numbers attr-dict";
  let hasVerifier = 1;
}

def Lacis_CompleteOp : Lacis_Op<"complete", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits for all products; accumulators may then be read, and the places they came from are free.";
  let description = [{
    Where all that is given are products of the same block, it waits for these and for what was begun before them:
    products that were begun later stay under way.
  }];
  let arguments = (ins Variadic<AnyTypeOf<[Lacis_RingType, Lacis_AccType]>>:$values);
  let results = (outs Variadic<AnyTypeOf<[Lacis_RingType, Lacis_AccType]>>:$results);
  let assemblyFormat = "$values attr-dict `:` type($values) `->` type($results)";
  let hasVerifier = 1;
}

def Lacis_MapOp : Lacis_Op<"map", [AttrSizedOperandSegments, RecursiveMemoryEffects]> {
  let summary = "A function of the elements of accumulators, element by element.";
  let description = [{
    Operands have the rows of the result; one with a single column is repeated along the rows. `at [%i, %j]` hands the
    body, behind the elements, the coordinates of each: those of the first element are `%i` and `%j`.
  }];
  let arguments = (ins Variadic<Lacis_AccType>:$values, Variadic<Lacis_IndexLike>:$places);
  let results = (outs Lacis_AccType:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $values (`at` `[` $places^ `:` type($places) `]`)? $body attr-dict `:` type($values) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Lacis_ReduceRowsOp : Lacis_Op<"reduce_rows", [Pure]> {
  let summary = "One number for each row of an accumulator: the `sum` or the `max` of its elements.";
  let description = [{
    With four columns the result is four parts of that number, in whatever shares the machine finds them: a loop carries
    them, and reduces them once behind it. `onto` is what they begin with.
  }];
  let arguments = (ins StrAttr:$kind, Lacis_AccType:$value, Optional<Lacis_AccType>:$onto);
  let results = (outs Lacis_AccType:$result);
  let assemblyFormat = [{
    $kind $value (`onto` $onto^)? attr-dict `:` qualified(type($value))
    `->` custom<SumTypes>(type($onto), type($result), ref($onto))
  }];
  let hasVerifier = 1;
}

def Lacis_ColumnsOp : Lacis_Op<"columns", [Pure]> {
  let summary = "Neighbouring columns of an accumulator, from `first` on.";
  let arguments = (ins Lacis_AccType:$value, I64Attr:$first);
  let results = (outs Lacis_AccType:$result);
  let assemblyFormat = "$value `from` $first attr-dict `:` qualified(type($value)) `to` qualified(type($result))";
  let hasVerifier = 1;
}

def Lacis_ReadTileOp : Lacis_Op<"read_tile", [MemoryEffects<[MemRead]>]> {
  let summary = "The elements of a tile, as an accumulator.";
  let description = [{
    `%list[%n]` reads one tile of a list, or as many side by side as the accumulator has columns for; without a place all of
    them. `transposed`: acc[m, n] is the tile's [n, m]. An accumulator of the tile's own half type holds it as it is: the
    left side of products.
  }];
  let arguments = (ins Lacis_TileType:$tile, Optional<Lacis_IndexLike>:$place, UnitAttr:$transposed);
  let results = (outs Lacis_AccType:$acc);
  let assemblyFormat = [{
    $tile (`[` $place^ `:` type($place) `]`)? (`transposed` $transposed^)? attr-dict
    `:` qualified(type($tile)) `to` qualified(type($acc))
  }];
  let hasVerifier = 1;
}

def Lacis_ReadColumnsOp : Lacis_Op<"read_columns", [MemoryEffects<[MemRead]>]> {
  let summary = "One number for each column of an accumulator, from a tile of one row: all its rows are that one.";
  let description = [{
    As what a product adds to it costs no instruction: the sum begins there.
    ```mlir
    func.func @start(%row: !lacis.tile<1x64xf32>) -> !lacis.acc<64x64xf32> {
      %0 = lacis.read_columns %row : !lacis.tile<1x64xf32> to !lacis.acc<64x64xf32>
      return %0 : !lacis.acc<64x64xf32>
    }
    ```
  }];
  let arguments = (ins Lacis_TileType:$tile);
  let results = (outs Lacis_AccType:$acc);
  let assemblyFormat = "$tile attr-dict `:` qualified(type($tile)) `to` qualified(type($acc))";
  let hasVerifier = 1;
}

def Lacis_LoadRowsOp : Lacis_Op<"load_rows", [MemoryEffects<[MemRead]>]> {
  let summary = "One number for each row of an accumulator, from a vector at `[first]`; 0 beyond its end.";
  let description = [{
    Of a dense tensor with more axes `first` counts its elements, in their order. After the levels are lowered the vector
    is a pointer to `size` elements of `type`.
  }];
  let arguments = (ins Lacis_MatrixType:$source, Lacis_IndexLike:$first, Optional<Lacis_IndexLike>:$size,
                       OptionalAttr<TypeAttr>:$type);
  let results = (outs Lacis_AccType:$acc);
  let assemblyFormat = [{
    $source `[` $first `]` (`of` $size^ `:` type($size))? attr-dict `:` type($source) `[` type($first) `]`
    `to` qualified(type($acc))
  }];
  let hasVerifier = 1;
}

def Lacis_LoadColumnsOp : Lacis_Op<"load_columns", [MemoryEffects<[MemRead]>]> {
  let summary = "One number for each column of an accumulator, from a vector at `[first]`; 0 beyond its end.";
  let description = [{
    All rows are that one; `first` as in `lacis.load_rows`. After the levels are lowered the vector is a pointer to `size`
    elements of `type`.
  }];
  let arguments = (ins Lacis_MatrixType:$source, Lacis_IndexLike:$first, Optional<Lacis_IndexLike>:$size,
                       OptionalAttr<TypeAttr>:$type);
  let results = (outs Lacis_AccType:$acc);
  let assemblyFormat = [{
    $source `[` $first `]` (`of` $size^ `:` type($size))? attr-dict `:` type($source) `[` type($first) `]`
    `to` qualified(type($acc))
  }];
  let hasVerifier = 1;
}

def Lacis_StoreRowsOp : Lacis_Op<"store_rows", [AttrSizedOperandSegments, MemoryEffects<[MemWrite]>]> {
  let summary = "Stores the number that each row of an accumulator has to neighbours along the last axis of a tensor.";
  let description = [{
    From `[first]` of a vector on, or from `[matrix, first]`: what lies behind the end of that axis is left out. Of float32.
    After the levels are lowered the target is a pointer, and rows end before `size`.
    ```mlir
    func.func @keep(%lse: tensor<?x?xf32>, %of: !lacis.acc<64x1xf32>, %head: index, %row: index) {
      lacis.store_rows %of to %lse[%head, %row] : !lacis.acc<64x1xf32> to tensor<?x?xf32>[index, index]
      return
    }
    ```
  }];
  let arguments = (ins Lacis_AccType:$value, Lacis_MatrixType:$target, Variadic<Lacis_IndexLike>:$indices,
                       Optional<Lacis_IndexLike>:$size);
  let assemblyFormat = [{
    $value `to` $target `[` $indices `]` (`of` $size^ `:` type($size))? attr-dict
    `:` qualified(type($value)) `to` type($target) `[` type($indices) `]`
  }];
  let hasVerifier = 1;
}

def Lacis_LoadAccOp : Lacis_Op<"load_acc", [MemoryEffects<[MemRead]>]> {
  let summary = "An accumulator from a workspace that lies tile by tile: what has been summed up before.";
  let description = [{
    Tile `place` of a workspace whose format ends in the rows and columns of the accumulator, which lie row by row; added
    to what `onto` holds. After the levels are lowered the workspace is a pointer.
  }];
  let arguments = (ins Lacis_MatrixType:$source, Lacis_IndexLike:$place, Optional<Lacis_AccType>:$onto);
  let results = (outs Lacis_AccType:$acc);
  let assemblyFormat = [{
    $source `at` $place attr-dict `:` type($source) `,` type($place) (`onto` $onto^ `:` qualified(type($onto)))?
    `to` qualified(type($acc))
  }];
  let hasVerifier = 1;
}

def Lacis_StoreAccOp : Lacis_Op<"store_acc", [MemoryEffects<[MemWrite]>]> {
  let summary = "An accumulator to a workspace that lies tile by tile: a part of a sum.";
  let description = [{ Tile `place`, as in `lacis.load_acc`. }];
  let arguments = (ins Lacis_AccType:$acc, Lacis_MatrixType:$target, Lacis_IndexLike:$place);
  let assemblyFormat = [{
    $acc `to` $target `at` $place attr-dict `:` qualified(type($acc)) `to` type($target) `,` type($place)
  }];
  let hasVerifier = 1;
}

def Lacis_LoadEntriesOp : Lacis_Op<"load_entries", [MemoryEffects<[MemRead]>]> {
  let summary = "1 where a stored block has an entry, 0 at its padding, from a row and a column on.";
  let description = [{
    Reads the bytes of the validity bitmap, `stride` to a row, after the levels are lowered; there is none (`size` is
    0) where every stored value is an entry. With several `rows` the accumulator is as many groups of rows, each from
    its own; a group whose row is negative is not read.
  }];
  let arguments = (ins Lacis_MatrixType:$bitmap, Variadic<Lacis_IndexLike>:$rows, Lacis_IndexLike:$column,
                       Lacis_IndexLike:$size, I64Attr:$stride);
  let results = (outs Lacis_AccType:$acc);
  let assemblyFormat = [{
    $bitmap `[` $rows `]` `from` $column `of` $size `stride` $stride attr-dict
    `:` type($bitmap) `[` type($rows) `]` `from` type($column) `of` type($size) `to` qualified(type($acc))
  }];
}

def Lacis_StoreTileOp : Lacis_Op<"store_tile", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Rounds an accumulator to the tensor's type and stores it at `[row, column]`.";
  let description = [{
    Into the values of a sampled output at `[position, row, column]`, where padding becomes 0, or, of values in copies
    that share a pattern, at `[copy, position, row, column]`; into a batch of matrices as in `lacis.load_tile`. What lies
    outside of the tensor is left out. `transposed`: acc[m, n] goes to `[row + n, column + m]`.
    `through` a tile, of the same rows and columns, that nothing reads any more: it is staged there, and the place is free
    when it has been stored. Of a list, tiles side by side, `from` one of them on.
    After the levels are lowered the tensor is a pointer: `shape` as in `lacis.load_tile`, `type` its elements.
  }];
  let arguments = (ins Lacis_AccType:$value, Lacis_MatrixType:$target, Variadic<Lacis_IndexLike>:$indices,
                       Optional<Lacis_TileType>:$through, Optional<Lacis_IndexLike>:$slot, UnitAttr:$transposed,
                       OptionalAttr<Lacis_Sizes>:$shape, OptionalAttr<TypeAttr>:$type);
  let assemblyFormat = [{
    $value `to` $target `[` $indices `]` (`transposed` $transposed^)? (`through` $through^ `:` qualified(type($through)))?
    (`from` $slot^ `:` type($slot))? attr-dict
    `:` qualified(type($value)) `to` type($target) `[` type($indices) `]`
  }];
  let hasVerifier = 1;
}

def Lacis_StoreBlocksOp : Lacis_Op<"store_blocks", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Rounds an accumulator and stores groups of its rows, each as a stored block of a sampled output.";
  let description = [{
    Group n goes to the slot `slots[n]`, and nowhere where that is negative; all columns are those of the block.
    Padding becomes 0. Of values in copies that share a pattern, `batch` is the number of the copy. After the levels are
    lowered the tensor is a pointer and the slots are rows behind it: `shape` as in `lacis.load_tile`, `type` its elements.
  }];
  let arguments = (ins Lacis_AccType:$value, Lacis_MatrixType:$target, Variadic<Lacis_IndexLike>:$slots,
                       Optional<Lacis_IndexLike>:$batch, OptionalAttr<Lacis_Sizes>:$shape,
                       OptionalAttr<TypeAttr>:$type);
  let assemblyFormat = [{
    $value `to` $target `[` $slots `]` (`batch` $batch^ `:` type($batch))? attr-dict
    `:` qualified(type($value)) `to` type($target) `[` type($slots) `]`
  }];
  let hasVerifier = 1;
}

#endif // LACIS_TILE_OPS_TD
