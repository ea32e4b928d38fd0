// SPDX-License-Identifier: Apache-2.0
/// \file
/// Derives the named loop nest of an expression from the levels of its operands.
///
/// The outer loops run over the digits of the output's axes; inside, each element is evaluated by
/// following the producers of the returned tensor: epilogues are inlined, a product accumulates
/// over the walk of its encoded operand, a chain of products (a sum) accumulates one after another.
#include "LevelWalk.h"
#include "lacis/Dialect/Lacis/IR/Nest.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/MapVector.h"

namespace lacis {
#define GEN_PASS_DEF_LACISLINALGTOLOOPS
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

namespace {

FormatAttr formatOf(Value tensor) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  return type ? dyn_cast_or_null<FormatAttr>(type.getEncoding()) : nullptr;
}

std::string letterName(linalg::GenericOp generic, unsigned dim) {
  if (auto names = generic->getAttrOfType<ArrayAttr>("lacis.loops"))
    if (dim < names.size())
      return cast<StringAttr>(names[dim]).str();
  return std::string(1, static_cast<char>('a' + dim % 26)); // a generic without names
}

/// The function's argument behind parts and walks, or null.
BlockArgument argumentOf(Value tensor) {
  while (Operation *op = tensor.getDefiningOp())
    if (isa<PartOp, WalkOp>(op))
      tensor = op->getOperand(0);
    else
      return {};
  return cast<BlockArgument>(tensor);
}

/// Slots of a dense last level may hold no entry; a walk meets the same slots in another order.
bool mayPad(Value tensor) {
  if (auto walk = tensor.getDefiningOp<WalkOp>())
    tensor = walk.getSource();
  return formatOf(tensor).getLevels().back().getExtent().coversDomain();
}

/// Padding inside a block is 0 and is not multiplied, so that infinity and NaN stay with the entries.
Value skipPadding(OpBuilder &b, Location loc, Value stored, Value next, Value carried) {
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(stored.getType()));
  Value entry = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, stored, zero);
  return arith::SelectOp::create(b, loc, entry, next, carried);
}

/// Builds one nest for the tensor that a function returns.
class NestBuilder {
public:
  explicit NestBuilder(func::FuncOp function) : function(function), b(function.getBody()) {}
  LogicalResult run();

private:
  void collect(Value tensor);
  LogicalResult addLetters(linalg::GenericOp generic);
  void collectDigits(StringRef name, FormatAttr format, unsigned axis);
  BlockArgument addOutput(Value returned);
  void openLoops(Letter &letter, SmallVectorImpl<LoopOp> &loops);
  FailureOr<Value> element(OpBuilder &b, Value tensor, ArrayRef<Value> coordinates);
  FailureOr<Value> evaluate(OpBuilder &b, linalg::GenericOp generic, ArrayRef<Value> coordinates);
  FailureOr<Value> accumulate(OpBuilder &b, linalg::GenericOp generic, MutableArrayRef<Letter> letters, Value init);
  FailureOr<Value> body(OpBuilder &b, linalg::GenericOp generic, ArrayRef<Letter> letters, Value stored,
                        Value carried);

  func::FuncOp function;
  OpBuilder b;
  llvm::SetVector<linalg::GenericOp> generics;
  llvm::StringMap<Value> sizes;
  llvm::StringMap<SmallVector<int64_t>> cuts; // the divisors of the digits of each letter
  DenseMap<Value, SmallVector<std::pair<Digit, Value>>> digitsOf; // the loops behind an output coordinate
};

void NestBuilder::collect(Value tensor) {
  auto generic = tensor.getDefiningOp<linalg::GenericOp>();
  if (!generic || !generics.insert(generic))
    return;
  for (Value operand : generic->getOperands())
    collect(operand);
}

void NestBuilder::collectDigits(StringRef name, FormatAttr format, unsigned axis) {
  for (LevelAttr level : format.getLevels())
    for (Digit digit : level.getDigits())
      if (digit.axis == axis && !llvm::is_contained(cuts[name], digit.div))
        cuts[name].push_back(digit.div);
}

