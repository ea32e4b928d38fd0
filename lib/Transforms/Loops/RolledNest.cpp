// SPDX-License-Identifier: Apache-2.0
/// \file
/// One loop over the positions of a row that carries sums, and a maximum where they are below one.
///
/// A position is an entry, or a dense tile of them; what a round makes stands in private tiles, and the statements of a
/// round are loops over these, one after another, whose paths have its name.
#include "RolledNest.h"

#include "RolledTiles.h"

#include "lacis/Dialect/Lacis/IR/Nest.h"
#include "lacis/Dialect/Lacis/IR/Workspace.h"

using namespace mlir;
using namespace lacis;

bool lacis::isReadBy(linalg::GenericOp reader, linalg::GenericOp statement) {
  return llvm::any_of(reader.getInputs(), [&](Value input) {
    auto maker = input.getDefiningOp<linalg::GenericOp>();
    return maker && (maker == statement || isReadBy(maker, statement));
  });
}

static Value constant(OpBuilder &b, Location loc, int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }

RolledNest::RolledNest(OutputLoops &outer, const Rescaled &chain, ArrayRef<KernelResult> results)
    : outer(outer), chain(chain), results(results), loc(results[0].output.getLoc()) {
  linalg::GenericOp first = this->chain.made[0];
  pattern = argumentOf(zerosOf(first.getOutputs()[0]).getSource());
  format = formatOf(pattern);
  element = cast<RankedTensorType>(first.getResult(0).getType()).getElementType();
  AffineMap map = first.getIndexingMapsArray().back();
  for (unsigned axis = 0; axis < map.getNumResults(); ++axis) {
    Letter letter;
    letter.name = letterName(first, map.getDimPosition(axis));
    letter.size = outer.sizes.lookup(letter.name);
    for (LevelAttr level : format.getLevels().drop_front(chain.level + 1))
      for (Digit digit : level.getDigits()) {
        if (digit.axis != axis)
          continue;
        (axis == summedAxis() ? columns : height) = digit.mod;
        tiledRow = axis == summedAxis() ? tiledRow : letter.name;
      }
    axis == summedAxis() ? void(column = letter) : rows.push_back(letter);
  }
  storedColumns = columns;
  if (chain.layout) {
    blockRows = height = kTileSide;
    blockColumns = columns = chain.layout.getLevels().back().getDigits()[0].mod;
    firstAxis = format.getNumBatchLevels();
    level = format.getAxes().size() - firstAxis - 1; // below a level for each axis but the summed one
    return;
  }
  level = chain.level;
  blockRows = height, blockColumns = columns;
  if (chain.readsInPlace)
    height = std::min(height, kTileSide), columns = std::min(columns, chain.columns);
}

std::string RolledNest::nameOf(linalg::GenericOp statement) const {
  auto name = statement->getAttrOfType<StringAttr>("lacis.name");
  return name ? name.str() : "t";
}

PathAttr RolledNest::pathOf(linalg::GenericOp statement, StringRef phase) const {
  MLIRContext *context = statement->getContext();
  PathAttr own = lacis::pathOf(context, PathKind::Statement, nameOf(statement));
  return phase.empty() ? own : join(lacis::pathOf(context, PathKind::Phase, phase), own);
}

/// Those above the rolled level, with the number of their first axis: those of the batch, and those of what is walked.
SmallVector<std::pair<LevelAttr, unsigned>> RolledNest::ownerLevels() {
  SmallVector<std::pair<LevelAttr, unsigned>> found;
  for (LevelAttr each : format.getLevels().take_front(chain.layout ? firstAxis : level))
    found.push_back({each, 0});
  for (LevelAttr each : chain.layout ? chain.layout.getLevels().take_front(level) : ArrayRef<LevelAttr>())
    found.push_back({each, firstAxis});
  return found;
}

