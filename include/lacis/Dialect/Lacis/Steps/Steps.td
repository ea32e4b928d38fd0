// SPDX-License-Identifier: Apache-2.0
// Schedule steps: one attribute a verb, its fields named and in any order, those with their default left out.

#ifndef LACIS_STEPS_TD
#define LACIS_STEPS_TD

include "lacis/Dialect/Lacis/Steps/StepBase.td"

def Lacis_Names : AttrConstraint<
    CPred<"::llvm::all_of($_self, [](::mlir::Attribute name) { return ::llvm::isa<::mlir::StringAttr>(name); })">,
    "a list of names in quotes"> {
  string cppType = "::mlir::ArrayAttr";
}

//===- Shapes -------------------------------------------------------------===//

def Lacis_SplitStep : Lacis_Step<"Split", "split"> {
  let summary = "for i in n  -->  for i0 in ceil(n / factor): for i1 in factor";
  let parameters = (ins StringRefParameter<>:$loop, "int64_t":$factor);
}

def Lacis_UptoStep : Lacis_Step<"Upto", "upto"> {
  let summary = "for b in n  -->  if n <= 8: for upto8.b in n, else: for b in n";
  let description = "Sizes of `loop` up to `most` get a nest of their own, a copy whose loops' names begin with `upto8.`.";
  let parameters = (ins StringRefParameter<>:$loop, "int64_t":$most);
}

def Lacis_SplitNnzStep : Lacis_Step<"SplitNnz", "split_nnz"> {
  let summary = "for i: for j in row(i)  -->  for i_j0 in ceil(entries / factor): for i: for j in its share of row(i)";
  let description = "Of one row, in strips of `factor` entries or in so many `parts`: for j  -->  for j0: for j1.";
  let parameters = (ins StringRefParameter<>:$loop, OptionalParameter<"std::optional<int64_t>">:$factor,
                        OptionalParameter<"std::optional<int64_t>">:$parts);
}

def Lacis_FindStep : Lacis_Step<"Find", "find"> {
  let summary = "for p in row (j)  -->  for j: p, there = find j; if there";
  let description = "The loop runs over the coordinates of the level, each of which is found, in the place of its positions.";
  let parameters = (ins StringRefParameter<>:$loop);
}

def Lacis_FuseStep : Lacis_Step<"Fuse", "fuse"> {
  let summary = "for i: for j  -->  for i_j";
  let parameters = (ins StringRefParameter<>:$outer, StringRefParameter<>:$inner);
}

def Lacis_ReorderStep : Lacis_Step<"Reorder", "reorder", ["unify"]> {
  let summary = "for i: for j  -->  for j: for i";
  let parameters = (ins Lacis_Names:$loops);
}

def Lacis_RelayoutStep : Lacis_Step<"Relayout", "relayout"> {
  let summary = "The nest reads a copy of the operand in another dense layout, made in workspace.";
  let description = "Without a layout the axes are stored in reverse.";
  let parameters = (ins StringRefParameter<>:$operand, OptionalParameter<"::mlir::Attribute">:$layout);
}

def Lacis_ComputeAtStep : Lacis_Step<"ComputeAt", "compute_at"> {
  let summary = "for i0: s(t); for i0: y = t  -->  for i0: s(tile); y = tile";
  let parameters = (ins StringRefParameter<>:$operand, StringRefParameter<>:$loop);
}

def Lacis_HorizontalFuseStep : Lacis_Step<"HorizontalFuse", "horizontal_fuse"> {
  let summary = "for i: s of ell; s of rest  -->  for i: for ell_rest in 2: s of this part";
  let parameters = (ins "::mlir::ArrayAttr":$parts);
}