/// Sizes of the letters, from the arguments that have them, and the names of the arguments' axes.
LogicalResult NestBuilder::addLetters(linalg::GenericOp generic) {
  for (unsigned dim = 0; dim < generic.getNumLoops(); ++dim)
    if (std::string name = letterName(generic, dim); name.empty() || !llvm::all_of(name, llvm::isAlpha))
      return generic.emitError("'lacis.loops' names a loop '") << name << "'; names are letters";
  for (OpOperand &operand : generic->getOpOperands()) {
    BlockArgument argument = argumentOf(operand.get());
    AffineMap map = generic.getMatchingIndexingMap(&operand);
    if (!map.isProjectedPermutation())
      return generic.emitError("indexing map ") << AffineMapAttr::get(map) << " is not a list of loops";
    if (!argument)
      continue;
    SmallVector<Attribute> axes;
    for (unsigned axis = 0; axis < map.getNumResults(); ++axis) {
      std::string name = letterName(generic, map.getDimPosition(axis));
      axes.push_back(b.getStringAttr(name));
      if (!sizes.contains(name))
        sizes[name] = tensor::DimOp::create(b, generic.getLoc(), argument, axis);
      if (FormatAttr format = formatOf(operand.get()))
        collectDigits(name, format, axis);
    }
    function.setArgAttr(argument.getArgNumber(), "lacis.axes", b.getArrayAttr(axes));
  }
  return success();
}

/// The returned tensor becomes the last argument: a destination that the nest writes, named 'y' unless the result is.
BlockArgument NestBuilder::addOutput(Value returned) {
  unsigned number = function.getNumArguments();
  NamedAttrList attributes;
  attributes.set("lacis.output", b.getUnitAttr());
  auto name = function.getResultAttrOfType<StringAttr>(0, "lacis.name");
  attributes.set("lacis.name", name ? name : b.getStringAttr("y"));
  function.removeResAttrsAttr();
  (void)function.insertArgument(number, returned.getType(), attributes.getDictionary(b.getContext()),
                                returned.getLoc());
  function.setType(b.getFunctionType(function.getArgumentTypes(), {}));
  return function.getArgument(number);
}

/// One loop for each digit that some operand's levels distinguish, most significant first.
void NestBuilder::openLoops(Letter &letter, SmallVectorImpl<LoopOp> &loops) {
  SmallVector<int64_t> divs = cuts[letter.name];
  llvm::sort(divs, std::greater<>());
  if (divs.empty() || divs.back() != 1)
    divs.push_back(1);
  for (unsigned n = 0; n + 1 < divs.size(); ++n)
    if (divs[n] % divs[n + 1] != 0)
      divs = {1}; // digits that do not nest are computed from the coordinate
  for (auto [n, div] : llvm::enumerate(divs)) {
    OpBuilder b = this->b; // sizes stand before the nest
    if (!loops.empty())
      b.setInsertionPoint(loops.front());
    int64_t mod = n == 0 ? 0 : divs[n - 1] / div;
    Location loc = letter.size.getLoc();
    Value upper = mod ? arith::ConstantIndexOp::create(b, loc, mod).getResult() : letter.size;
    if (!mod && div != 1)
      upper = arith::CeilDivUIOp::create(b, loc, upper, arith::ConstantIndexOp::create(b, loc, div));
    OpBuilder inner = loops.empty() ? b : OpBuilder::atBlockEnd(loops.back().getBlock());
    loops.push_back(LoopOp::create(inner, loc, digitName(letter.name, n, divs.size()), upper));
    letter.digits.push_back({Digit{0, div, mod}, loops.back().getCoordinate()});
  }
}

FailureOr<Value> NestBuilder::element(OpBuilder &b, Value tensor, ArrayRef<Value> coordinates) {
  if (auto fill = tensor.getDefiningOp<linalg::FillOp>())
    return fill.getInputs()[0];
  if (auto generic = tensor.getDefiningOp<linalg::GenericOp>())
    return evaluate(b, generic, coordinates);
  if (isa<BlockArgument>(tensor) && !formatOf(tensor))
    return ReadOp::create(b, tensor.getLoc(), cast<RankedTensorType>(tensor.getType()).getElementType(), tensor,
                          coordinates, Value(), IntegerAttr())
        .getResult();
  return emitError(tensor.getLoc()) << "this tensor is neither an argument nor a product that can be fused";
}