/// Loops over the digits above the rolled level, whose position they locate.
LoopOp RolledNest::openOwners(OpBuilder &b) {
  SmallVector<LoopOp> loops;
  SmallVector<std::pair<unsigned, SmallVector<Value>>> located;
  SmallVector<std::pair<LevelAttr, unsigned>> owners = ownerLevels();
  for (auto [number, owner] : llvm::enumerate(owners)) {
    auto [level, first] = owner;
    SmallVector<Value> digits;
    for (Digit digit : level.getDigits()) {
      unsigned axis = digit.axis + first;
      Letter &letter = rows[axis - (axis > summedAxis())];
      Value size = letter.size;
      if (digit.div != 1)
        size = arith::CeilDivUIOp::create(b, loc, size, constant(b, loc, digit.div));
      OpBuilder inner = loops.empty() ? b : OpBuilder::atBlockEnd(loops.back().getBlock());
      loops.push_back(LoopOp::create(inner, loc, digitName(letter.name, 0, letter.name == tiledRow ? 2 : 1), size));
      b.setInsertionPoint(loops.front()); // sizes stand before the nest
      letter.digits.push_back({Digit{0, digit.div, digit.mod}, loops.back().getCoordinate()});
      digits.push_back(loops.back().getCoordinate());
    }
    if (!level.getExtent().sharesPattern())
      located.push_back({number - first, digits});
  }
  OpBuilder inner = OpBuilder::atBlockEnd(loops.back().getBlock());
  position = constant(inner, loc, 0);
  for (auto &[number, digits] : located)
    position = LocateOp::create(inner, loc, b.getIndexType(), walked, number, position, digits);
  closeLoops(loc, ArrayRef(loops).drop_back());
  b.setInsertionPointAfter(loops.front());
  if (blockRows == height)
    return loops.back();
  auto *letter = llvm::find_if(rows, [&](Letter &each) { return each.name == tiledRow; });
  LoopOp parts = openParts(loops.back().getBlock(), *letter, height, blockRows);
  rowPart = parts.getCoordinate();
  return parts;
}

/// A stored block with more rows or columns than a tile: its tiles walk the same position.
LoopOp RolledNest::openParts(Block *block, Letter &letter, int64_t ofTile, int64_t ofBlock) {
  OpBuilder inner = OpBuilder::atBlockEnd(block);
  auto parts = LoopOp::create(inner, loc, digitName(letter.name, 1, 3), constant(inner, loc, ofBlock / ofTile));
  letter.digits.push_back({Digit{0, ofTile, ofBlock}, parts.getCoordinate()});
  YieldOp::create(inner, loc);
  return parts;
}

Value RolledNest::placeInBlock(OpBuilder &b, Value part, int64_t ofTile, Value place) {
  if (!part)
    return place;
  return arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, part, constant(b, loc, ofTile)), place);
}

Value RolledNest::read(OpBuilder &b, Value tile, ValueRange at) {
  return ReadOp::create(b, loc, element, tile, at, Value(), IntegerAttr());
}

void RolledNest::write(OpBuilder &b, Value value, Value tile, ValueRange at) {
  WriteOp::create(b, loc, value, tile, at, Value(), IntegerAttr());
}

/// Opens the loops of a statement: rows of the tile, columns where asked for, and letters that only it has.
RolledNest::Tile RolledNest::open(OpBuilder at, linalg::GenericOp statement, PathAttr path, bool withColumns,
                                  bool withOthers) {
  Tile tile{at, {}, {}, {}, rows, {}, {}};
  auto loop = [&](const std::string &name, int64_t size) {
    OpBuilder before = tile.loops.empty() ? tile.b : OpBuilder(tile.loops.front()); // so that loops follow one another
    Value upper = constant(before, loc, size);
    OpBuilder inner = tile.loops.empty() ? tile.b : OpBuilder::atBlockEnd(tile.loops.back().getBlock());
    tile.loops.push_back(LoopOp::create(inner, loc, {name, path}, upper));
    return tile.loops.back().getCoordinate();
  };
  if (height > 1)
    tile.row = loop(nameOfRow(), height);
  if (withColumns && columns > 1)
    tile.column = loop(nameOfColumn(), columns);
  for (AffineExpr expr : statement.getIndexingMapsArray().back().getResults()) {
    std::string name = letterName(statement, cast<AffineDimExpr>(expr).getPosition());
    if (!withOthers || name == column.name || llvm::any_of(rows, [&](Letter &row) { return row.name == name; }))
      continue;
    Letter letter;
    letter.name = name;
    letter.size = outer.sizes.lookup(name);
    letter.coordinate = loop(name, *knownSize(letter.size));
    letter.digits = {{Digit{0, 1, 0}, letter.coordinate}};
    tile.others.push_back(letter.coordinate);
    tile.letters.push_back(letter);
  }
  if (!tile.loops.empty())
    tile.b = OpBuilder::atBlockEnd(tile.loops.back().getBlock());
  if (!tile.row)
    tile.row = constant(tile.b, loc, 0);
  placeRow(tile);
  return tile;
}