def Lacis_ApartStep : Lacis_Step<"Apart", "apart"> {
  let summary = "for i: s  -->  for rest.i in the rows that part `rest` lists: s; for i in the others: s without it";
  let description = [{
    Where each row lies in one part (`own` with `classes`), parts have nests already: those named join the launch of the
    last nest. Of an operand that is no sum, the rows with at least `least` entries have a nest that `part` names.
  }];
  let parameters = (ins StringRefParameter<>:$part, OptionalParameter<"::mlir::ArrayAttr">:$others,
                        OptionalParameter<"std::optional<int64_t>">:$least);
}

def Lacis_PrecomputeStep : Lacis_Step<"Precompute", "precompute"> {
  let summary = "for i: s of blocks; s of rest  -->  for rest.i: t[i] = s of rest;  for i: s = t[i]; s of blocks";
  let description = [{
    `t` is workspace in the type of the sum: dense levels over the output's axes, as `layout` says, or in their order.
  }];
  let parameters = (ins StringRefParameter<>:$part, OptionalParameter<"::mlir::Attribute">:$layout);
}

//===- Marks --------------------------------------------------------------===//

def Lacis_ParallelStep : Lacis_Step<"Parallel", "parallel"> {
  let summary = "The threads of a CPU, or the blocks of a GPU, share the iterations of the loop.";
  let parameters = (ins StringRefParameter<>:$loop);
}

def Lacis_BindStep : Lacis_Step<"Bind", "bind"> {
  let summary = "The loop runs on a unit of a GPU: block.x, thread.x (y, z), warp, lane, warpgroup.";
  let parameters = (ins StringRefParameter<>:$loop, StringRefParameter<>:$unit);
}

def Lacis_VectorizeStep : Lacis_Step<"Vectorize", "vectorize"> {
  let summary = "The loop becomes the lanes of one vector.";
  let parameters = (ins StringRefParameter<>:$loop, "int64_t":$width);
}

def Lacis_JamStep : Lacis_Step<"Jam", "jam"> {
  let summary = "The loop is unrolled and its copies share the loops inside.";
  let parameters = (ins StringRefParameter<>:$loop);
}

def Lacis_UnrollStep : Lacis_Step<"Unroll", "unroll", ["unify"]> {
  let summary = "The loop runs `factor` rounds at once; all of them without a factor.";
  let description = "Of a loop that carries a sum, the rounds that run at once add to `sums` sums, which are added up at the end.";
  let parameters = (ins StringRefParameter<>:$loop, OptionalParameter<"std::optional<int64_t>">:$factor,
                        OptionalParameter<"std::optional<int64_t>">:$sums);
}

def Lacis_RaceStep : Lacis_Step<"Race", "race"> {
  let summary = "How iterations of the loop that meet in one output are brought together: by a strategy.";
  let parameters = (ins StringRefParameter<>:$loop, StringRefParameter<>:$strategy);
}

//===- Tiles --------------------------------------------------------------===//

def Lacis_RegroupStep : Lacis_Step<"Regroup", "regroup", ["unify"]> {
  let summary = "The nest walks the operand in an execution layout, made of pattern and values.";
  let parameters = (ins StringRefParameter<>:$operand, "::mlir::Attribute":$layout,
                        OptionalParameter<"std::optional<int64_t>">:$capacity);
}

def Lacis_BalanceStep : Lacis_Step<"Balance", "balance", ["unify"]> {
  let summary = "The tiles that two loops run over are handed out in work lists, the heaviest first.";
  let description = [{
    Shares of stored blocks lie `within` so many columns, and are cut into up to so many `parts` of their sums, where that
    is given. Up to `cut` tiles of `loop` long rows are cut. A nest behind adds up the parts.
  }];
  let parameters = (ins StringRefParameter<>:$loop, "int64_t":$raster, "int64_t":$groups,
                        OptionalParameter<"std::optional<int64_t>">:$within,
                        OptionalParameter<"std::optional<int64_t>">:$cut,
                        OptionalParameter<"std::optional<int64_t>">:$parts);
}