/// The value of one element of the generic's result.
FailureOr<Value> NestBuilder::evaluate(OpBuilder &b, linalg::GenericOp generic, ArrayRef<Value> coordinates) {
  AffineMap out = generic.getIndexingMapsArray().back();
  SmallVector<Letter> letters(generic.getNumLoops());
  for (auto [dim, letter] : llvm::enumerate(letters)) {
    letter.name = letterName(generic, dim);
    letter.size = sizes.lookup(letter.name);
    if (!letter.size)
      return generic.emitError("no operand tells the size of loop '") << letter.name << "'";
  }
  for (auto [position, value] : llvm::enumerate(coordinates)) {
    Letter &letter = letters[out.getDimPosition(position)];
    letter.coordinate = value;
    letter.digits = digitsOf.lookup(value);
  }
  if (generic.getRegionOutputArgs()[0].use_empty())
    return body(b, generic, letters, {}, {});
  FailureOr<Value> first = element(b, generic.getOutputs()[0], coordinates);
  return failed(first) ? first : accumulate(b, generic, letters, *first);
}

/// Accumulates over the letters that the output does not have.
FailureOr<Value> NestBuilder::accumulate(OpBuilder &b, linalg::GenericOp generic, MutableArrayRef<Letter> letters,
                                         Value init) {
  for (OpOperand *operand : generic.getDpsInputOperands()) {
    if (!formatOf(operand->get()))
      continue;
    SmallVector<Letter *> axes;
    AffineMap map = generic.getMatchingIndexingMap(operand);
    for (unsigned axis = 0; axis < map.getNumResults(); ++axis)
      axes.push_back(&letters[map.getDimPosition(axis)]);
    bool ok = true;
    LevelWalk walk(generic.getLoc(), operand->get(), axes);
    Type element = cast<RankedTensorType>(operand->get().getType()).getElementType();
    Value result = walk.emit(b, init, [&](OpBuilder &b, Value position, Value carried) {
      Value stored = ValueOp::create(b, generic.getLoc(), element, operand->get(), position);
      FailureOr<Value> next = body(b, generic, letters, stored, carried);
      ok &= succeeded(next);
      if (!ok || !mayPad(operand->get()))
        return ok ? *next : carried;
      return skipPadding(b, generic.getLoc(), stored, *next, carried);
    });
    if (!ok)
      return failure();
    return result;
  }
  for (Letter &letter : letters) {
    if (letter.coordinate)
      continue;
    auto loop = LoopOp::create(b, generic.getLoc(), letter.name, letter.size, init);
    OpBuilder inner = OpBuilder::atBlockEnd(loop.getBlock());
    letter.coordinate = loop.getCoordinate();
    FailureOr<Value> next = accumulate(inner, generic, letters, loop.getIterArgs()[0]);
    letter.coordinate = {};
    if (failed(next))
      return failure();
    YieldOp::create(inner, generic.getLoc(), *next);
    return loop.getResult(0);
  }
  return body(b, generic, letters, {}, init);
}

