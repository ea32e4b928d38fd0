// SPDX-License-Identifier: Apache-2.0
/// \file
/// Positions of levels and the values stored there: bounds, coordinates, validity, loads and stores.
#include "LoopLowering.h"
#include "lacis/Dialect/Lacis/IR/BindingCode.h"

using namespace mlir;
using namespace lacis;

static LevelAttr levelOf(Value tensor, unsigned level) {
  return formatOf(tensor).getLevels()[level];
}

/// The coordinate of a level with these digits, in mixed radix.
static Value joinDigits(StorageLevel &level, ArrayRef<Value> digits) {
  Value crd;
  for (auto [digit, one] : llvm::zip(level.getLevel().getDigits(), digits)) {
    if (crd)
      crd = arith::MulIOp::create(level.b, level.loc, crd, level.digitSize(digit));
    crd = crd ? arith::AddIOp::create(level.b, level.loc, crd, one).getResult() : one;
  }
  return crd;
}

void LoopLowering::lowerLocate(OpBuilder &b, LocateOp op) {
  Location loc = op.getLoc();
  StorageLevel level = storageLevel(b, loc, op.getTensor(), op.getLevel());
  LevelAttr attr = levelOf(op.getTensor(), op.getLevel());
  Value parent = mapping.lookup(op.getParent());
  if (attr.getDigits().empty()) { // a link
    mapping.map(op.getResult(), attr.getExtent().emitBounds(level, parent).first);
    return;
  }
  mapping.map(op.getResult(), attr.getExtent().emitLocate(level, parent, joinDigits(level, mapped(op.getDigits()))));
}

/// The first position with at least that coordinate, and whether it has the coordinate itself.
static std::pair<Value, Value> emitSearch(LevelBuilder &level, LevelAttr attr, Value parent, Value crd) {
  OpBuilder &b = level.b;
  Location loc = level.loc;
  auto [lo, hi] = attr.getExtent().emitBounds(level, parent);
  Value first = lo, position = attr.getCoordinate().emitSeek(level, lo, hi, crd);
  Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, position, hi);
  auto guard = scf::IfOp::create(b, loc, b.getI1Type(), inside, /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointToEnd(guard.thenBlock());
  Coordinate found = attr.getCoordinate().emitCoordinate(level, first, position);
  Value equal = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, found.crd, crd);
  scf::YieldOp::create(b, loc, found.valid ? arith::AndIOp::create(b, loc, equal, found.valid).getResult() : equal);
  b.setInsertionPointToEnd(guard.elseBlock());
  scf::YieldOp::create(b, loc, arith::ConstantOp::create(b, loc, b.getBoolAttr(false)).getResult());
  return {position, guard.getResult(0)};
}

void LoopLowering::lowerFind(OpBuilder &b, FindOp op) {
  Location loc = op.getLoc();
  StorageLevel level = storageLevel(b, loc, op.getTensor(), op.getLevel());
  LevelAttr attr = levelOf(op.getTensor(), op.getLevel());
  Value parent = mapping.lookup(op.getParent()), crd = joinDigits(level, mapped(op.getDigits()));
  std::pair<Value, Value> found;
  if (attr.getCoordinate().canFind())
    found = attr.getCoordinate().emitFind(level, parent, crd);
  else if (attr.getExtent().coversDomain())
    found = {attr.getExtent().emitLocate(level, parent, crd), arith::ConstantOp::create(b, loc, b.getBoolAttr(true))};
  else
    found = emitSearch(level, attr, parent, crd);
  mapping.map(op.getPosition(), found.first);
  mapping.map(op.getFound(), found.second);
}

void LoopLowering::lowerLookup(OpBuilder &b, LookupOp op) {
  FormatAttr format = formatOf(op.getTensor());
  Value array = arguments.array(sourceOf(op.getTensor(), workspaces), bindingArray(format, op.getBinding()));
  Value found = loadAt(b, op.getLoc(), array, mapping.lookup(op.getCoordinate()), format.getIndexType());
  mapping.map(op.getResult(), castInteger(b, op.getLoc(), found, arguments.getIndexType()));
}

