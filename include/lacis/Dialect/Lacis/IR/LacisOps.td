// SPDX-License-Identifier: Apache-2.0
// The operations between linalg and scf: loops over levels, positions, accesses.

#ifndef LACIS_OPS_TD
#define LACIS_OPS_TD

include "lacis/Dialect/Lacis/IR/LacisAttrs.td"
include "lacis/Dialect/Lacis/IR/LacisTypes.td"
include "lacis/Dialect/Lacis/IR/LoopOpInterface.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpBase.td"

def Lacis_PartOp : Lacis_Op<"part", [Pure]> {
  let summary = "One part of a tensor that is a sum.";
  let arguments = (ins AnyRankedTensor:$source, StrAttr:$name);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$name `of` $source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
}

def Lacis_WalkOp : Lacis_Op<"walk", [Pure]> {
  let summary = "The same tensor, walked through its companion index.";
  let description = [{
    The result has the companion's format: an ordinary format with a `link` level, whose
    positions point at the slots of the source. Values are not copied; the index arrays are
    a derived array of the pattern. With `least` a list of rows has those with at least so many
    entries alone.
  }];
  let arguments = (ins AnyRankedTensor:$source, OptionalAttr<I64Attr>:$least);
  let builders = [OpBuilder<(ins "mlir::Type":$result, "mlir::Value":$source),
                            [{ build($_builder, $_state, result, source, mlir::IntegerAttr()); }]>];
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source (`least` $least^)? attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
}

def Lacis_WorkspaceOp : Lacis_Op<"workspace", [MemoryEffects<[MemAlloc]>]> {
  let summary = "A dense temporary in an execution layout, one size an axis.";
  let description = [{
    Inside of a nest it is a tile, of which `place` says whose it is. `kept` is the statement of a chain whose values it
    has; to a `running` one the nests of all sizes add.
  }];
  let arguments = (ins Variadic<Index>:$sizes, OptionalAttr<Lacis_WorkspacePlaceAttr>:$place,
                       OptionalAttr<StrAttr>:$kept, UnitAttr:$running);
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::ValueRange":$sizes),
                            [{ build($_builder, $_state, result, sizes, {}, {}, false); }]>];
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    `(` $sizes `)` (`place` `` $place^)? (`kept` `<` $kept^ `>`)? (`running` $running^)? attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def Lacis_ZerosOp : Lacis_Op<"zeros", [Pure]> {
  let summary = "A tensor of zeros on the pattern of another: the initial value of a sampled output.";
  let description = [{
    The source is a `!lacis.pattern` or an encoded tensor whose values are not read.
    ```mlir
    #csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
    func.func @empty(%p: !lacis.pattern<?x?, #csr>) -> tensor<?x?xf32, #csr> {
      %zero = lacis.zeros %p : !lacis.pattern<?x?, #csr> to tensor<?x?xf32, #csr>
      return %zero : tensor<?x?xf32, #csr>
    }
    ```
  }];
  let arguments = (ins AnyTypeOf<[AnyRankedTensor, Lacis_PatternType]>:$source);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
}

