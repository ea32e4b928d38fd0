// SPDX-License-Identifier: Apache-2.0
/// \file
/// Derives the named loop nest of an expression from the levels of its operands.
///
/// The outer loops run over the digits of the output's axes; inside, each element is evaluated by
/// following the producers of the returned tensor: epilogues are inlined, a product accumulates
/// over the walk of its encoded operand, a chain of products (a sum) accumulates one after another.
#include "ChainForm.h"
#include "Expression.h"
#include "ListedRows.h"
#include "OutputLoops.h"
#include "PermutedRows.h"
#include "PushedOutput.h"
#include "PushedTile.h"
#include "RolledNest.h"
#include "RowClasses.h"
#include "SharedRows.h"
#include "lacis/Dialect/Lacis/IR/BindingCode.h"
#include "lacis/Dialect/Lacis/IR/Nest.h"

#include "llvm/ADT/MapVector.h"

namespace lacis {
#define GEN_PASS_DEF_LACISLINALGTOLOOPS
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

namespace {

/// Builds one nest for the tensor that a function returns; of a chain one for each, or one for all.
class NestBuilder {
public:
  explicit NestBuilder(func::FuncOp function)
      : function(function), b(function.getBody()), outer(function, b), sizes(outer.sizes) {}
  LogicalResult run();

private:
  void collect(Value tensor);
  FailureOr<SmallVector<linalg::GenericOp>> findRoots(func::ReturnOp ret);
  BlockArgument addOutput(Value returned, unsigned number);
  LogicalResult buildFirst(KernelResult &result, OpOperand *scattered);
  LogicalResult buildOthers(MutableArrayRef<KernelResult> results);
  void describe(BlockArgument output, ArrayRef<Letter> letters);
  OpBuilder openLocated(Value tensor, ArrayRef<Letter *> axes, SmallVectorImpl<LoopOp> &loops);
  OpOperand *owner(StringRef form);
  LogicalResult buildDense(linalg::GenericOp root, MutableArrayRef<Letter> letters, BlockArgument output);
  LogicalResult buildSampled(linalg::GenericOp root, MutableArrayRef<Letter> letters, BlockArgument output);
  FailureOr<OpOperand *> scattered(linalg::GenericOp root);
  LogicalResult buildPushed(linalg::GenericOp root, MutableArrayRef<Letter> letters, BlockArgument output,
                            OpOperand &operand);
  LogicalResult buildScattered(linalg::GenericOp root, MutableArrayRef<Letter> letters, BlockArgument output,
                               OpOperand &operand);

