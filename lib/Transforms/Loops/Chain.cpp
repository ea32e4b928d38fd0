// SPDX-License-Identifier: Apache-2.0
/// \file
/// Chains of statements on one pattern: what is made on it, and what of that is kept between nests.
///
/// A statement that is read once, by one with the same loops, is computed where it is read. What a second statement reads
/// too, or one with loops of its own, has a nest and a workspace: one element for each slot of the pattern, or for each
/// element of a dense result.
#include "Chain.h"

#include "ChainForm.h"
#include "Expression.h"
#include "lacis/Dialect/Lacis/IR/Nest.h"

#include "lacis/Dialect/Lacis/IR/Workspace.h"

using namespace mlir;
using namespace lacis;

linalg::GenericOp lacis::makerOf(Value tensor) {
  if (auto walk = tensor.getDefiningOp<WalkOp>())
    tensor = walk.getSource();
  return formatOf(tensor) ? tensor.getDefiningOp<linalg::GenericOp>() : linalg::GenericOp();
}

OpOperand *lacis::madeOperand(linalg::GenericOp generic) {
  for (OpOperand *operand : generic.getDpsInputOperands())
    if (formatOf(operand->get()) && makerOf(operand->get()))
      return operand;
  return nullptr;
}

Value lacis::walkedPattern(OpBuilder &b, Value tensor) {
  ZerosOp zeros = zerosOf(makerOf(tensor).getOutputs()[0]);
  Value pattern = argumentOf(zeros.getSource());
  auto walk = tensor.getDefiningOp<WalkOp>();
  if (!walk)
    return pattern;
  auto type = cast<RankedTensorType>(pattern.getType());
  auto walked = RankedTensorType::get(type.getShape(), type.getElementType(), walk.getType().getEncoding());
  OpBuilder entry(&walk->getParentOfType<func::FuncOp>().getBody().front(),
                  walk->getParentOfType<func::FuncOp>().getBody().front().begin());
  return WalkOp::create(entry, walk.getLoc(), walked, pattern);
}

std::string lacis::nameOfStatement(linalg::GenericOp statement) {
  if (auto name = statement->getAttrOfType<StringAttr>("lacis.name"))
    return name.str();
  auto all = statement->getBlock()->getOps<linalg::GenericOp>();
  return "t" + std::to_string(std::distance(all.begin(), llvm::find(all, statement)));
}

void lacis::nameLoops(Operation *first, Operation *end, StringRef statement) {
  for (Operation *op = first; op && op != end; op = op->getNextNode())
    op->walk([&](LoopOpInterface loop) {
      PathAttr path = pathOf(op->getContext(), PathKind::Statement, statement);
      loop.setPathAttr(join(path, loop.getPathAttr()));
    });
}

bool lacis::isChain(func::FuncOp function) {
  return llvm::any_of(function.getBody().getOps<linalg::GenericOp>(), [](linalg::GenericOp generic) {
    return !formatOf(generic.getResult(0)) && madeOperand(generic);
  });
}

/// Would its elements be computed more than once, were they computed where they are read?
static bool isReadOften(linalg::GenericOp statement) {
  SmallVector<Operation *> users(statement.getResult(0).getUsers());
  SmallVector<linalg::GenericOp> readers;
  while (!users.empty()) {
    Operation *user = users.pop_back_val();
    if (isa<WalkOp>(user))
      llvm::append_range(users, user->getUsers());
    else if (auto reader = dyn_cast<linalg::GenericOp>(user))
      readers.push_back(reader);
  }
  unsigned loops = statement.getIndexingMapsArray().back().getNumResults();
  return readers.size() > 1 || llvm::any_of(readers, [&](auto reader) { return reader.getNumLoops() > loops; });
}

/// How many slots a pattern has room for: what its arrays have an element for, times what follows them. Null where they do
/// not tell.
static Value slotsOf(OpBuilder &b, Location loc, Value pattern) {
  FormatAttr format = formatOf(pattern);
  Value slots = arith::ConstantIndexOp::create(b, loc, 1);
  auto times = [&](Value size) { slots = arith::MulIOp::create(b, loc, slots, size); };
  unsigned batch = format.getNumBatchLevels();
  bool isKnown = format.getBindings().empty();
  for (auto [below, level] : llvm::enumerate(format.getPatternLevels())) {
    ExtentInterface extent = level.getExtent();
    if (!level.getPositionsArray().empty()) {
      slots = PositionsOp::create(b, loc, b.getIndexType(), pattern, batch + below);
      isKnown = true;
      continue;
    }
    if (extent.hasCapacity() && extent.getTrip()) {
      times(arith::ConstantIndexOp::create(b, loc, *extent.getTrip()));
      continue;
    }
    isKnown &= extent.coversDomain() || extent.followsParent() || extent.isLink();
    for (const Digit &digit : extent.coversDomain() ? level.getDigits() : ArrayRef<Digit>()) {
      isKnown &= digit.axis < format.getAxes().size() || digit.mod != 0;
      if (digit.mod) {
        times(arith::ConstantIndexOp::create(b, loc, digit.mod));
        continue;
      }
      if (!isKnown)
        break;
      Value size = tensor::DimOp::create(b, loc, pattern, digit.axis);
      Value by = arith::ConstantIndexOp::create(b, loc, digit.div);
      times(digit.div == 1 ? size : arith::CeilDivUIOp::create(b, loc, size, by).getResult());
    }
  }
  return isKnown ? slots : Value();
}