class Lacis_LoopBase<string mnemonic> : Lacis_Op<mnemonic, [RecursiveMemoryEffects, Lacis_LoopOpInterface]> {
  let results = (outs Variadic<Lacis_Carried>:$results);
  let regions = (region SizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

/// The name as steps and messages spell it, and in two.
defvar Lacis_LoopNames = [{
    ::llvm::StringRef getName();
    LoopName getLoopName() { return LoopName(getLetters(), getPathAttr()); }
}];

/// Of loops over coordinates and over positions.
defvar Lacis_LoopMarks = (ins UnitAttr:$holds, OptionalAttr<I64Attr>:$pipeline, OptionalAttr<Lacis_ReductionAttr>:$reduce,
                              UnitAttr:$stages, OptionalAttr<I64Attr>:$sums, OptionalAttr<I64Attr>:$unroll);

def Lacis_LoopOp : Lacis_LoopBase<"loop"> {
  let summary = "A named loop over coordinates `0 .. upper`.";
  let description = [{
    Marks say what steps and passes have decided about the loop. They stand behind the body, in the order of the
    alphabet; another word there, or one that says nothing beside the others, is refused.
    ```mlir
    func.func @twice(%x: tensor<?xf32>, %n: index) {
      %two = arith.constant 2 : index
      %four = arith.constant 4.0 : f32
      lacis.loop "i0" %i0 to %n {
        lacis.loop "i1" %i1 to %two {
          lacis.write %four to %x[%i1] : f32 to tensor<?xf32>
          lacis.yield
        } jam<2>
        lacis.yield
      } bind<block.x>
      return
    }
    ```
    What it belongs to stands behind the letters of its name, as a `#lacis.path`: `lacis.loop "i0"<copy "x">` is a loop of the
    nest that copies `x`, which steps call `x.i0`.

    How it runs: `bind` (a unit runs its iterations: `parallel`, `block.x`, `warp`, `lane`, `thread.x`), `vectorize`
    (lanes of one vector), `jam` (unrolled and jammed), `unroll` (so many rounds at once, which add to `sums` sums),
    `pipeline` (so many rounds are loaded ahead), `balance` (its tiles are handed out in lists), `tensorize` and, of one
    warp, `mma` (a side of a product of tiles; `tf32`: in 10 bits of the mantissa), `stages` and `holds` (its rounds
    load operands into shared memory, into registers).

    What it is in the output: in `meets` iterations meet in one element, which `race` brings together by a strategy;
    `begins` writes what sums begin with, `finishes` what follows a sum, `unlisted` what no operand lists; `follows`
    adds up what shares of rows have left. In a rolled nest `copies` puts a tile in another order, and `rescales` is what
    becomes of sums below a larger maximum. `scan` is a segmented sum over lanes.

    What it carries: with `reduce` each carried value is what it was before the round, and what the round adds to it
    (`add`, `mul`, `max`, `min`, `or`, `and`). Whoever makes a loop says so. A text need not: where the body has one such
    operation, the mark follows from it; one that the body does not do is refused.
    ```mlir
    func.func @sum(%x: tensor<?xf32>, %n: index) -> f32 {
      %zero = arith.constant 0.0 : f32
      %sum = lacis.loop "i" %i to %n iter(%before = %zero) -> (f32) {
        %element = lacis.read %x[%i] : tensor<?xf32> -> f32
        %next = arith.addf %before, %element : f32
        lacis.yield %next : f32
      } reduce<add>
      return %sum : f32
    }
    ```
  }];
  let arguments = !con((ins StrAttr:$letters, OptionalAttr<Lacis_PathAttr>:$path, Index:$upper, Variadic<Lacis_Carried>:$inits), Lacis_LoopMarks,
                       (ins UnitAttr:$begins, OptionalAttr<Lacis_WorkListsAttr>:$balance,
                            OptionalAttr<Lacis_ParallelUnitAttr>:$bind, UnitAttr:$copies, UnitAttr:$finishes, UnitAttr:$follows,
                            OptionalAttr<I64Attr>:$jam, UnitAttr:$meets, OptionalAttr<Lacis_TileSideAttr>:$mma,
                            OptionalAttr<StrAttr>:$race, UnitAttr:$rescales, UnitAttr:$scan, OptionalAttr<Lacis_TileSideAttr>:$tensorize,
                            UnitAttr:$tf32, UnitAttr:$unlisted, OptionalAttr<I64Attr>:$vectorize));
  let builders = [OpBuilder<(ins "const ::lacis::LoopName &":$name, "::mlir::Value":$upper,
                                 CArg<"::mlir::ValueRange", "{}">:$inits,
                                 CArg<"::std::optional<Reduction>", "{}">:$reduce)>];
  let extraClassDeclaration = Lacis_LoopNames # [{
    ::mlir::Block *getBlock() { return &getBody().front(); }
    ::mlir::BlockArgument getCoordinate() { return getBlock()->getArgument(0); }
    ::mlir::Block::BlockArgListType getIterArgs() { return getBlock()->getArguments().drop_front(); }
    /// The trip count when it is a constant.
    std::optional<int64_t> getTrip();
  }];
}

