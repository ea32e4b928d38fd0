// SPDX-License-Identifier: Apache-2.0
// Formats and sums of formats: encodings of tensor types.

#ifndef LACIS_ATTRS_TD
#define LACIS_ATTRS_TD

include "lacis/Dialect/Lacis/IR/LacisDialect.td"
include "lacis/Dialect/Lacis/IR/BindingInterface.td"
include "lacis/Dialect/Lacis/IR/DerivedInterface.td"
include "lacis/Dialect/Lacis/IR/MarkEnums.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/TensorEncoding.td"

def Lacis_LevelAttr : Lacis_Attr<"Level", "level"> {
  let summary = "Digits of the axes, how many positions lie under a parent, and how their coordinates are known.";
  let description = [{
    Axes are called `d0`, `d1`, … where the level stands alone. `link` has no digits.
    ```mlir
    #columns = #lacis.level<d1 : compressed>
    #blocks = #lacis.level<(d0 floordiv 16, d1 floordiv 16) : compressed<unique=false>>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"::lacis::Digit">:$digits,
    "::lacis::ExtentInterface":$extent,
    "::lacis::CoordinateInterface":$coordinate);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The alias, or `extent*coordinate`.
    std::string getKindName() const;
    /// A dense level whose size the text gives: a dimension of a stored block.
    bool isStaticDense() const;
    /// Positions that hold no entry may occur.
    bool isPadded() const;
    bool hasCode() const;
    /// The name of an array that has one element for each position; empty where there is none.
    ::llvm::StringRef getPositionsArray() const;
    /// A position is known, with its coordinate, without those before it; and how many there are, before the launch.
    bool isRandomAccess() const;
    /// The arrays of the extent, then those of the coordinate.
    ::llvm::SmallVector<::lacis::BufferSpec> getBuffers() const;
    void printWith(::mlir::AsmPrinter &printer, ::lacis::Names names) const;
    static LevelAttr parseWith(::mlir::AsmParser &parser, ::lacis::Names names);
    /// The level whose kind has these words in the grammar; null (and an error) when there is none.
    static LevelAttr getByName(::mlir::MLIRContext *context, ::llvm::ArrayRef<::lacis::Digit> digits,
                               ::llvm::StringRef extent, ::llvm::StringRef coordinate,
                               ::lacis::KindArguments arguments);
  }];
}

def Lacis_FormatAttr : Lacis_Attr<"Format", "format",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "A storage format: an ordered list of levels over digits of the axes.";
  let description = [{
    Each axis is covered exactly once by its digits, or through a binding.
    ```mlir
    #csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
    #bsr = #lacis.format<(i, j) -> (i floordiv 16 : dense, j floordiv 16 : compressed, i mod 16 : dense, j mod 16 : dense)>
    #dia = #lacis.format<(i, j) let d = j - i -> (d : compressed, i : range)>
    func.func private @f(tensor<?x?xf32, #csr>, tensor<?x?xf16, #bsr>, tensor<?x?xf64, #dia>)
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"::mlir::StringAttr">:$axes,
    ArrayRefParameter<"::mlir::Attribute">:$bindings,
    ArrayRefParameter<"::lacis::LevelAttr">:$levels,
    "bool":$multiset,
    "::mlir::Attribute":$layout);
  let builders = [
    AttrBuilder<(ins "::llvm::ArrayRef<::mlir::StringAttr>":$axes, "::llvm::ArrayRef<::lacis::LevelAttr>":$levels),
                [{ return $_get($_ctxt, axes, ::llvm::ArrayRef<::mlir::Attribute>{}, levels, false, ::mlir::Attribute()); }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The axes, then the names of the bindings: what digits refer to.
    ::llvm::SmallVector<::mlir::StringAttr> getNames() const;
    /// The length of the longest suffix of levels that are dense with a static size: the stored block.
    unsigned getNumTileLevels() const;
    /// How many levels, the first ones, are of values alone: copies that share the pattern of the others.
    unsigned getNumBatchLevels() const;
    /// The levels below those.
    ::llvm::ArrayRef<::lacis::LevelAttr> getPatternLevels() const { return getLevels().drop_front(getNumBatchLevels()); }
    /// The index to walk this format by `leadingAxes`: dense levels over them, the others compressed, a link to
    /// this format's slots, and the stored block. Null when there is nothing left to compress.
    ::lacis::FormatAttr companion(::llvm::ArrayRef<unsigned> leadingAxes) const;
    /// Loops over all its levels can be generated; else its companions are walked.
    bool hasCode() const;
    /// i64 when any index array is, else i32.
    ::mlir::IntegerType getIndexType() const;
  }];
}

def Lacis_CompareAttr : Lacis_Attr<"Compare", "compare"> {
  let summary = "One test of a rule that splits a tensor: `fits`, or a term against a number.";
  let description = [{
    `term` is `fits`, `slot`, `nnz` or `digit`; `slot(j in i)` has the digits j, i. It has no text of its own.
  }];
  let parameters = (ins "::mlir::StringAttr":$term, ArrayRefParameter<"::lacis::Digit">:$digits,
                        "::mlir::StringAttr":$comparison, "int64_t":$value);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    bool isFits() const { return getTerm().getValue() == "fits"; }
    void printWith(::mlir::AsmPrinter &printer, ::lacis::Names names) const;
    static CompareAttr parseWith(::mlir::AsmParser &parser, ::lacis::Names names);
  }];
}