  func::FuncOp function;
  OpBuilder b;
  llvm::SetVector<linalg::GenericOp> generics;
  OutputLoops outer;
  std::optional<KeptTensors> chain; // what nests before the main one made
  llvm::StringMap<Value> &sizes;
};

void NestBuilder::collect(Value tensor) {
  if (linalg::GenericOp maker = makerOf(tensor))
    tensor = maker.getResult(0);
  auto generic = tensor.getDefiningOp<linalg::GenericOp>();
  if (!generic || !generics.insert(generic))
    return;
  for (Value operand : generic->getOperands())
    collect(operand);
}

FailureOr<SmallVector<linalg::GenericOp>> NestBuilder::findRoots(func::ReturnOp ret) {
  SmallVector<linalg::GenericOp> roots;
  for (Value returned : ret.getOperands())
    roots.push_back(returned.getDefiningOp<linalg::GenericOp>());
  if (roots.empty() || llvm::is_contained(roots, linalg::GenericOp()) || (roots.size() > 1 && !isChain(function)))
    return function.emitError("a kernel returns one tensor, made by 'linalg.generic'; a chain of statements several");
  for (linalg::GenericOp root : ArrayRef(roots).drop_front())
    if (formatOf(root.getResult(0)))
      return root.emitError("the first result of a kernel alone may be on a pattern");
  return roots;
}

/// The first returned tensor becomes the last argument: a destination that the nest writes, named 'y' unless the result is.
/// Others become operands that are written, before it.
BlockArgument NestBuilder::addOutput(Value returned, unsigned result) {
  unsigned number = function.getNumArguments();
  NamedAttrList attributes;
  attributes.set(result == 0 ? "lacis.output" : "lacis.written", b.getUnitAttr());
  auto name = function.getResultAttrOfType<StringAttr>(result, "lacis.name");
  attributes.set("lacis.name", name ? name : b.getStringAttr(result == 0 ? "y" : "y" + std::to_string(result)));
  if (result == 0)
    function.removeResAttrsAttr();
  (void)function.insertArgument(number, returned.getType(), attributes.getDictionary(b.getContext()),
                                returned.getLoc());
  if (result == 0)
    function.setType(b.getFunctionType(function.getArgumentTypes(), {}));
  return function.getArgument(number);
}

/// The output's axes, and what is known of their sizes.
void NestBuilder::describe(BlockArgument output, ArrayRef<Letter> letters) {
  SmallVector<Attribute> axes;
  SmallVector<int64_t> classes;
  for (const Letter &letter : letters) {
    axes.push_back(b.getStringAttr(letter.name));
    Value size = sizes[letter.name];
    classes.push_back(knownSize(size) ? 1 : knownDivisor(size)); // a constant says it itself
  }
  function.setArgAttr(output.getArgNumber(), "lacis.axes", b.getArrayAttr(axes));
  if (llvm::any_of(classes, [](int64_t known) { return known > 1; }))
    function.setArgAttr(output.getArgNumber(), "lacis.divisible", b.getDenseI64ArrayAttr(classes));
}

/// Loops over the axes that levels below a list have positions for, where the others follow from a binding: all rows of a
/// list of diagonals are far more parallel than the list.
OpBuilder NestBuilder::openLocated(Value tensor, ArrayRef<Letter *> axes, SmallVectorImpl<LoopOp> &loops) {
  FormatAttr format = formatOf(tensor);
  OpBuilder inner = b;
  for (unsigned axis = 0; axis < axes.size() && !format.getBindings().empty(); ++axis) {
    auto has = [&](LevelAttr level) {
      return llvm::any_of(level.getDigits(), [&](Digit digit) { return digit.axis == axis; });
    };
    if (has(format.getPatternLevels()[0]) || llvm::none_of(format.getLevels(), has) || !isFoundOnce(format, {axis}))
      continue;
    outer.open(*axes[axis], loops);
    inner = OpBuilder::atBlockEnd(loops.back().getBlock());
    inner = composeInside(inner, tensor.getLoc(), *axes[axis]);
  }
  return inner;
}

/// Loops over the elements of a dense output.
LogicalResult NestBuilder::buildDense(linalg::GenericOp root, MutableArrayRef<Letter> letters, BlockArgument output) {
  if (letters.empty())
    return root.emitError("a kernel whose output has no axis has no unit to run on");
  return outer.writeElements(root, letters, output, chain ? &chain->get() : nullptr);
}

/// Loops over the entries of the pattern that the output is sampled on; what is not set stays zero.
LogicalResult NestBuilder::buildSampled(linalg::GenericOp root, MutableArrayRef<Letter> letters,
                                        BlockArgument output) {
  Value pattern = zerosOf(root.getOutputs()[0]).getSource();
  function.setArgAttr(output.getArgNumber(), "lacis.sample", b.getI64IntegerAttr(argumentOf(pattern).getArgNumber()));
  Location loc = root.getLoc();
  SmallVector<Letter *> axes = llvm::map_to_vector(letters, [](Letter &letter) { return &letter; });
  Expression expression(sizes, chain ? &chain->get() : nullptr);
  bool ok = true;
  auto atEntry = [&](OpBuilder &b, Value position, ValueRange) -> LevelWalk::Values {
    SmallVector<Value> coordinates;
    for (Letter &letter : letters) {
      coordinates.push_back(letter.coordinate);
      expression.noteDigits(letter);
    }
    expression.setSample(pattern, position);
    FailureOr<Value> value = expression.element(b, root.getResult(0), coordinates);
    ok &= succeeded(value);
    if (!ok)
      return {};
    if (mayPad(pattern)) {
      Value entry = EntryOp::create(b, loc, b.getI1Type(), pattern, position);
      Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(value->getType()));
      *value = arith::SelectOp::create(b, loc, entry, *value, zero).getResult();
    }
    SetOp::create(b, loc, *value, output, position, copyOf(b, loc, pattern, coordinates), Value());
    return {};
  };
  SmallVector<LoopOp> loops;
  OpBuilder inner = openLocated(pattern, axes, loops);
  LevelWalk(loc, pattern, axes).emit(inner, {}, atEntry);
  closeLoops(loc, loops);
  return success(ok);
}

/// The operand whose levels drive the loops of the output in this form, or null.
OpOperand *NestBuilder::owner(StringRef form) {
  for (linalg::GenericOp generic : generics)
    if (auto own = generic->getAttrOfType<StringAttr>("lacis.owner"); own && own.getValue() == form)
      for (OpOperand *operand : generic.getDpsInputOperands())
        if (formatOf(operand->get()))
          return operand;
  return nullptr;
}

/// The operand whose entries a dense output is scattered to, or null.
FailureOr<OpOperand *> NestBuilder::scattered(linalg::GenericOp root) {
  OpOperand *found = nullptr;
  for (linalg::GenericOp generic : generics)
    for (OpOperand *operand : generic.getDpsInputOperands()) {
      if (!scatters(generic, *operand))
        continue;
      if (found)
        return generic.emitError("an output with every letter of a sum of formats is made part by part");
      auto fill = generic.getOutputs()[0].getDefiningOp<linalg::FillOp>();
      if (!fill || !(matchPattern(fill.getInputs()[0], m_AnyZeroFloat()) || matchPattern(fill.getInputs()[0], m_Zero())))
        return generic.emitError("an output with every letter of a sparse operand begins as zeros");
      if (root != generic && root.getNumDpsInputs() != 1)
        return root.emitError("an output with every letter of a sparse operand is zero elsewhere; nothing is added to it");
      found = operand;
    }
  return found;
}

/// Loops over the entries of an operand, inside them over the letters of a dense output that it lacks; what is not
/// written stays zero.
LogicalResult NestBuilder::buildScattered(linalg::GenericOp root, MutableArrayRef<Letter> letters,
                                          BlockArgument output, OpOperand &operand) {
  function.setArgAttr(output.getArgNumber(), "lacis.scatter", b.getUnitAttr());
  Location loc = root.getLoc();
  Value tensor = operand.get();
  auto product = cast<linalg::GenericOp>(operand.getOwner());
  SmallVector<Letter *> axes;
  for (AffineExpr expr : product.getMatchingIndexingMap(&operand).getResults()) {
    std::string name = letterName(product, cast<AffineDimExpr>(expr).getPosition());
    axes.push_back(llvm::find_if(letters, [&](Letter &letter) { return letter.name == name; }));
  }
  Expression expression(sizes);
  bool ok = true;
  auto atEntry = [&](OpBuilder &b, Value position, ValueRange) -> LevelWalk::Values {
    OpBuilder inner = b;
    SmallVector<LoopOp> loops;
    SmallVector<Value> coordinates;
    for (Letter letter : letters) {
      if (!letter.coordinate) {
        loops.push_back(LoopOp::create(inner, loc, letter.name, letter.size));
        inner = OpBuilder::atBlockEnd(loops.back().getBlock());
        letter.coordinate = loops.back().getCoordinate();
        letter.digits = {{Digit{0, 1, 0}, letter.coordinate}};
      }
      coordinates.push_back(letter.coordinate);
      expression.noteDigits(letter);
    }
    expression.setSample(tensor, position);
    FailureOr<Value> value = expression.element(inner, root.getResult(0), coordinates);
    ok &= succeeded(value);
    if (!ok)
      return {};
    if (mayPad(tensor)) {
      Value entry = EntryOp::create(inner, loc, b.getI1Type(), tensor, position);
      Value zero = arith::ConstantOp::create(inner, loc, b.getZeroAttr(value->getType()));
      *value = arith::SelectOp::create(inner, loc, entry, *value, zero).getResult();
    }
    WriteOp::create(inner, loc, *value, output, coordinates, Value(), IntegerAttr());
    closeLoops(loc, loops);
    return {};
  };
  SmallVector<LoopOp> outer;
  OpBuilder located = openLocated(tensor, axes, outer);
  LevelWalk(loc, tensor, axes).emit(located, {}, atEntry);
  closeLoops(loc, outer);
  return success(ok);
}

/// A nest that adds to a tile of its owner, or to the output.
LogicalResult NestBuilder::buildPushed(linalg::GenericOp root, MutableArrayRef<Letter> letters, BlockArgument output,
                                       OpOperand &operand) {
  PushedTile tile(root, operand, letters, output, sizes);
  return tile.fits() ? tile.build(b) : PushedOutput(root, operand, letters, output, sizes).build(b);
}

/// Nests for the results after the first, which are dense and read what the statements before kept.
LogicalResult NestBuilder::buildOthers(MutableArrayRef<KernelResult> results) {
  for (KernelResult &result : results) {
    Operation *before = b.getInsertionPoint()->getPrevNode();
    if (failed(outer.writeElements(result.root, result.letters, result.output, &chain->get())))
      return failure();
    nameLoops(before->getNextNode(), &*b.getInsertionPoint(), nameOfStatement(result.root));
  }
  return success();
}

/// The nest of the first result: by what its operands' levels own, where they own something.
LogicalResult NestBuilder::buildFirst(KernelResult &result, OpOperand *scattered) {
  auto &[root, letters, output] = result;
  RowClasses classes(root, letters, output, sizes);
  return formatOf(root.getResult(0)) ? buildSampled(root, letters, output)
         : scattered                 ? buildScattered(root, letters, output, *scattered)
         : classes.find(generics.getArrayRef()) ? classes.build(b)
         : owner("list") ? ListedRows(root, *owner("list"), letters, output, sizes).build(b)
         : owner("permute") ? PermutedRows(root, *owner("permute"), letters, output, sizes).build(b)
         : owner("push") ? buildPushed(root, letters, output, *owner("push"))
         : owner("share") ? SharedRows(root, *owner("share"), letters, output, sizes).build(b)
                          : buildDense(root, letters, output);
}

LogicalResult NestBuilder::run() {
  auto ret = cast<func::ReturnOp>(function.getBody().front().getTerminator());
  FailureOr<SmallVector<linalg::GenericOp>> roots = findRoots(ret);
  if (failed(roots))
    return failure();
  for (linalg::GenericOp each : *roots)
    collect(each.getResult(0));
  b.setInsertionPoint(ret);
  for (linalg::GenericOp generic : generics)
    if (failed(outer.add(generic)))
      return failure();
  SmallVector<KernelResult> results;
  for (linalg::GenericOp each : *roots) {
    results.push_back({each, {}, {}});
    if (failed(outer.lettersOf(each, results.back().letters)))
      return failure();
  }
  linalg::GenericOp root = roots->front();
  FailureOr<ChainForm> form = isChain(function) ? chooseForm(*roots, generics.getArrayRef()) : ChainForm();
  if (failed(form))
    return failure();
  if (isChain(function) && !form->rolled && failed(chain.emplace(outer, root, form->kept).build()))
    return failure();
  if (formatOf(root.getResult(0)) && !zerosOf(root.getOutputs()[0]))
    return root.emitError("an output with a format begins as 'lacis.zeros' of its pattern");
  FailureOr<OpOperand *> operand = scattered(root);
  if (failed(operand))
    return failure();
  for (unsigned place = 1; place <= results.size(); ++place) { // the first is the last argument
    unsigned number = place % results.size();
    results[number].output = addOutput(results[number].root.getResult(0), number);
    describe(results[number].output, results[number].letters);
  }
  if (!form->rolled && failed(buildOthers(MutableArrayRef(results).drop_front())))
    return failure();
  if (failed(form->rolled ? RolledNest(outer, *form->rolled, results).build() : buildFirst(results[0], *operand)))
    return failure();
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