def Lacis_LevelLoopOp : Lacis_LoopBase<"level_loop"> {
  let summary = "A named loop over the positions of one level under a parent position.";
  let description = [{
    The body receives the position, the coordinate of each digit of the level, and the carried
    values. Positions without an entry (padding) do not run the body. Of the marks of `lacis.loop` it has those of its
    rounds: `holds`, `pipeline`, `reduce`, `stages`, `sums`, `unroll`. `rolled` is the loop of a chain of
    statements, which with `tiled` are of tiles; with `skewed` products of one round run beside those of the next.
  }];
  let arguments = !con((ins StrAttr:$letters, OptionalAttr<Lacis_PathAttr>:$path, AnyRankedTensor:$tensor,
                            I64Attr:$level, Index:$parent, Variadic<Lacis_Carried>:$inits),
                       Lacis_LoopMarks, (ins UnitAttr:$rolled, UnitAttr:$skewed, UnitAttr:$tiled));
  let builders = [OpBuilder<(ins "const ::lacis::LoopName &":$name, "::mlir::Value":$tensor, "int64_t":$level,
                                 "::mlir::Value":$parent, "::mlir::ValueRange":$inits,
                                 CArg<"::std::optional<Reduction>", "{}">:$reduce)>];
  let extraClassDeclaration = Lacis_LoopNames # [{
    ::mlir::Block *getBlock() { return &getBody().front(); }
    unsigned getNumDigits();
    ::mlir::BlockArgument getPosition() { return getBlock()->getArgument(0); }
    ::mlir::Block::BlockArgListType getCoordinates() { return getBlock()->getArguments().slice(1, getNumDigits()); }
    ::mlir::Block::BlockArgListType getIterArgs() { return getBlock()->getArguments().drop_front(1 + getNumDigits()); }
  }];
}

def Lacis_YieldOp : Lacis_Op<"yield", [Pure, ReturnLike, Terminator,
                                  ParentOneOf<["LoopOp", "LevelLoopOp", "RolesOp", "MapOp"]>]> {
  let summary = "Ends the body of a loop with the carried values, or that of a role or a map.";
  let arguments = (ins Variadic<Lacis_Carried>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ }]>];
}

def Lacis_LocateOp : Lacis_Op<"locate", [Pure]> {
  let summary = "The position of known coordinates in a level that has one for each, or behind a link.";
  let arguments = (ins AnyRankedTensor:$tensor, I64Attr:$level, Index:$parent, Variadic<Index>:$digits);
  let results = (outs Index:$position);
  let assemblyFormat = "$tensor `[` $level `]` `at` $parent `(` $digits `)` attr-dict `:` type($tensor)";
  let hasVerifier = 1;
}

def Lacis_PositionsOp : Lacis_Op<"positions", [Pure]> {
  let summary = "How many positions the arrays of a level have room for: known before the launch.";
  let arguments = (ins AnyRankedTensor:$tensor, I64Attr:$level);
  let results = (outs Index:$result);
  let assemblyFormat = "$tensor `[` $level `]` attr-dict `:` type($tensor)";
  let hasVerifier = 1;
}

def Lacis_OwnerOp : Lacis_Op<"owner", [Pure]> {
  let summary = "The last of `parents` positions above a level under which `position`, or one before it, lies.";
  let arguments = (ins AnyRankedTensor:$tensor, I64Attr:$level, Index:$position, Index:$parents);
  let results = (outs Index:$result);
  let assemblyFormat = "$tensor `[` $level `]` `of` $position `in` $parents attr-dict `:` type($tensor)";
  let hasVerifier = 1;
}

def Lacis_BoundsOp : Lacis_Op<"bounds", [Pure]> {
  let summary = "The positions `[lo, hi)` of a level under a parent position.";
  let arguments = (ins AnyRankedTensor:$tensor, I64Attr:$level, Index:$parent);
  let results = (outs Index:$lo, Index:$hi);
  let assemblyFormat = "$tensor `[` $level `]` `at` $parent attr-dict `:` type($tensor)";
  let hasVerifier = 1;
}