void RolledNest::close(Tile &tile) { closeLoops(loc, tile.loops); }

/// The coordinates of the rows. A row beyond the last computes what the last one does, and is not written; tiles read 0
/// there, and do not store it.
void RolledNest::placeRow(Tile &tile) {
  for (Letter &letter : tile.letters) {
    if (letter.coordinate)
      continue;
    if (letter.name == tiledRow)
      letter.digits.push_back({Digit{0, 1, height}, tile.row});
    letter.compose(tile.b, loc);
    if (chain.isOfTiles || letter.name != tiledRow || !needsGuard(letter.size, height, 2))
      continue;
    tile.inside = arith::CmpIOp::create(tile.b, loc, arith::CmpIPredicate::slt, letter.coordinate, letter.size);
    Value last = arith::SubIOp::create(tile.b, loc, letter.size, constant(tile.b, loc, 1));
    letter.coordinate = arith::MinSIOp::create(tile.b, loc, letter.coordinate, last);
    letter.digits.clear();
  }
}

/// The column becomes a letter; the condition that it is inside, or null.
Value RolledNest::placeColumn(Tile &tile, OpBuilder &b) {
  Letter letter = column;
  if (columns > 1)
    letter.digits.push_back({Digit{0, 1, columns}, tile.column});
  else
    tile.column = constant(b, loc, 0);
  letter.compose(b, loc);
  tile.letters.push_back(letter);
  if (!guardsColumns())
    return {};
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, letter.coordinate, letter.size);
}

/// A loop over the columns that carries a value; the value inside.
Value RolledNest::openColumns(Tile &tile, PathAttr path, ValueRange carried, LoopOp &loop,
                              std::optional<Reduction> reduce) {
  if (columns == 1)
    return carried.empty() ? Value() : carried[0];
  loop = LoopOp::create(tile.b, loc, {nameOfColumn(), path}, constant(tile.b, loc, columns), carried, reduce);
  tile.b = OpBuilder::atBlockEnd(loop.getBlock());
  tile.column = loop.getCoordinate();
  return carried.empty() ? Value() : Value(loop.getIterArgs()[0]);
}

SmallVector<Value> RolledNest::coordinates(OpBuilder &b, linalg::GenericOp statement, Tile &tile) {
  SmallVector<Value> found;
  for (AffineExpr expr : statement.getIndexingMapsArray().back().getResults()) {
    std::string name = letterName(statement, cast<AffineDimExpr>(expr).getPosition());
    auto *letter = llvm::find_if(tile.letters, [&](Letter &each) { return each.name == name; });
    found.push_back(letter == tile.letters.end() ? constant(b, loc, 0) : letter->coordinate);
  }
  return found;
}

/// m = -inf, sums = 0.
LogicalResult RolledNest::begin(OpBuilder &b) {
  for (unsigned number = 0; number < chain.made.size(); ++number)
    made.push_back(makeTile(b, loc, element, {height, columns}));
  for (unsigned number = 0; number < chain.linear.size(); ++number)
    linear.push_back(makeTile(b, loc, element, {height, columns}));
  SmallVector<linalg::GenericOp> statements(chain.followers);
  if (chain.largest) {
    largest = makeTile(b, loc, element, {height});
    ratio = makeTile(b, loc, element, {height});
    statements.insert(statements.begin(), chain.largest);
  }
  for (linalg::GenericOp each : statements) {
    Tile tile = open(b, each, pathOf(each, "first"), /*columns=*/false, /*others=*/true);
    Expression expression(outer.sizes);
    FailureOr<Value> first = expression.element(tile.b, each.getOutputs()[0], coordinates(tile.b, each, tile));
    if (failed(first))
      return failure();
    SmallVector<Value> at{tile.row};
    llvm::append_range(at, tile.others);
    SmallVector<int64_t> sizes{height};
    for (const Letter &letter : llvm::drop_begin(tile.letters, rows.size()))
      sizes.push_back(*knownSize(letter.size));
    OpBuilder before = tile.loops.empty() ? tile.b : OpBuilder(tile.loops.front());
    if (each != chain.largest)
      states.push_back(makeTile(before, loc, element, sizes));
    write(tile.b, *first, each == chain.largest ? largest : states.back(), at);
    close(tile);
  }
  SmallVector<std::string> fixed;
  for (const Letter &row : rows)
    if (row.name != tiledRow)
      fixed.push_back(row.name);
  if (!chain.readsInPlace)
    copies = findCopies(chain.made, column.name, fixed, height, columns);
  for (RolledCopy &copy : copies) {
    auto type = cast<RankedTensorType>(copy.operand.getType());
    copy.tile = makeTile(b, loc, type.getElementType(), {type.getShape().back(), columns});
  }
  return success();
}

