// SPDX-License-Identifier: Apache-2.0
/// \file
/// Levels and dense tensors as loads and addresses.
#include "Addressing.h"
#include "lacis/Dialect/Lacis/IR/BindingCode.h"

using namespace mlir;
using namespace lacis;

static Value integerConstant(OpBuilder &b, Location loc, Type type, int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
}

Value lacis::castInteger(OpBuilder &b, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  if (value.getType().getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth())
    return arith::ExtSIOp::create(b, loc, type, value);
  return arith::TruncIOp::create(b, loc, type, value);
}

Value lacis::elementAddress(OpBuilder &b, Location loc, Value base, Value elements, Type element) {
  Value index = castInteger(b, loc, elements, b.getI64Type());
  return LLVM::GEPOp::create(b, loc, base.getType(), element, base, ArrayRef<LLVM::GEPArg>{index});
}

std::pair<TensorSource, int64_t> lacis::dimensionOf(Value size, ArrayRef<WorkspaceOp> workspaces) {
  auto dim = size.getDefiningOp<tensor::DimOp>();
  assert(dim && dim.getConstantIndex() && "sizes are dimensions of arguments");
  return {sourceOf(dim.getSource(), workspaces), *dim.getConstantIndex()};
}

//===- StorageLevel -------------------------------------------------------===//

Value StorageLevel::constant(int64_t value) { return integerConstant(b, loc, indexType(), value); }

/// A companion whose link holds places in rows lists entries alone: none of its numbers is negative.
static bool holdsPlaces(FormatAttr format) {
  ArrayRef<LevelAttr> prefix = format.getLevels().drop_back(format.getNumTileLevels());
  ExtentInterface last = prefix.back().getExtent();
  return last.isLink() && prefix.back().getBuffers().front().elementType.getIntOrFloatBitWidth() < 32;
}

Value StorageLevel::load(StringRef buffer, Value index) {
  SmallVector<BufferSpec> buffers = getLevel().getBuffers();
  const BufferSpec &spec = *llvm::find_if(buffers, [&](const BufferSpec &known) { return known.name == buffer; });
  Type element = spec.elementType;
  Value address = elementAddress(b, loc, arguments.array(source, nameOf(buffer)), index, element);
  Value loaded = LLVM::LoadOp::create(b, loc, element, address);
  bool widens = element.getIntOrFloatBitWidth() < indexType().getIntOrFloatBitWidth();
  if (widens && (spec.isUnsigned || holdsPlaces(format)))
    return arith::ExtUIOp::create(b, loc, indexType(), loaded);
  return castInteger(b, loc, loaded, indexType());
}

Value StorageLevel::nameSize(unsigned name) {
  unsigned rank = format.getAxes().size();
  if (name < rank)
    return arguments.dim(shape, name);
  SmallVector<Value> sizes;
  for (unsigned before = 0; before < name; ++before)
    sizes.push_back(nameSize(before));
  return cast<BindingInterface>(format.getBindings()[name - rank]).emitSize(b, loc, sizes);
}

Value StorageLevel::digitSize(Digit digit) {
  if (digit.mod)
    return constant(digit.mod);
  Value size = nameSize(digit.axis);
  return digit.div == 1 ? size : arith::CeilDivUIOp::create(b, loc, size, constant(digit.div)).getResult();
}

Value StorageLevel::size() {
  Value product;
  for (Digit digit : format.getLevels()[level].getDigits()) {
    Value one = digitSize(digit);
    product = product ? arith::MulIOp::create(b, loc, product, one).getResult() : one;
  }
  return product ? product : constant(1);
}

Value StorageLevel::width() { return arguments.arrayDim(source, nameOf(getLevel().getPositionsArray()), 1); }

//===- DenseAccess --------------------------------------------------------===//

Value DenseAccess::wide(Value index) { return castInteger(b, loc, index, b.getI64Type()); }

/// A size of a workspace: a dimension, a constant, or strips of a size.
Value DenseAccess::sizeValue(Value size) {
  if (auto constant = getConstantIntValue(size))
    return integerConstant(b, loc, arguments.getIndexType(), *constant);
  if (auto strips = size.getDefiningOp<arith::CeilDivUIOp>())
    return arith::CeilDivUIOp::create(b, loc, sizeValue(strips.getLhs()), sizeValue(strips.getRhs()));
  if (auto product = size.getDefiningOp<arith::MulIOp>())
    return arith::MulIOp::create(b, loc, sizeValue(product.getLhs()), sizeValue(product.getRhs()));
  if (auto room = size.getDefiningOp<PositionsOp>())
    return arguments.positions(b, room, workspaces);
  auto [source, dim] = dimensionOf(size, workspaces);
  return arguments.dim(source, dim);
}