Value KeptTensors::workspace(linalg::GenericOp statement, ArrayRef<Value> sizes) {
  OpBuilder &b = outer.b;
  Type element = cast<RankedTensorType>(statement.getResult(0).getType()).getElementType();
  WorkspaceOp made = makeWorkspace(b, statement.getLoc(), element, sizes);
  made.setKept(nameOfStatement(statement));
  return made;
}

/// for each element: its value, into the workspace.
LogicalResult KeptTensors::buildDense(linalg::GenericOp statement, MutableArrayRef<Letter> letters) {
  Value place = workspace(statement, llvm::map_to_vector(letters, [](Letter &letter) { return letter.size; }));
  if (failed(outer.writeElements(statement, letters, place, &kept)))
    return failure();
  kept[statement.getResult(0)] = place;
  return success();
}

/// for each slot that is an entry: its value, into the workspace; nobody reads the others.
LogicalResult KeptTensors::buildOnPattern(linalg::GenericOp statement, MutableArrayRef<Letter> letters) {
  OpBuilder &b = outer.b;
  Location loc = statement.getLoc();
  Value pattern = zerosOf(statement.getOutputs()[0]).getSource();
  FormatAttr format = formatOf(argumentOf(pattern));
  Value copies = arith::ConstantIndexOp::create(b, loc, 1);
  for (LevelAttr level : format.getLevels().take_front(format.getNumBatchLevels()))
    for (const Digit &digit : level.getDigits())
      copies = arith::MulIOp::create(b, loc, copies, letters[digit.axis].size);
  Value slots = slotsOf(b, loc, argumentOf(pattern));
  if (!slots)
    return statement.emitError("no array of the pattern has an element for each slot, of which a workspace is kept");
  Value place = workspace(statement, {copies, slots});
  SmallVector<Letter *> axes = llvm::map_to_vector(letters, [](Letter &letter) { return &letter; });
  bool ok = true;
  auto atEntry = [&](OpBuilder &b, Value position, ValueRange) -> LevelWalk::Values {
    Expression expression(outer.sizes, &kept);
    SmallVector<Value> coordinates;
    for (Letter &letter : letters) {
      coordinates.push_back(letter.coordinate);
      expression.noteDigits(letter);
    }
    expression.setSample(pattern, position);
    FailureOr<Value> value = expression.element(b, statement.getResult(0), coordinates);
    ok &= succeeded(value);
    if (ok)
      WriteOp::create(b, loc, *value, place, slotAt(b, loc, pattern, position, coordinates), Value(), IntegerAttr());
    return {};
  };
  LevelWalk(loc, pattern, axes).emit(b, {}, atEntry);
  kept[statement.getResult(0)] = place;
  return success(ok);
}

LogicalResult KeptTensors::build() {
  Block &body = outer.function.getBody().front();
  SmallVector<linalg::GenericOp> statements(body.getOps<linalg::GenericOp>());
  SmallVector<std::string> chosen;
  for (linalg::GenericOp statement : statements) {
    std::string name = nameOfStatement(statement);
    bool isAsked = llvm::is_contained(asked, name);
    if (statement == root || !(isAsked || isReadOften(statement)))
      continue;
    if (!isAsked)
      chosen.push_back("#lacis.keep<tensor = \"" + name + "\">");
    SmallVector<Letter> letters;
    if (failed(outer.lettersOf(statement, letters)))
      return failure();
    Operation *before = outer.b.getInsertionPoint()->getPrevNode();
    if (letters.empty())
      return statement.emitError("a statement of a chain whose result has no axis has no unit to run on");
    bool onPattern = formatOf(statement.getResult(0)) != nullptr;
    if (failed(onPattern ? buildOnPattern(statement, letters) : buildDense(statement, letters)))
      return failure();
    nameLoops(before->getNextNode(), &*outer.b.getInsertionPoint(), name);
  }
  recordForm(outer.function, chosen);
  return success();
}