def Lacis_StageStep : Lacis_Step<"Stage", "stage"> {
  let summary = "Tiles of the operand are loaded into shared memory before they are multiplied.";
  let description = "In the rounds of `loop`, by all threads of a block; without it for the loops that `tensorize` marks.";
  let parameters = (ins StringRefParameter<>:$operand, StringRefParameter<>:$place,
                        OptionalParameter<"::mlir::StringAttr">:$loop);
}

def Lacis_PipelineStep : Lacis_Step<"Pipeline", "pipeline", ["unify"]> {
  let summary = "What later rounds of the loop add up is loaded while this round is: tiles by a producer, else into registers.";
  let parameters = (ins StringRefParameter<>:$loop, "int64_t":$stages);
}

def Lacis_TensorizeStep : Lacis_Step<"Tensorize", "tensorize", ["unify"]> {
  let summary = "The loops become the rows, columns and depth of one product of tiles.";
  let description = [{
    Of warpgroups, which `stage` and `pipeline` feed, with `kind = "tf32"` of float32 in 10 bits of the mantissa; with
    `kind = "mma"` of one warp, which reads them from memory. A loop that `roll` made, named alone: its statements are of tiles.
  }];
  let parameters = (ins Lacis_Names:$loops, OptionalParameter<"::mlir::StringAttr">:$kind);
}

def Lacis_SkewStep : Lacis_Step<"Skew", "skew", ["unify"]> {
  let summary = "for j: A(j); B(j)  -->  A(0); for j >= 1: A(j) beside B(j - 1); B(last)";
  let description = [{
    Of a loop that `roll` made and `tensorize` marks: sums B that nothing of their round reads, and that multiply what A
    made, are complete in the next one. With `rounds = 0` each round completes its own.
  }];
  let parameters = (ins StringRefParameter<>:$loop, OptionalParameter<"std::optional<int64_t>">:$rounds);
}

//===- Facts --------------------------------------------------------------===//

def Lacis_WalkStep : Lacis_Step<"Walk", "walk", ["getWalk", "comesFirst"]> {
  let summary = "The operand is walked by these axes first: in its own order, or through its companion index.";
  let parameters = (ins StringRefParameter<>:$operand, Lacis_Names:$axes);
}

def Lacis_OwnStep : Lacis_Step<"Own", "own", ["getOwnerForm", "comesFirst"]> {
  let summary = "The levels of the operand own the elements of the output in this form: list, push, share or companion.";
  let description = "`why` says why a form was chosen; it changes nothing.";
  let parameters = (ins StringRefParameter<>:$operand, StringRefParameter<>:$form, OptionalParameter<"::mlir::StringAttr">:$why);
}

def Lacis_RollStep : Lacis_Step<"Roll", "roll", ["getRolledLoop", "getRoundColumns", "comesFirst"]> {
  let summary = "for j: m; for j: l, o of m  -->  for j: n = max(m, t); l = l r + s(n); o = o r + s(n); m = n";
  let description = [{
    A maximum of a chain of statements and the sums below it are one loop, which rescales the sums. A round on tiles takes
    `columns` of a stored block, 64 or 128; 64, or all that there are, where nothing is said.
  }];
  let parameters = (ins StringRefParameter<>:$loop, OptionalParameter<"std::optional<int64_t>">:$columns);
}

def Lacis_KeepStep : Lacis_Step<"Keep", "keep", ["getKeptTensor", "comesFirst"]> {
  let summary = "for i: y = s(t)  -->  for t.i: w = t;  for i: y = s(w)";
  let description = "What a statement of a chain makes has a nest of its own and a workspace.";
  let parameters = (ins StringRefParameter<>:$tensor);
}

def Lacis_SpecializeStep : Lacis_Step<"Specialize", "specialize", ["comesFirst"]> {
  let summary = "The letters have these sizes; the launch refuses others.";
  let parameters = (ins "::mlir::DictionaryAttr":$sizes);
}

#endif // LACIS_STEPS_TD