/// A result, of the maximum and the sums that it reads.
LogicalResult RolledNest::finish(OpBuilder &b, const KernelResult &result, PathAttr path) {
  linalg::GenericOp root = result.root;
  bool isSum = llvm::is_contained(chain.followers, root);
  Tile tile = open(b, root, isSum ? pathOf(root, "last") : path, /*columns=*/false, /*others=*/true);
  OpBuilder inner = tile.b;
  auto coordinateOf = [&](StringRef name) {
    return llvm::find_if(tile.letters, [&](Letter &each) { return each.name == name; })->coordinate;
  };
  SmallVector<Value> where = llvm::map_to_vector(result.letters, [&](const Letter &each) { return coordinateOf(each.name); });
  if (tile.inside)
    inner = scf::IfOp::create(inner, loc, tile.inside, /*withElseRegion=*/false).getThenBodyBuilder();
  Expression expression(outer.sizes);
  if (largest)
    expression.setSummed(chain.largest.getResult(0), scaled(inner, read(inner, largest, {tile.row})));
  for (auto [statement, state] : llvm::zip(chain.followers, states)) {
    if (root != statement && !isReadBy(root, statement))
      continue;
    SmallVector<Value> at{tile.row};
    if (statement.getIndexingMapsArray().back().getNumResults() > rows.size())
      llvm::append_range(at, tile.others);
    expression.setSummed(statement.getResult(0), read(inner, state, at));
  }
  FailureOr<Value> value = expression.element(inner, root.getResult(0), where);
  if (failed(value))
    return failure();
  write(inner, *value, result.output, where);
  close(tile);
  return success();
}

LogicalResult RolledNest::build() {
  walked = pattern;
  if (chain.layout)
    walked = RegroupOp::create(outer.b, loc, pattern, LayoutAttr::get(outer.b.getContext(), chain.layout, {}, 0));
  LoopOp owner = openOwners(outer.b);
  OpBuilder b = OpBuilder::atBlockEnd(owner.getBlock());
  if (failed(begin(b)))
    return failure();
  auto round = LevelLoopOp::create(b, loc, chain.loop, walked, level, position, ValueRange());
  round.setRolled(true);
  OpBuilder inner = OpBuilder::atBlockEnd(round.getBlock());
  position = round.getPosition();
  if (chain.layout)
    bits = PresenceOp::create(inner, loc, inner.getI32Type(), walked, level + 1, position);
  Digit digit = formatOf(walked).getLevels()[level].getDigits()[0];
  column.digits = {{Digit{0, digit.div, digit.mod}, round.getCoordinates()[0]}};
  if (blockColumns != columns) {
    LoopOp parts = openParts(round.getBlock(), column, columns, blockColumns);
    columnPart = parts.getCoordinate();
    inner = OpBuilder::atBlockEnd(parts.getBlock());
  }
  copyOperands(inner);
  for (unsigned number = 0; number < made.size(); ++number)
    if (failed(fill(inner, number)))
      return failure();
  if (chain.largest && (failed(findLargest(inner)) || failed(rescale(inner)) || failed(fillShares(inner))))
    return failure();
  for (unsigned number = 0; number < chain.linear.size(); ++number)
    if (failed(fillLinear(inner, number)))
      return failure();
  for (unsigned number = 0; number < chain.followers.size(); ++number)
    if (failed(updateFollower(inner, number)))
      return failure();
  YieldOp::create(inner, loc);
  for (auto [number, result] : llvm::enumerate(results))
    if (failed(finish(b, result, number == 0 ? PathAttr() : pathOf(result.root))))
      return failure();
  YieldOp::create(b, loc);
  return success();
}
