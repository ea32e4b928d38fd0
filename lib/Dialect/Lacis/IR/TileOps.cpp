// SPDX-License-Identifier: Apache-2.0
/// \file
/// Text form and verifiers of the tile operations.
#include "lacis/Dialect/Lacis/IR/TilePart.h"
#include "lacis/Dialect/Lacis/IR/Lacis.h"

using namespace mlir;
using namespace lacis;

//===- Derived structures -------------------------------------------------===//

LogicalResult RegroupOp::verify() {
  auto from = cast<RankedTensorType>(getSource().getType()), to = cast<RankedTensorType>(getResult().getType());
  if (!formatOf(getSource()) || !formatOf(getResult()))
    return emitOpError("needs tensors with a '#lacis.format' encoding");
  unsigned copies = formatOf(getSource()).getNumBatchLevels();
  if (from.getShape().drop_front(copies) != to.getShape() || from.getElementType() != to.getElementType())
    return emitOpError("shape and element type stay what they are, but for the axes of a batch, whose values share them");
  if (to.getEncoding() != getLayout().getFormat())
    return emitOpError("the result has the format of the layout, ") << getLayout().getFormat();
  return success();
}

void RegroupOp::build(OpBuilder &b, OperationState &state, Value source, LayoutAttr layout) {
  auto type = cast<RankedTensorType>(source.getType());
  ArrayRef<int64_t> shape = type.getShape().drop_front(formatOf(source).getNumBatchLevels());
  build(b, state, RankedTensorType::get(shape, type.getElementType(), layout.getFormat()), source, layout);
}

LogicalResult OriginOp::verify() {
  return getTensor().getDefiningOp<RegroupOp>() ? success() : emitOpError("needs the result of 'lacis.regroup'");
}

LogicalResult BalanceOp::verify() {
  FormatAttr lists = formatOf(getResult());
  if (!formatOf(getSource()) || !lists)
    return emitOpError("needs tensors with a '#lacis.format' encoding");
  DerivedInterface schedule = getSchedule();
  if (schedule.getLists() == 0)
    return emitOpError("work lists follow from a schedule, not from ") << schedule;
  auto tiles = dyn_cast<TileScheduleAttr>(schedule);
  if (static_cast<bool>(getExtent()) != (tiles && !tiles.getPeriod()))
    return emitOpError("lists are 'over' an extent where a '#lacis.tile_schedule' has no period, and only there");
  SmallVector<DerivedArray> arrays = arraysOf(schedule, {formatOf(getSource()), {}, {}});
  size_t dense = arrays[0].name == "pos1" ? 1 : 2, more = arrays.size() - 2;
  ArrayRef<LevelAttr> levels = lists.getLevels();
  bool isList = levels.size() == dense + 1 + more && lists.getAxes().size() == levels.size() &&
                llvm::all_of(levels.take_front(dense), [](LevelAttr level) { return level.getExtent().coversDomain(); }) &&
                levels[dense].getCoordinate().isStored() &&
                llvm::all_of(levels.take_back(more), [](LevelAttr level) {
                  return level.getCoordinate().isStored() && level.getExtent().followsParent();
                });
  if (isList)
    return success();
  auto diagnostic = emitOpError("work lists have the format '(n, i, b) -> (n : dense, i : compressed<unique=false>, "
                                "b : singleton)'");
  if (dense == 2)
    diagnostic << ", with 'g : dense' before";
  if (more > 1)
    diagnostic << " and 'singleton' levels behind, " << more << " in all";
  return diagnostic;
}

//===- Loads --------------------------------------------------------------===//

/// The element type of a source that is still a tensor; null for a pointer.
static Type elementOf(Value source) {
  auto tensor = dyn_cast<RankedTensorType>(source.getType());
  return tensor ? tensor.getElementType() : Type();
}