def Lacis_SeekOp : Lacis_Op<"seek", [Pure]> {
  let summary = "The first of the positions `[lo, hi)` of a level whose coordinate is at least `coordinate`, or `hi`.";
  let arguments = (ins AnyRankedTensor:$tensor, I64Attr:$level, Index:$lo, Index:$hi, Index:$coordinate);
  let results = (outs Index:$position);
  let assemblyFormat = "$tensor `[` $level `]` `from` $lo `to` $hi `of` $coordinate attr-dict `:` type($tensor)";
  let hasVerifier = 1;
}

def Lacis_FindOp : Lacis_Op<"find", [Pure]> {
  let summary = "The position of known coordinates under a parent, and whether they have one; else it is any number.";
  let arguments = (ins AnyRankedTensor:$tensor, I64Attr:$level, Index:$parent, Variadic<Index>:$digits);
  let results = (outs Index:$position, I1:$found);
  let assemblyFormat = "$tensor `[` $level `]` `at` $parent `(` $digits `)` attr-dict `:` type($tensor)";
  let hasVerifier = 1;
}

def Lacis_CoordinateOp : Lacis_Op<"coordinate", [Pure]> {
  let summary = "The coordinate of each digit at a position, and whether the position holds an entry.";
  let arguments = (ins AnyRankedTensor:$tensor, I64Attr:$level, Index:$lo, Index:$position);
  let results = (outs Variadic<Index>:$digits, I1:$valid);
  let assemblyFormat = "$tensor `[` $level `]` `at` $position `from` $lo attr-dict `:` type($tensor) `->` type($digits)";
  let hasVerifier = 1;
}

def Lacis_EntryOp : Lacis_Op<"entry", [Pure]> {
  let summary = "Whether the value at a position is an entry, by the validity bitmap; all are where there is none.";
  let arguments = (ins AnyRankedTensor:$tensor, Index:$position);
  let results = (outs Lacis_Condition:$result);
  let assemblyFormat = "$tensor `at` $position attr-dict `:` type($tensor) `->` type($result)";
}

def Lacis_SetOp : Lacis_Op<"set", [AttrSizedOperandSegments, MemoryEffects<[MemWrite]>]> {
  let summary = "Stores a value, or a vector of neighbours (the first `count` lanes), at a position of the last level.";
  let description = [{
    Of values in copies that share a pattern, `batch` is the number of the copy.
  }];
  let arguments = (ins Lacis_Number:$value, AnyRankedTensor:$tensor, Index:$position, Optional<Index>:$batch,
                       Optional<Index>:$count);
  let assemblyFormat = [{
    $value `to` $tensor `at` $position (`batch` $batch^)? (`count` $count^)? attr-dict `:` type($value) `to` type($tensor)
  }];
}

def Lacis_LanesOp : Lacis_Op<"lanes", [Pure]> {
  let summary = "A vector that is true in its first `count` lanes.";
  let arguments = (ins Index:$count);
  let results = (outs Lacis_Lanes:$result);
  let assemblyFormat = "$count attr-dict `:` type($result)";
}

def Lacis_PresenceOp : Lacis_Op<"presence", [Pure]> {
  let summary = "Which coordinates of a level are stored under a parent: bit c says that c is.";
  let arguments = (ins AnyRankedTensor:$tensor, I64Attr:$level, Index:$parent);
  let results = (outs I32:$bits);
  let assemblyFormat = "$tensor `[` $level `]` `at` $parent attr-dict `:` type($tensor)";
  let hasVerifier = 1;
}