def Lacis_SumAttr : Lacis_Attr<"Sum", "sum", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "A tensor as a sum of parts, each with its own format, disjoint by the rules.";
  let description = [{
    An entry goes to the first part whose rule it meets, else to the last. A predicate is an array of
    `#lacis.compare` that must all hold; the last part has none.
    ```mlir
    #hyb = #lacis.sum<ell = #lacis.format<(i, j) -> (i : dense, j : packed<32>)> when fits,
                      rest = #lacis.format<(i, j) -> (i : compressed<unique=false>, j : singleton)>>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"::mlir::StringAttr">:$names,
    ArrayRefParameter<"::lacis::FormatAttr">:$formats,
    ArrayRefParameter<"::mlir::Attribute">:$predicates);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

class Lacis_Binding<string name, string mnemonic, list<string> methods = []>
    : Lacis_Attr<name # "Binding", mnemonic, [DeclareAttrInterfaceMethods<Lacis_BindingInterface, methods>]> {
  let hasCustomAssemblyFormat = 1;
  let extraClassDefinition = [{
    ::mlir::Attribute $cppClass::parse(::mlir::AsmParser &parser, ::mlir::Type) {
      parser.emitError(parser.getCurrentLocation(), "a binding is written inside '#lacis.format'");
      return {};
    }
    void $cppClass::print(::mlir::AsmPrinter &printer) const {
      printer << '<' << getName().getValue() << " = ";
      printValue(printer, ::lacis::positionalNames(getContext()));
      printer << '>';
    }
  }];
}

def Lacis_AffineBinding : Lacis_Binding<"Affine", "affine", ["determines", "emitSize", "emitSolve"]> {
  let summary = "The sum or difference of two axes.";
  let description = [{
    ```mlir
    #diagonals = #lacis.format<(i, j) let d = j - i -> (d : compressed, i : range)>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "unsigned":$left, "bool":$minus, "unsigned":$right);
}

def Lacis_SlotBinding : Lacis_Binding<"Slot", "slot", ["isPosition", "getSizeName"]> {
  let summary = "The place of an entry among those of its fibre.";
  let description = [{
    ```mlir
    #by_place = #lacis.format<(i, j) let s = slot(j in i) -> (i : dense, s : ragged, j : singleton<pad=true>)>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "unsigned":$axis, ArrayRefParameter<"::lacis::Digit">:$within);
}

def Lacis_RankBinding : Lacis_Binding<"Rank", "rank", ["determines", "getArray", "getPermuted", "getSizeName", "emitSolve"]> {
  let summary = "The place of a row when rows are sorted by their number of entries, in windows of `within` rows.";
  let description = [{
    ```mlir
    #sorted = #lacis.format<(i, j) let r = rank(i by nnz within 128) -> (r : dense, j : compressed)>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "unsigned":$axis, "int64_t":$within);
}

def Lacis_UserBinding : Lacis_Binding<"User", "binding", ["determines", "getDefinition", "withFacts", "hasCode", "getPermuted",
                                                         "getSizeName", "emitSolve"]> {
  let summary = "A coordinate that the user computes from axes, which follow from it in turn.";
  let description = [{
    Loops find the axes by the operation `lacis.binding` of its name, of which `facts` are what `-lacis-resolve-kinds` looks up.
    Without that operation they walk the companion index. The text does not have the facts.
    ```mlir
    #z_order = #lacis.format<(i, j) let z = @morton(i, j) -> (z : compressed)>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "::mlir::FlatSymbolRefAttr":$symbol,
                        ArrayRefParameter<"unsigned">:$names, "::mlir::DictionaryAttr":$facts);
}

def Lacis_SizeAttr : Lacis_Attr<"Size", "size"> {
  let summary = "A size that the launch computes: a number, or an expression over numbers that it is given.";
  let description = [{
    `arg n` is argument n of the kernel, and where `lacis.artifact` says what tensors share, shared size n. A condition
    `x in [a, b]` is 1 where it holds and 0 elsewhere; `?` is no limit.
    ```mlir
    #panels = #lacis.size<ceildiv(arg 0, 64) * 2>
    #bytes = #lacis.size<(arg 1 in [33, ?]) * 4 * (arg 1 + 1)>
    #items = #lacis.size<min(arg 0, arg 1 * 4) + arg 2 * 2>
    func.func private @f() attributes {lacis.sizes = [#panels, #bytes, #items]}
    ```
  }];
  let parameters = (ins "::lacis::SizeKind":$kind, "int64_t":$number, "int64_t":$upto,
                        ArrayRefParameter<"::lacis::SizeAttr">:$of);
  let builders = [AttrBuilder<(ins "int64_t":$constant),
                              [{ return $_get($_ctxt, ::lacis::SizeKind::Constant, constant, -1, ::llvm::ArrayRef<SizeAttr>{}); }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static SizeAttr argument(::mlir::MLIRContext *context, int64_t number);
    /// The product, without factors that are 1; conditions first, for where one is 0 the others are not computed.
    static SizeAttr product(::mlir::MLIRContext *context, ::llvm::ArrayRef<SizeAttr> factors);
    SizeAttr times(SizeAttr other) const { return product(getContext(), {*this, other}); }
    SizeAttr times(int64_t number) const { return times(get(getContext(), number)); }
    SizeAttr plus(int64_t more) const;
    SizeAttr plus(SizeAttr other) const;
    SizeAttr min(SizeAttr other) const;
    SizeAttr ceilDiv(int64_t by) const;
    /// 1 where above < this <= upto (-1: no limit), else 0.
    SizeAttr within(int64_t above, int64_t upto) const;
    ::std::optional<int64_t> getConstant() const;
    /// The number of the argument that this is, and nothing else.
    ::std::optional<int64_t> getArgument() const;
    /// The factors of a product; of anything else, itself.
    ::llvm::SmallVector<SizeAttr, 4> getFactors() const;
    void walkArguments(::llvm::function_ref<void(int64_t)> visit) const;
    /// The size with `renumber(n)` in the place of argument n.
    SizeAttr replaceArguments(::llvm::function_ref<SizeAttr(int64_t)> renumber) const;
    /// The size with `replace(part)`, where that is not null, in the place of it or of a part of it.
    SizeAttr replaceParts(::llvm::function_ref<SizeAttr(SizeAttr)> replace) const;
  }];
}

//===- Derived arrays -----------------------------------------------------===//

class Lacis_Derived<string name, string mnemonic, list<string> methods = []>
    : Lacis_Attr<name, mnemonic, [DeclareAttrInterfaceMethods<Lacis_DerivedInterface, methods>]> {
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Lacis_CostAttr : Lacis_Attr<"Cost", "cost"> {
  let summary = "What work takes on a processor of a GPU: by it work lists are evened out.";
  let description = [{
    `bytes` arrive, and `clock` cycles pass, in a microsecond; a cycle has so many `products` (multiply-adds) of half
    precision. A panel costs `panel` nanoseconds beside its products and copies. Adding up parts of sums takes `start`
    nanoseconds, `part` for each part of the sum with the most, and `move` for each of all parts. A segment costs as much
    as so many positions more; a part of its sum costs the `kept`-th part of a mean segment more.
  }];
  let parameters = (ins "int64_t":$bytes, "int64_t":$products, "int64_t":$clock, "int64_t":$panel, "int64_t":$start,
                        "int64_t":$part, "int64_t":$move, "int64_t":$segment, "int64_t":$kept);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// That of a target, by the table of devices.
    static CostAttr of(::mlir::MLIRContext *context, ::llvm::StringRef target);
    ::mlir::DictionaryAttr getParameters() const;
  }];
}

def Lacis_IndexAttr : Lacis_Derived<"Index", "index"> {
  let summary = "The arrays of the levels of `format` above its stored blocks: a second index over the same values.";
  let description = [{
    With `least` coordinates of the first level are there alone that have so many entries.
    ```mlir
    #columns = #lacis.index<format = <(i, j) -> (j : dense, i : compressed<unique=false>, link)>>
    ```
  }];
  let parameters = (ins "::lacis::FormatAttr":$format, OptionalParameter<"std::optional<int64_t>">:$least);
}

def Lacis_LayoutAttr : Lacis_Derived<"Layout", "layout"> {
  let summary = "Stored blocks in tiles, in the order and size in which tensor cores read them.";
  let description = [{
    `format` has the levels panel, step, bitmap of tiles, `link` where tiles are parts of the values themselves, and the
    tile. Positions under one parent are at most `capacity`, where it is given: a coordinate that has more occurs again.
    In a copy of the values lines of `swizzle` bytes have their 16-byte chunks exchanged, 0 for none; the lowering to an
    architecture says so.
    ```mlir
    #pairs = #lacis.layout<capacity = 12, format = <(i, j) -> (i floordiv 128 : dense, j floordiv 64 : compressed,
        i floordiv 64 mod 2 : bitmap, i mod 64 : dense, j mod 64 : dense)>>
    ```
  }];
  let parameters = (ins "::lacis::FormatAttr":$format, OptionalParameter<"std::optional<int64_t>">:$capacity,
                        DefaultValuedParameter<"int64_t", "0">:$swizzle);
}

def Lacis_TileScheduleAttr : Lacis_Derived<"TileSchedule", "tile_schedule", ["getLists"]> {
  let summary = "Which worker makes which tiles of the output: pairs of a panel and a tile of `columns`.";
  let description = [{
    `swizzle_group` tiles are worked on together. List `swizzle_group * (g mod period) + m - 1` of each worker is what it
    does of group g, which has m of them. Without `period` lists are of one extent. With `split` there are lists for so many
    tiles besides, behind the others, in which long panels are cut: an item has its first step, how many, the number of the
    part, how many there are, and where the part of the sum is kept, negative for a whole one.
  }];
  let parameters = (ins "int64_t":$columns, "int64_t":$swizzle_group,
                        OptionalParameter<"std::optional<int64_t>">:$period,
                        OptionalParameter<"std::optional<int64_t>">:$split, "::lacis::CostAttr":$cost);
}

def Lacis_SegmentScheduleAttr : Lacis_Derived<"SegmentSchedule", "segment_schedule", ["getLists"]> {
  let summary = "Which worker takes which segments: up to `length` neighbouring positions of a panel.";
  let description = [{
    With `span` the positions lie within so many elements of their axis, and an item says its first and how many there
    are. With `split` there is a second list for each worker, of segments whose sums are cut into up to so many parts.
  }];
  let parameters = (ins "int64_t":$length, OptionalParameter<"std::optional<int64_t>">:$span,
                        OptionalParameter<"std::optional<int64_t>">:$split, "::lacis::CostAttr":$cost);
}

//===- Marks --------------------------------------------------------------===//

class Lacis_EnumMark<string name, string mnemonic, EnumInfo values> : Lacis_Attr<name, mnemonic> {
  let parameters = (ins EnumParameter<values>:$value);
  let assemblyFormat = "`<` $value `>`";
  let returnType = "::lacis::" # name;
  let convertFromStorage = "$_self.getValue()";
  let constBuilderCall = "::lacis::" # name # "Attr::get($_builder.getContext(), $0)";
}

def Lacis_ParallelUnitAttr : Lacis_EnumMark<"ParallelUnit", "unit", Lacis_ParallelUnit> {
  let summary = "Who runs the iterations of a loop side by side.";
  let description = [{
    `parallel` is the threads of a CPU; `threads` is all of a block, which take turns at the iterations.
  }];
}

def Lacis_TileSideAttr : Lacis_EnumMark<"TileSide", "side", Lacis_TileSide> {
  let summary = "A loop runs over the rows, the columns or the depth of a product of tiles.";
}

def Lacis_ReductionAttr : Lacis_EnumMark<"Reduction", "reduction", Lacis_Reduction> {
  let summary = "How a loop brings what its rounds make together with what it carries.";
}

def Lacis_WorkspacePlaceAttr : Lacis_EnumMark<"WorkspacePlace", "place", Lacis_WorkspacePlace> {
  let summary = "A workspace inside of a nest is a tile that a thread has to itself, or one in the memory of a block.";
}

def Lacis_AtomicKindAttr : Lacis_EnumMark<"AtomicKind", "atomic", Lacis_AtomicKind> {
  let summary = "How a write combines its value with what is there, in one instruction.";
}

def Lacis_WorkListsAttr : Lacis_Attr<"WorkLists", "work_lists"> {
  let summary = "How the tiles that two loops run over are handed out in lists: what the step `balance` says.";
  let parameters = (ins "int64_t":$raster, "int64_t":$groups, OptionalParameter<"std::optional<int64_t>">:$within,
                        OptionalParameter<"std::optional<int64_t>">:$cut,
                        OptionalParameter<"std::optional<int64_t>">:$parts);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Lacis_PathAttr : Lacis_Attr<"Path", "path"> {
  let summary = "What a loop belongs to, outermost first.";
  let description = [{
    Behind the letters of a loop: `"j"<case "upto8", part "ell">` is loop `j` of part `ell` of a sum, in the nest for at
    most 8 vectors. Steps and messages spell it `upto8.ell.j`.

    `case`: a nest for small sizes (`upto`). `part`: a part of a sum, or rows with a nest of their own (`apart`). `copy`: the
    operand that a nest copies (`relayout`). `rows`: the loop over rows whose entries are walked in equal shares, spelled
    `i_ell.j0`. `nest`: the loop for whose units a nest begins or ends sums. `statement`: a statement of a chain.
    `phase`: what a loop does beside the others, `first`, `last`, `scale`, `unlisted`, `finished`, `tile` or `copy`.
  }];
  let parameters = (ins ArrayRefParameter<"PathKind">:$kinds, ArrayRefParameter<"mlir::StringAttr">:$names);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The name of the first step, or of the last, if it is of this kind; else nothing.
    llvm::StringRef first(PathKind kind) const { return getKinds().front() == kind ? getNames().front().getValue() : ""; }
    llvm::StringRef last(PathKind kind) const { return getKinds().back() == kind ? getNames().back().getValue() : ""; }
    /// The steps without the first, or without the last; null where there is no other.
    PathAttr dropFirst() const;
    PathAttr dropLast() const;
    /// What a name begins with: `upto8.ell.`
    std::string spell() const;
    /// `<part "ell">`, or null where the text has no path.
    static mlir::FailureOr<PathAttr> parseOptional(mlir::AsmParser &parser);
  }];
}

#endif // LACIS_ATTRS_TD