/// Row and column; of a packed tensor behind the position, of a batch of matrices behind the number of one. Values in
/// copies have the number of one in front.
template <typename Op> static LogicalResult verifyIndices(Op op, Value array) {
  auto tensor = dyn_cast<RankedTensorType>(array.getType());
  size_t sizes = op.getShape() ? op.getShape()->size() : 2, given = op.getIndices().size();
  if (FormatAttr format = tensor ? formatOf(array) : FormatAttr()) {
    bool hasCopies = format.getNumBatchLevels() != 0;
    if (given == (hasCopies ? 4 : 3))
      return success();
    return op.emitOpError("needs ") << (hasCopies ? "4 indices: copy, " : "3 indices: ") << "position, row and column";
  }
  if (given == 2 && (tensor || sizes == 2))
    return success();
  bool isBatch = tensor ? tensor.getRank() > 2 : sizes >= 3;
  bool isApart = isa<LoadTileOp>(op) && given <= kMapAxes && given == (tensor ? tensor.getRank() : sizes);
  if (isBatch && (given == 3 || isApart))
    return success();
  return op.emitOpError("needs ") << (isBatch ? "3 indices: matrix, row and column" : "2 indices: row and column");
}

/// Loads that fill a tile together have equal parts of it.
static LogicalResult verifyPart(LoadTileOp op) {
  std::optional<ArrayRef<int64_t>> part = op.getPart();
  TileType tile = op.getTile().getType();
  int64_t size = tile.getRows() == 1 ? tile.getColumns() : tile.getRows();
  bool fits = !part || (part->size() == 2 && (*part)[0] >= 0 && (*part)[0] < (*part)[1] && size % (*part)[1] == 0);
  if (fits)
    return success();
  return op.emitOpError("'part' is the number of a part, and how many equal ones the ")
         << size << (tile.getRows() == 1 ? " columns" : " rows") << " of the tile have";
}

LogicalResult LoadTileOp::verify() {
  auto tensor = dyn_cast<RankedTensorType>(getSource().getType());
  if (tensor && tensor.getElementType() != getTile().getType().getElementType())
    return emitOpError("element types must agree: ") << tensor.getElementType() << " and "
                                                     << getTile().getType().getElementType();
  bool isVector = tensor && tensor.getRank() == 1, isOneRow = getTile().getType().getRows() == 1 && !getTile().getType().isList();
  if (isVector && getIndices().size() != 1)
    return emitOpError("needs 1 index: the first");
  if (!isVector && failed(verifyIndices(*this, getSource())))
    return failure();
  if (isVector && !isOneRow)
    return emitOpError("loads a vector into a tile of one row");
  if (!tensor && !getShape())
    return emitOpError("a pointer needs 'shape'");
  if (getStrides() && (tensor || getStrides()->size() + 1 != getIndices().size()))
    return emitOpError("'strides' are those of a pointer's axes but the last, each of which has an index");
  if (getPlace() && !getTile().getType().isList())
    return emitOpError("a list of tiles, and no other tile, has a place");
  return verifyPart(*this);
}

LogicalResult LoadRunOp::verify() {
  Type element = elementOf(getSource());
  if (element && (element != getTile().getType().getElementType() || !getSource().getDefiningOp<RegroupOp>()))
    return emitOpError("needs the result of 'lacis.regroup', of the tile's element type");
  if (!getTile().getType().isList())
    return emitOpError("fills a list of tiles");
  return success();
}

//===- Accumulators -------------------------------------------------------===//

/// The type of a sum is that of what it adds to.
static ParseResult parseSumTypes(OpAsmParser &parser, Type &acc, Type &result,
                                 std::optional<OpAsmParser::UnresolvedOperand> operand) {
  if (parser.parseType(result))
    return failure();
  if (operand)
    acc = result;
  return success();
}

static void printSumTypes(OpAsmPrinter &p, Operation *, Type, Type result, Value) { p << result; }

/// Rows of a tile are `size` rows or columns of the accumulator. At most `most` tiles follow each other there: transposed
/// ones side by side, others one below the other.
static bool fitsSide(TileType tile, bool transposed, int64_t size, int64_t most) {
  int64_t own = transposed ? tile.getColumns() : tile.getRows();
  return size % own == 0 && size / own <= most;
}

int64_t MmaOp::getDepth() {
  TileType b = getB().getType();
  return b.getDepth(getBTransposed()) * (getSecond() || getBTransposed() ? 1 : b.getCount());
}

/// How many tiles of an operand may follow each other along its own axis: those of a list that is taken whole follow each
/// other along k.
static int64_t mostOf(TileType tile, bool transposed, Value place) { return transposed || place ? tile.getCount() : 1; }

