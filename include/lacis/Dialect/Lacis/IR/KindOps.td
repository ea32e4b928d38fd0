// SPDX-License-Identifier: Apache-2.0
// Level kinds that a user defines: their arrays, what is true of them, and their methods as code; and bindings.

#ifndef LACIS_KIND_OPS_TD
#define LACIS_KIND_OPS_TD

include "lacis/Dialect/Lacis/IR/LacisDialect.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Lacis_KindOp : Lacis_Op<"kind", [Symbol, IsolatedFromAbove]> {
  let summary = "A level kind, written `@name` in formats.";
  let description = [{
    `arrays` are what a level of the kind stores: an integer type (`ui8`, `ui16` and `ui32` have no sign), and how long it is:
    an element `per parent`, `per position`, or as many of its `own` as it likes; `plus` says how many more. `facts` are
    `ordered` (coordinates ascend within a fibre), `unique` (none occurs twice in one), and `fills` (a position may have a
    coordinate and hold no entry, as in a stored block: the array `valid` says it), and `fixed = n` (each parent has n
    positions, which lie one behind the other: there is no `bounds` then).

    A method is code without effects, on indices: arithmetic, `scf` loops, `lacis.field` and `lacis.level_size`. It ends
    with `lacis.answer`.

    | method | arguments | answers |
    |---|---|---|
    | `bounds` | parent | the first position under it, and the one behind the last |
    | `open` | parent, first position | the state of a walk: one index or more |
    | `coordinate` | first position, position, state | coordinate, whether it is an entry (i1, if not all are), next state |
    | `seek` | first position, end, coordinate | the first position whose coordinate is at least that, or the end |
    | `find` | parent, coordinate | the position of the coordinate, and whether it has one (i1) |
    | `owner` | position, number of parents | the last parent whose positions do not begin behind the position |

    `coordinate` is there always, and `bounds` where the number of positions is not fixed; a pass that needs another one
    refuses a kind without it. `coordinate` takes states where there is `open`; then positions are walked in order.
    ```mlir
    lacis.kind @window arrays() facts(ordered, unique) {
      bounds(%parent) {
        %three = arith.constant 3 : index
        %lo = arith.muli %parent, %three : index
        %hi = arith.addi %lo, %three : index
        lacis.answer %lo, %hi : index, index
      }
      coordinate(%lo, %pos) {
        %crd = arith.subi %pos, %lo : index
        lacis.answer %crd : index
      }
    }
    func.func private @f(tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense, j : @window)>>)
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, ArrayAttr:$arrays, StrArrayAttr:$methods, UnitAttr:$ordered,
                       UnitAttr:$unique, UnitAttr:$fills, OptionalAttr<I64Attr>:$fixed);
  let regions = (region VariadicRegion<SizedRegion<1>>:$bodies);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The code of a method; null where there is none.
    ::mlir::Block *getMethod(::llvm::StringRef name);
    /// What attributes that name the kind answer: its arrays, the methods that it has, and what is true of it.
    ::mlir::DictionaryAttr getFacts();
  }];
}

def Lacis_BindingOp : Lacis_Op<"binding", [Symbol, IsolatedFromAbove]> {
  let summary = "A binding of a user's, written `@name(i, j)` in formats: the axes from its coordinate.";
  let description = [{
    `inverse` is code without effects on integers, which count in 64 bits as data do, and ends with `lacis.answer`: a coordinate
    for each axis. `same n` says that the binding has as many coordinates as its axis `n`.
    ```mlir
    lacis.binding @z_order inverse(%z) {
      %two = arith.constant 2 : index
      %i = arith.divsi %z, %two : index
      %j = arith.remsi %z, %two : index
      lacis.answer %i, %j : index, index
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<I64Attr>:$same);
  let regions = (region SizedRegion<1>:$inverse);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// What attributes that name the binding answer.
    ::mlir::DictionaryAttr getFacts();
    /// How many axes its code answers.
    unsigned getNumAxes() { return getInverse().front().back().getNumOperands(); }
  }];
}

def Lacis_AnswerOp : Lacis_Op<"answer", [Pure, ReturnLike, Terminator, ParentOneOf<["KindOp", "BindingOp"]>]> {
  let summary = "Ends a method of a level kind, or of a binding, with what it answers.";
  let arguments = (ins Variadic<AnyTypeOf<[Index, AnySignlessInteger]>>:$values);
  let assemblyFormat = "$values `:` type($values) attr-dict";
}

def Lacis_FieldOp : Lacis_Op<"field", [Pure]> {
  let summary = "An element of an array of the level whose kind this is.";
  let arguments = (ins FlatSymbolRefAttr:$array, Index:$index);
  let results = (outs Index:$result);
  let assemblyFormat = "$array `[` $index `]` attr-dict";
}

def Lacis_LevelSizeOp : Lacis_Op<"level_size", [Pure]> {
  let summary = "How many coordinates the level has whose kind this is.";
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

#endif // LACIS_KIND_OPS_TD