void LoopLowering::lowerSolve(OpBuilder &b, SolveOp op) {
  Location loc = op.getLoc();
  auto binding = cast<BindingInterface>(formatOf(op.getTensor()).getBindings()[op.getBinding()]);
  auto definition = SymbolTable::lookupNearestSymbolFrom<BindingOp>(arguments.symbols(), binding.getDefinition());
  Value own = castInteger(b, loc, mapping.lookup(op.getCoordinate()), b.getI64Type());
  SmallVector<unsigned> names = binding.getOperands();
  unsigned which = std::distance(names.begin(), llvm::find(names, op.getName()));
  Value found = putInverse(b, loc, definition, own)[which];
  mapping.map(op.getResult(), castInteger(b, loc, found, arguments.getIndexType()));
}

void LoopLowering::lowerBounds(OpBuilder &b, BoundsOp op) {
  StorageLevel level = storageLevel(b, op.getLoc(), op.getTensor(), op.getLevel());
  auto [lo, hi] =
      levelOf(op.getTensor(), op.getLevel()).getExtent().emitBounds(level, mapping.lookup(op.getParent()));
  mapping.map(op.getLo(), lo);
  mapping.map(op.getHi(), hi);
}

void LoopLowering::lowerSeek(OpBuilder &b, SeekOp op) {
  StorageLevel level = storageLevel(b, op.getLoc(), op.getTensor(), op.getLevel());
  CoordinateInterface coordinate = levelOf(op.getTensor(), op.getLevel()).getCoordinate();
  mapping.map(op.getResult(), coordinate.emitSeek(level, mapping.lookup(op.getLo()), mapping.lookup(op.getHi()),
                                                  mapping.lookup(op.getCoordinate())));
}

void LoopLowering::lowerOwner(OpBuilder &b, OwnerOp op) {
  StorageLevel level = storageLevel(b, op.getLoc(), op.getTensor(), op.getLevel());
  ExtentInterface extent = levelOf(op.getTensor(), op.getLevel()).getExtent();
  mapping.map(op.getResult(),
              extent.emitOwner(level, mapping.lookup(op.getPosition()), mapping.lookup(op.getParents())));
}

SmallVector<Value> lacis::splitDigits(OpBuilder &b, Location loc, StorageLevel &level, ArrayRef<Digit> digits,
                                      Value crd) {
  if (digits.empty())
    return {};
  SmallVector<Value> result(digits.size());
  for (size_t n = digits.size() - 1; n > 0; --n) {
    Value size = level.digitSize(digits[n]);
    if (!getConstantIntValue(size)) { // padding is taken apart too, even of an axis without elements
      Value one = arith::ConstantOp::create(b, loc, b.getIntegerAttr(size.getType(), 1));
      size = arith::MaxUIOp::create(b, loc, size, one);
    }
    result[n] = arith::RemUIOp::create(b, loc, crd, size);
    crd = arith::DivUIOp::create(b, loc, crd, size);
  }
  result[0] = crd;
  return result;
}

void LoopLowering::lowerCoordinate(OpBuilder &b, CoordinateOp op) {
  Location loc = op.getLoc();
  StorageLevel level = storageLevel(b, loc, op.getTensor(), op.getLevel());
  LevelAttr attr = levelOf(op.getTensor(), op.getLevel());
  Coordinate found =
      attr.getCoordinate().emitCoordinate(level, mapping.lookup(op.getLo()), mapping.lookup(op.getPosition()));
  SmallVector<Value> digits = splitDigits(b, loc, level, attr.getDigits(), found.crd);
  mapping.map(op.getDigits(), digits);
  if (!found.valid)
    found.valid = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
  mapping.map(op.getValid(), found.valid);
}

/// The values of a walk are those of its source.
TensorSource LoopLowering::valuesOf(Value tensor) {
  TensorSource source = sourceOf(tensor, workspaces);
  if (source.kind == TensorSource::Derived)
    source.kind = TensorSource::Storage;
  return source;
}

/// A run of elements begins at any element of which `multiple` are known to lie before it: a vector is aligned so, up to
/// the 16 bytes of an array, a scalar (0) by its type.
static unsigned runAlignment(Type type, int64_t multiple = 1) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector)
    return 0;
  unsigned bytes = std::max(1u, vector.getElementTypeBitWidth() / 8);
  return std::min<unsigned>(16, bytes * std::gcd<int64_t>(multiple, vector.getDimSize(0)));
}

Value LoopLowering::loadAt(OpBuilder &b, Location loc, Value array, Value position, Type type, int64_t multiple) {
  Value address = elementAddress(b, loc, array, position, getElementTypeOrSelf(type));
  return LLVM::LoadOp::create(b, loc, type, address, runAlignment(type, std::gcd(multiple, knownMultiple(position))));
}