/// The left operand is an accumulator, which registers hold.
static LogicalResult verifyHeld(MmaOp op, AccType a) {
  TileType b = op.getB().getType();
  AccType acc = op.getResult().getType();
  if (op.getFirst() || op.getPresent() || op.getATransposed() || op.getTf32())
    return op.emitOpError("an accumulator as a is taken whole, as it lies, and in its own type");
  if (a.getElementType() != b.getElementType() || a.getRows() != acc.getRows() || a.getColumns() != op.getDepth() ||
      !fitsSide(b, op.getBTransposed(), acc.getColumns(), mostOf(b, op.getBTransposed(), op.getSecond())))
    return op.emitOpError("an accumulator as a has the rows of the result, and as columns the k of b, in its type");
  return success();
}

/// A list needs a place, but where its tiles follow each other along k it can be taken whole.
static bool hasPlace(TileType tile, Value place, bool canBeWhole) {
  return tile.isList() ? place || canBeWhole : !place;
}

/// Does the left tile, or do tiles of the left list, cover the k of the other side?
static bool coversDepth(MmaOp op, TileType a) {
  int64_t step = a.getDepth(op.getATransposed()), all = op.getDepth(), own = op.getB().getType().getDepth(op.getBTransposed());
  if (all != own && step != own)
    return false;
  if (op.getPresent())
    return all % step == 0 && all / step <= 32;
  if (op.getATransposed() || !a.isList())
    return step == all;
  return op.getFirst() ? all % step == 0 && all / step <= a.getCount() : step * a.getCount() == all;
}

LogicalResult MmaOp::verify() {
  TileType a = getATile(), b = getB().getType();
  AccType acc = getResult().getType();
  bool isWhole = !getATransposed() && !getPresent();
  if ((a && !hasPlace(a, getFirst(), isWhole)) || !hasPlace(b, getSecond(), !getBTransposed() && !getPresent()))
    return emitOpError("a list of tiles, and no other tile, needs the place of the first");
  if (!a)
    return verifyHeld(*this, cast<AccType>(getA().getType()));
  if (getPresent() && !a.isList())
    return emitOpError("present: a must be a list of tiles");
  if (a.getElementType() != b.getElementType())
    return emitOpError("element types of the tiles must agree: ") << a.getElementType() << " and "
                                                                  << b.getElementType();
  if (getTf32() && !a.getElementType().isF32())
    return emitOpError("tf32 is of tiles of f32; got ") << a.getElementType();
  if (!fitsSide(a, getATransposed(), acc.getRows(), getPresent() ? 1 : mostOf(a, getATransposed(), getFirst())) ||
      !fitsSide(b, getBTransposed(), acc.getColumns(), mostOf(b, getBTransposed(), getSecond())))
    return emitOpError("a gives the rows of the accumulator, and b its columns: by the rows of tiles, or by the "
                       "columns of transposed ones");
  return coversDepth(*this, a) ? success()
                               : emitOpError("a and b must agree in k, or a cover that of b where 'present' is given");
}

LogicalResult VersionOp::verify() {
  ArrayRef<int64_t> numbers = getNumbers();
  if (numbers.empty() || numbers.front() < 1 || !llvm::is_sorted(numbers, std::less_equal<int64_t>()))
    return emitOpError("chooses between positive numbers that ascend");
  return success();
}

LogicalResult MmaGatheredOp::verify() {
  TileType a = getA().getType(), b = getB().getType();
  AccType acc = getAcc().getType();
  auto count = static_cast<int64_t>(getColumns().size()), rows = static_cast<int64_t>(getRows().size());
  if (!a.isList() || !b.isList() || a.getElementType() != b.getElementType() || a.getDepth(true) != b.getDepth(true))
    return emitOpError("needs two lists of transposed tiles that agree in k and in their type");
  if (count == 0 || acc.getColumns() % count != 0 || rows == 0 || rows % count != 0 || acc.getRows() % (rows / count) != 0)
    return emitOpError("the columns of the accumulator are as many groups as 'columns', and its rows as many as each of "
                       "them has in 'rows'");
  return success();
}

LogicalResult CompleteOp::verify() {
  return getValues().getTypes() == getResults().getTypes() ? success()
                                                           : emitOpError("gives what it takes, type by type");
}