/// The payload at one point; letters that a dense operand needs and nobody knows become loops.
FailureOr<Value> NestBuilder::body(OpBuilder &b, linalg::GenericOp generic, ArrayRef<Letter> letters, Value stored,
                                   Value carried) {
  IRMapping mapping;
  for (OpOperand *operand : generic.getDpsInputOperands()) {
    BlockArgument argument = generic.getMatchingBlockArgument(operand);
    if (formatOf(operand->get())) {
      mapping.map(argument, stored);
      continue;
    }
    SmallVector<Value> coordinates;
    AffineMap map = generic.getMatchingIndexingMap(operand);
    for (unsigned axis = 0; axis < map.getNumResults(); ++axis)
      coordinates.push_back(letters[map.getDimPosition(axis)].coordinate);
    if (llvm::is_contained(coordinates, Value()))
      return generic.emitError("a loop over an axis that only dense operands have cannot run inside the walk yet");
    FailureOr<Value> value = element(b, operand->get(), coordinates);
    if (failed(value))
      return failure();
    mapping.map(argument, *value);
  }
  if (carried)
    mapping.map(generic.getRegionOutputArgs()[0], carried);
  for (Operation &op : generic.getBody()->without_terminator())
    b.clone(op, mapping);
  return mapping.lookupOrDefault(generic.getBody()->getTerminator()->getOperand(0));
}

LogicalResult NestBuilder::run() {
  auto ret = cast<func::ReturnOp>(function.getBody().front().getTerminator());
  if (ret.getNumOperands() != 1 || !ret.getOperand(0).getDefiningOp<linalg::GenericOp>())
    return function.emitError("a kernel returns one tensor, made by 'linalg.generic'");
  auto root = ret.getOperand(0).getDefiningOp<linalg::GenericOp>();
  collect(root.getResult(0));
  b.setInsertionPoint(ret);
  for (linalg::GenericOp generic : generics)
    if (failed(addLetters(generic)))
      return failure();
  SmallVector<Letter> letters;
  AffineMap out = root.getIndexingMapsArray().back();
  for (AffineExpr expr : out.getResults()) {
    Letter letter;
    letter.name = letterName(root, cast<AffineDimExpr>(expr).getPosition());
    letter.size = sizes.lookup(letter.name);
    if (!letter.size)
      return root.emitError("no operand tells the size of loop '") << letter.name << "'";
    letters.push_back(std::move(letter));
  }
  BlockArgument output = addOutput(root.getResult(0));
  SmallVector<Attribute> axes;
  SmallVector<LoopOp> loops;
  for (Letter &letter : letters) {
    axes.push_back(b.getStringAttr(letter.name));
    openLoops(letter, loops);
  }
  function.setArgAttr(output.getArgNumber(), "lacis.axes", b.getArrayAttr(axes));
  if (loops.empty())
    return root.emitError("a kernel whose output has no axis has no unit to run on");
  OpBuilder inner = OpBuilder::atBlockEnd(loops.back().getBlock());
  SmallVector<Value> coordinates;
  for (Letter &letter : letters) {
    letter.compose(inner, root.getLoc());
    coordinates.push_back(letter.coordinate);
    digitsOf[letter.coordinate] = letter.digits;
    if (!needsGuard(letter.size, letter.digits.front().first.div, letter.digits.size()))
      continue;
    auto guard = scf::IfOp::create(
        inner, root.getLoc(),
        arith::CmpIOp::create(inner, root.getLoc(), arith::CmpIPredicate::slt, letter.coordinate, letter.size)
            .getResult(),
        /*withElseRegion=*/false);
    inner = guard.getThenBodyBuilder();
  }
  FailureOr<Value> value = element(inner, root.getResult(0), coordinates);
  if (failed(value))
    return failure();
  WriteOp::create(inner, root.getLoc(), *value, output, coordinates, Value(), IntegerAttr());
  for (LoopOp loop : loops) {
    OpBuilder end = OpBuilder::atBlockEnd(loop.getBlock());
    YieldOp::create(end, root.getLoc(), ValueRange());
  }
  func::ReturnOp::create(b, ret.getLoc());
  ret.erase();
  return success();
}

struct LinalgToLoops : lacis::impl::LacisLinalgToLoopsBase<LinalgToLoops> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.getNumResults() == 0)
      return; // already a nest
    if (failed(NestBuilder(function).run()))
      return signalPassFailure();
    // What the nest replaced has no use left.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
      if (op.use_empty() && (isa<linalg::LinalgOp, tensor::EmptyOp, tensor::DimOp>(op) || isPure(&op)) &&
          !op.hasTrait<OpTrait::IsTerminator>())
        op.erase();
  }
};

} // namespace