/// The elements of a stored block.
static int64_t blockSize(FormatAttr format) { return llvm::product_of(blockOf(format)); }

/// What the elements before each copy of the values are a multiple of; 0 where there is but one copy.
static int64_t copyMultiple(Value tensor) {
  FormatAttr format = formatOf(tensor);
  return format.getNumBatchLevels() == 0 ? 0 : blockSize(format);
}

/// Where a copy of the values begins. Positions are those of the pattern, so that the copies are addressed in 64 bits.
Value LoopLowering::copyAddress(OpBuilder &b, Location loc, Value tensor, Value array, Value copy) {
  Type i64 = b.getI64Type();
  Value slots = castInteger(b, loc, arguments.slots(tensor, workspaces), i64);
  Value block = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(blockSize(formatOf(tensor))));
  Value elements = arith::MulIOp::create(b, loc, slots, block);
  elements = arith::MulIOp::create(b, loc, castInteger(b, loc, copy, i64), elements);
  return elementAddress(b, loc, array, elements, cast<RankedTensorType>(tensor.getType()).getElementType());
}

void LoopLowering::lowerValue(OpBuilder &b, ValueOp op) {
  Value array = arguments.array(valuesOf(op.getTensor()), "values");
  if (op.getBatch())
    array = copyAddress(b, op.getLoc(), op.getTensor(), array, mapping.lookup(op.getBatch()));
  Value value =
      loadAt(b, op.getLoc(), array, mapping.lookup(op.getPosition()), op.getType(), copyMultiple(op.getTensor()));
  value.getDefiningOp<LLVM::LoadOp>().setNontemporal(op.getStreamed());
  mapping.map(op.getResult(), value);
}

/// The bitmap is an empty array where every stored value is an entry.
void LoopLowering::lowerEntry(OpBuilder &b, EntryOp op) {
  Location loc = op.getLoc();
  TensorSource source = valuesOf(op.getTensor());
  Value room = arguments.arrayDim(source, "valid", 0);
  Value none = arith::ConstantOp::create(b, loc, b.getIntegerAttr(room.getType(), 0));
  Value present = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, room, none);
  auto guard = scf::IfOp::create(b, loc, op.getType(), present, /*withElseRegion=*/true);
  OpBuilder then = guard.getThenBodyBuilder(), otherwise = guard.getElseBodyBuilder();
  auto vector = dyn_cast<VectorType>(op.getType());
  Type bytes = b.getI8Type();
  if (vector)
    bytes = VectorType::get(vector.getShape(), bytes);
  Value byte = loadAt(then, loc, arguments.array(source, "valid"), mapping.lookup(op.getPosition()), bytes);
  Value zero = arith::ConstantOp::create(then, loc, then.getZeroAttr(bytes));
  Value bit = arith::CmpIOp::create(then, loc, arith::CmpIPredicate::ne, byte, zero);
  scf::YieldOp::create(then, loc, bit);
  Value all = arith::ConstantOp::create(otherwise, loc, otherwise.getOneAttr(op.getType()));
  scf::YieldOp::create(otherwise, loc, all);
  mapping.map(op.getResult(), guard.getResult(0));
}

void LoopLowering::lowerSet(OpBuilder &b, SetOp op) {
  Location loc = op.getLoc();
  Value value = mapping.lookup(op.getValue());
  Type element = getElementTypeOrSelf(value.getType());
  Value array = arguments.pointer(sourceOf(op.getTensor(), workspaces));
  if (op.getBatch())
    array = copyAddress(b, loc, op.getTensor(), array, mapping.lookup(op.getBatch()));
  Value address = elementAddress(b, loc, array, mapping.lookup(op.getPosition()), element);
  if (!op.getCount()) {
    LLVM::StoreOp::create(b, loc, value, address, runAlignment(value.getType()));
    return;
  }
  int64_t lanes = cast<VectorType>(value.getType()).getDimSize(0);
  LLVM::MaskedStoreOp::create(b, loc, value, address, laneMask(b, loc, mapping.lookup(op.getCount()), lanes),
                              runAlignment(value.getType()));
}

void LoopLowering::lowerLanes(OpBuilder &b, LanesOp op) {
  int64_t lanes = cast<VectorType>(op.getType()).getDimSize(0);
  mapping.map(op.getResult(), laneMask(b, op.getLoc(), mapping.lookup(op.getCount()), lanes));
}