LogicalResult MapOp::verify() {
  Block &block = getBody().front();
  auto yield = dyn_cast_or_null<YieldOp>(block.empty() ? nullptr : &block.back());
  AccType result = getResult().getType();
  if (!yield || yield.getNumOperands() != 1 || yield.getOperand(0).getType() != result.getElementType())
    return emitOpError("body must yield one ") << result.getElementType();
  if (!getPlaces().empty() && getPlaces().size() != 2)
    return emitOpError("is 'at' a row and a column");
  if (block.getNumArguments() != getValues().size() + getPlaces().size())
    return emitOpError("body needs one argument for each operand");
  if (ValueRange(block.getArguments()).take_back(getPlaces().size()).getTypes() != getPlaces().getTypes())
    return emitOpError("the last arguments of the body are coordinates, of the types of those that the map is 'at'");
  for (auto [value, argument] : llvm::zip(getValues(), block.getArguments())) {
    auto type = cast<AccType>(value.getType());
    if (argument.getType() != type.getElementType())
      return emitOpError("arguments of the body are elements of the operands");
    if (type.getRows() != result.getRows() || (type.getColumns() != 1 && type.getColumns() != result.getColumns()))
      return emitOpError("operands have the shape of the result, or its rows and one column");
  }
  return success();
}

LogicalResult ReduceRowsOp::verify() {
  AccType from = getValue().getType(), to = getResult().getType();
  if (getKind() != "sum" && getKind() != "max")
    return emitOpError("kind is 'sum' or 'max', not '") << getKind() << "'";
  if (to.getRows() != from.getRows() || !to.isOfRows() || to.getColumns() > from.getColumns() || to.getElementType() != from.getElementType())
    return emitOpError("gives one number for each row, or four parts of it");
  return success();
}

LogicalResult ColumnsOp::verify() {
  AccType from = getValue().getType(), to = getResult().getType();
  if (to.getRows() != from.getRows() || to.getElementType() != from.getElementType())
    return emitOpError("rows and element type stay what they are");
  if (static_cast<int64_t>(getFirst()) < 0 || getFirst() + to.getColumns() > static_cast<uint64_t>(from.getColumns()))
    return emitOpError("columns ") << getFirst() << " to " << getFirst() + to.getColumns() << " of "
                                   << from.getColumns();
  return success();
}

LogicalResult ReadTileOp::verify() {
  TileType tile = getTile().getType();
  AccType acc = getAcc().getType();
  bool isWhole = tile.isList() && !getPlace() && !getTransposed();
  if (!isWhole && tile.isList() != static_cast<bool>(getPlace()))
    return emitOpError("a list of tiles, and no other tile, needs the place of one");
  if (acc.getElementType() != tile.getElementType() && !acc.getElementType().isF32())
    return emitOpError("gives float32, or what the tile holds");
  int64_t rows = getTransposed() ? tile.getColumns() : tile.getRows();
  int64_t columns = getTransposed() ? tile.getRows() : tile.getColumns() * (isWhole ? tile.getCount() : 1);
  if (getPlace() && !getTransposed()) // as many tiles side by side as the accumulator has columns for
    columns *= std::clamp<int64_t>(acc.getColumns() / tile.getColumns(), 1, tile.getCount());
  return rows == acc.getRows() && columns == acc.getColumns()
             ? success()
             : emitOpError("the accumulator has the rows and columns of the tile");
}

LogicalResult ReadColumnsOp::verify() {
  TileType tile = getTile().getType();
  AccType acc = getAcc().getType();
  if (tile.isList() || tile.getRows() != 1 || tile.getColumns() != acc.getColumns())
    return emitOpError("reads a tile of one row, with the columns of the accumulator");
  return tile.getElementType() == acc.getElementType() ? success() : emitOpError("gives what the tile holds");
}

/// A dense tensor, or a pointer to one.
template <typename Op> static LogicalResult verifyVector(Op op) {
  auto tensor = dyn_cast<RankedTensorType>(op.getSource().getType());
  if (tensor && (tensor.getRank() == 0 || tensor.getEncoding()))
    return op.emitOpError("needs a dense vector");
  if (!tensor && (!op.getSize() || !op.getType()))
    return op.emitOpError("a pointer needs its size and 'type'");
  return success();
}