def Lacis_ValueOp : Lacis_Op<"value", [Pure]> {
  let summary = "The value stored at a position of the last level; a `streamed` one is read once, so that no cache need keep it.";
  let description = [{
    Of values in copies that share a pattern, `batch` is the number of the copy:
    ```mlir
    #heads = #lacis.format<(h, i, j) -> (h : batch, i : dense, j : compressed)>
    func.func @third(%w: tensor<?x?x?xf32, #heads>, %position: index) -> f32 {
      %two = arith.constant 2 : index
      %value = lacis.value %w at %position batch %two : tensor<?x?x?xf32, #heads> -> f32
      return %value : f32
    }
    ```
  }];
  let arguments = (ins AnyRankedTensor:$tensor, Index:$position, Optional<Index>:$batch, UnitAttr:$streamed);
  let results = (outs Lacis_Number:$result);
  let assemblyFormat = [{
    (`streamed` $streamed^)? $tensor `at` $position (`batch` $batch^)? attr-dict `:` type($tensor) `->` type($result)
  }];
}

def Lacis_ReadOp : Lacis_Op<"read", [AttrSizedOperandSegments, MemoryEffects<[MemRead]>]> {
  let summary = "A dense element, or a vector of them along one axis (the first `count` lanes).";
  let description = [{
    `staged` and `held` are the loops in whose rounds it is loaded before, into shared memory and into registers.
  }];
  let arguments = (ins AnyRankedTensor:$tensor, Variadic<Index>:$indices, Optional<Index>:$count,
                       OptionalAttr<I64Attr>:$along, OptionalAttr<StrAttr>:$staged, OptionalAttr<StrAttr>:$held);
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$tensor, "::mlir::ValueRange":$indices,
                                 "::mlir::Value":$count, "::mlir::IntegerAttr":$along),
                            [{ build($_builder, $_state, result, tensor, indices, count, along, {}, {}); }]>];
  let results = (outs Lacis_Number:$result);
  let assemblyFormat = [{
    $tensor `[` $indices `]` (`along` $along^)? (`count` $count^)? (`staged` `<` $staged^ `>`)? (`held` `<` $held^ `>`)?
    attr-dict `:` type($tensor) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Lacis_WriteOp : Lacis_Op<"write", [AttrSizedOperandSegments, MemoryEffects<[MemWrite]>]> {
  let summary = "Stores an element, or a vector along one axis (the first `count` lanes).";
  let description = "With `atomic` it combines each value with what is there, in one instruction.";
  let arguments = (ins Lacis_Number:$value, AnyRankedTensor:$tensor, Variadic<Index>:$indices,
                       Optional<Index>:$count, OptionalAttr<I64Attr>:$along,
                       OptionalAttr<Lacis_AtomicKindAttr>:$atomic);
  let builders = [OpBuilder<(ins "::mlir::Value":$value, "::mlir::Value":$tensor, "::mlir::ValueRange":$indices,
                                 "::mlir::Value":$count, "::mlir::IntegerAttr":$along),
                            [{ build($_builder, $_state, value, tensor, indices, count, along, AtomicKindAttr()); }]>];
  let assemblyFormat = [{
    $value `to` $tensor `[` $indices `]` (`along` $along^)? (`count` $count^)? (`atomic` `` $atomic^)? attr-dict
    `:` type($value) `to` type($tensor)
  }];
  let hasVerifier = 1;
}

def Lacis_CopyTransposedOp
    : Lacis_Op<"copy_transposed", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Copies a square tile to its transpose: for r, c < size, target[r along, c rows] = source[r rows, c along].";
  let description = [{
    `rows` is the axis along which rows begin one after the other, `along` the one along which the elements of a row
    lie side by side; the indices are those of the first element. It stands for as many vectors read as the tile has rows,
    transposed in registers, and written.
  }];
  let arguments = (ins AnyRankedTensor:$source, Variadic<Index>:$sourceIndices, AnyRankedTensor:$target,
                       Variadic<Index>:$targetIndices, I64Attr:$size, I64Attr:$sourceRows, I64Attr:$sourceAlong,
                       I64Attr:$targetRows, I64Attr:$targetAlong);
  let assemblyFormat = [{
    $size `of` $source `[` $sourceIndices `]` `rows` $sourceRows `along` $sourceAlong
    `to` $target `[` $targetIndices `]` `rows` $targetRows `along` $targetAlong attr-dict
    `:` type($source) `to` type($target)
  }];
  let hasVerifier = 1;
}

#endif // LACIS_OPS_TD