Value DenseAccess::size(unsigned axis) {
  if (auto workspace = tensor.getDefiningOp<WorkspaceOp>()) {
    return wide(sizeValue(workspace.getSizes()[axis]));
  }
  return wide(arguments.dim(source, axis));
}

/// The digits of a dense layout, outermost first.
static SmallVector<Digit> digitsOf(FormatAttr layout) {
  SmallVector<Digit> digits;
  for (LevelAttr level : layout.getLevels())
    llvm::append_range(digits, level.getDigits());
  return digits;
}

/// The digit that counts single elements of an axis.
static const Digit *unitDigit(ArrayRef<Digit> digits, unsigned axis) {
  const Digit *unit = llvm::find_if(digits, [&](Digit digit) { return digit.axis == axis && digit.div == 1; });
  return unit == digits.end() ? nullptr : unit;
}

bool DenseAccess::isEven(unsigned axis, int64_t multiple, int64_t lanes) {
  if (!layout())
    return true;
  SmallVector<Digit> digits = digitsOf(layout());
  const Digit *unit = unitDigit(digits, axis);
  int64_t panel = unit ? unit->mod : 0; // 0: the whole axis
  return unit && (panel == 0 || (panel % lanes == 0 && multiple % lanes == 0));
}

Value DenseAccess::extent(Digit digit) {
  if (digit.mod)
    return integerConstant(b, loc, b.getI64Type(), digit.mod);
  Value whole = size(digit.axis);
  return digit.div == 1 ? whole
                        : arith::CeilDivUIOp::create(b, loc, whole, integerConstant(b, loc, b.getI64Type(), digit.div));
}

Value DenseAccess::strideOf(unsigned axis) {
  Value stride;
  auto add = [&](Value size) { stride = stride ? arith::MulIOp::create(b, loc, stride, size).getResult() : size; };
  if (layout()) {
    SmallVector<Digit> digits = digitsOf(layout());
    for (const Digit *inner = unitDigit(digits, axis) + 1; inner != digits.end(); ++inner)
      add(extent(*inner));
    return stride;
  }
  if (isStrided() && axis + 1 < type().getRank())
    return arguments.stride(source, axis);
  for (unsigned other = axis + 1; other < type().getRank(); ++other)
    add(size(other));
  return stride;
}

/// Horner over the levels of a dense layout.
Value DenseAccess::laidOut(ValueRange indices) {
  Type i64 = b.getI64Type();
  SmallVector<Value> crds = llvm::map_to_vector(indices, [&](Value index) { return wide(index); });
  Value position;
  for (Digit digit : digitsOf(layout())) {
    Value crd = crds[digit.axis];
    if (digit.div != 1)
      crd = arith::DivUIOp::create(b, loc, crd, integerConstant(b, loc, i64, digit.div));
    if (digit.mod)
      crd = arith::RemUIOp::create(b, loc, crd, integerConstant(b, loc, i64, digit.mod));
    position =
        position
            ? arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, position, extent(digit)), crd).getResult()
            : crd;
  }
  return position;
}

Value DenseAccess::address(ValueRange indices) {
  Value position;
  if (layout()) {
    position = laidOut(indices);
  } else {
    for (auto [axis, index] : llvm::enumerate(indices)) {
      Value crd = wide(index);
      if (isStrided() && axis + 1 < indices.size())
        crd = arith::MulIOp::create(b, loc, crd, arguments.stride(source, axis));
      else if (position && !isStrided())
        position = arith::MulIOp::create(b, loc, position, size(axis));
      position = position ? arith::AddIOp::create(b, loc, position, crd).getResult() : crd;
    }
    if (!position)
      position = integerConstant(b, loc, b.getI64Type(), 0);
  }
  Value base = tile ? tile : arguments.pointer(source);
  return elementAddress(b, loc, base, position, type().getElementType());
}

unsigned DenseAccess::alignment(unsigned axis, int64_t multiple, unsigned lanes) {
  unsigned bytes = std::max(1u, type().getElementTypeBitWidth() / 8);
  int64_t run = std::gcd<int64_t>(lanes, multiple);
  if (FormatAttr format = layout())
    return bytes * std::gcd(run, format.getLevels().back().getDigits()[0].mod);
  if (type().getRank() > 1) {
    auto argument = cast<BlockArgument>(tensor);
    auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    auto classes = function.getArgAttrOfType<DenseI64ArrayAttr>(argument.getArgNumber(), "lacis.divisible");
    run = std::gcd(run, classes ? classes[axis] : 1);
  }
  return std::min<int64_t>(16, bytes * run);
}