LogicalResult LoadRowsOp::verify() {
  return getAcc().getType().getColumns() == 1 ? verifyVector(*this)
                                              : emitOpError("gives an accumulator of one column");
}

LogicalResult LoadColumnsOp::verify() { return verifyVector(*this); }

LogicalResult StoreRowsOp::verify() {
  if (getValue().getType().getColumns() != 1 || !getValue().getType().getElementType().isF32())
    return emitOpError("stores an accumulator of one column of f32");
  auto tensor = dyn_cast<RankedTensorType>(getTarget().getType());
  if (tensor && (tensor.getEncoding() || !tensor.getElementType().isF32()))
    return emitOpError("stores to a dense tensor of f32, not to ") << tensor;
  if (tensor && static_cast<int64_t>(getIndices().size()) != tensor.getRank())
    return emitOpError("needs ") << tensor.getRank() << " indices, the last of which is that of the first row";
  if (!tensor && (!getSize() || getIndices().size() != 1))
    return emitOpError("a pointer needs one index, and where rows end");
  return success();
}

/// The workspace lies in tiles of the accumulator, where its levels are still there.
static LogicalResult verifyTiles(Operation *op, Value workspace, AccType acc) {
  Type element = elementOf(workspace);
  if (!element)
    return success();
  FormatAttr format = formatOf(workspace);
  ArrayRef<LevelAttr> levels = format ? format.getLevels() : ArrayRef<LevelAttr>();
  auto ends = [&](size_t back, int64_t size) {
    ArrayRef<Digit> digits = levels[levels.size() - back].getDigits();
    return digits.size() == 1 && digits[0].div == 1 && digits[0].mod == size;
  };
  bool fits = workspace.getDefiningOp<WorkspaceOp>() && element == acc.getElementType() && levels.size() == 4 &&
              ends(2, acc.getRows()) && ends(1, acc.getColumns());
  return fits ? success()
              : op->emitOpError(
                    "needs a workspace in tiles of the rows and columns of the accumulator, and of its type");
}

LogicalResult LoadAccOp::verify() {
  if (getOnto() && getOnto().getType() != getAcc().getType())
    return emitOpError("adds to an accumulator of its own type");
  return verifyTiles(*this, getSource(), getAcc().getType());
}

LogicalResult StoreAccOp::verify() { return verifyTiles(*this, getTarget(), getAcc().getType()); }

LogicalResult StoreBlocksOp::verify() {
  if (getSlots().empty() || getValue().getType().getRows() % getSlots().size() != 0)
    return emitOpError("the rows of the accumulator are as many groups as there are slots");
  if (!elementOf(getTarget()) && (!getShape() || !getType()))
    return emitOpError("a pointer needs 'shape' and 'type'");
  FormatAttr format = elementOf(getTarget()) ? formatOf(getTarget()) : FormatAttr();
  if (elementOf(getTarget()) && !format)
    return emitOpError("the target is sampled on a pattern with stored blocks");
  if (static_cast<bool>(getBatch()) != (format && format.getNumBatchLevels() != 0))
    return emitOpError("says which copy of the values it means, by 'batch', where levels of kind 'batch' make several, and "
                       "nowhere else");
  return success();
}

/// The tiles of a list stand side by side.
static LogicalResult verifyThrough(StoreTileOp op) {
  if (!op.getThrough())
    return op.getSlot() ? op.emitOpError("is staged from a tile on only where it is 'through' a list") : success();
  TileType tile = op.getThrough().getType();
  AccType acc = op.getValue().getType();
  int64_t tiles = acc.getColumns() / tile.getColumns();
  bool fits = !op.getTransposed() && tile.getRows() == acc.getRows() && tiles * tile.getColumns() == acc.getColumns() &&
              (op.getSlot() ? tile.isList() && tiles <= tile.getCount() : tiles == tile.getCount());
  return fits ? success() : op.emitOpError("is staged in tiles that have the rows of the accumulator and, side by side, its columns");
}

LogicalResult StoreTileOp::verify() {
  if (!elementOf(getTarget()) && (!getShape() || !getType()))
    return emitOpError("a pointer needs 'shape' and 'type'");
  return failed(verifyIndices(*this, getTarget())) ? failure() : verifyThrough(*this);
}

#define GET_OP_CLASSES
#include "lacis/Dialect/Lacis/IR/TileOps.cpp.inc"
