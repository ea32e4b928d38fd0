// SPDX-License-Identifier: Apache-2.0
/// \file
/// &y[(extsi(j + code(byte)) + x) * n]  -->  &(&y[(extsi(j) + x) * n])[extui(code(byte)) * n]
/// if c0: A; if c1: B  -->  if c0 and c1: A; B, else: if c0: A; if c1: B
/// ceildiv(n, 4)  -->  (n & -128) / 4, of n = 128 k
///
/// A round that takes codes out of bytes has twice the instructions of one that loads coordinates, and their number is
/// what bounds it. Indices and counters in 64 bits need no extension for each address, and the entries of a round, which
/// all are there as a rule, share the address of what they have in common: codes are added to it, and numbers, which cost
/// nothing there. Where the number of groups is known to be even, so is the first one of a row: two rounds share a byte,
/// and each shifts it by a constant. Figures: docs/cpu.md.
#include "DecodeLoops.h"

#include "lacis/Dialect/Lacis/IR/LacisAttrs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lacis;

namespace {

/// Is it some of the bits of a byte that was loaded?
bool takesBits(arith::ShRUIOp shift) {
  auto byte = shift.getLhs().getDefiningOp<arith::ExtUIOp>();
  return byte && byte.getIn().getType().isInteger(8) && byte.getIn().getDefiningOp<LLVM::LoadOp>();
}

/// Does a loop without loops inside take bits out of bytes?
bool decodes(scf::ForOp loop) {
  bool found = false;
  WalkResult walked = loop.getBody()->walk([&](Operation *op) {
    auto shift = dyn_cast<arith::ShRUIOp>(op);
    found |= shift && takesBits(shift);
    return isa<scf::ForOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found && !walked.wasInterrupted();
}

SmallVector<scf::ForOp> decodingLoops(func::FuncOp kernel) {
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](scf::ForOp loop) {
    if (decodes(loop))
      loops.push_back(loop);
  });
  return loops;
}

/// An index in 64 bits.
Value widened(PatternRewriter &b, Location loc, Value value) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(number.getSExtValue()));
  auto bits = value.getDefiningOp<arith::AndIOp>();
  if (bits && matchPattern(bits.getRhs(), m_ConstantInt(&number)) && number.isNonNegative())
    return arith::ExtUIOp::create(b, loc, b.getI64Type(), value);
  return arith::ExtSIOp::create(b, loc, b.getI64Type(), value);
}

/// Were a sum or a product of 32 bits to overflow, the address that it makes would lie outside.
struct WidenIndex : OpRewritePattern<arith::ExtSIOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::ExtSIOp op, PatternRewriter &b) const override {
    Operation *from = op.getIn().getDefiningOp();
    if (!op.getType().isInteger(64) || !op.getIn().getType().isInteger(32))
      return failure();
    if (auto counter = dyn_cast_or_null<arith::TruncIOp>(from); counter && isa<BlockArgument>(counter.getIn()))
      return b.replaceOp(op, counter.getIn()), success();
    if (!isa_and_nonnull<arith::AddIOp, arith::MulIOp, arith::DivUIOp>(from))
      return failure();
    Value lhs = widened(b, op.getLoc(), from->getOperand(0)), rhs = widened(b, op.getLoc(), from->getOperand(1));
    isa<arith::AddIOp>(from)   ? b.replaceOpWithNewOp<arith::AddIOp>(op, lhs, rhs)
    : isa<arith::MulIOp>(from) ? b.replaceOpWithNewOp<arith::MulIOp>(op, lhs, rhs)
                               : b.replaceOpWithNewOp<arith::DivUIOp>(op, lhs, rhs);
    return success();
  }
};

/// (x * n) / (n * m)  -->  x / m
struct ShortenQuotient : OpRewritePattern<arith::DivUIOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::DivUIOp op, PatternRewriter &b) const override {
    auto product = op.getLhs().getDefiningOp<arith::MulIOp>();
    std::optional<int64_t> by = getConstantIntValue(op.getRhs());
    std::optional<int64_t> times = product ? getConstantIntValue(product.getRhs()) : std::nullopt;
    if (!op.getType().isInteger(64) || !by || !times || *times <= 0 || *by % *times != 0)
      return failure();
    Value rest = arith::ConstantOp::create(b, op.getLoc(), b.getI64IntegerAttr(*by / *times));
    b.replaceOpWithNewOp<arith::DivUIOp>(op, product.getLhs(), rest);
    return success();
  }
};

/// for j = lo to hi: s(j)  -->  for j = extsi(lo) to extsi(hi): s(trunci(j))
void widenCounter(scf::ForOp loop) {
  if (!loop.getInductionVar().getType().isInteger(32))
    return;
  OpBuilder b(loop);
  auto wide = [&](Value bound) { return arith::ExtSIOp::create(b, loop.getLoc(), b.getI64Type(), bound); };
  auto made = scf::ForOp::create(b, loop.getLoc(), wide(loop.getLowerBound()), wide(loop.getUpperBound()),
                                 wide(loop.getStep()), loop.getInits());
  made->setAttrs(loop->getAttrs());
  Block &body = *made.getBody();
  body.clear();
  b.setInsertionPointToStart(&body);
  Value counter = arith::TruncIOp::create(b, loop.getLoc(), loop.getInductionVar().getType(), made.getInductionVar());
  SmallVector<Value> arguments{counter};
  llvm::append_range(arguments, made.getRegionIterArgs());
  for (auto [before, after] : llvm::zip(loop.getBody()->getArguments(), arguments))
    before.replaceAllUsesWith(after);
  body.getOperations().splice(body.end(), loop.getBody()->getOperations());
  loop.replaceAllUsesWith(made.getResults());
  loop.erase();
}

/// Is it a code, a number of times one, or a number? Such are added last.
bool goesLast(Value value) {
  if (auto product = value.getDefiningOp<arith::MulIOp>(); product && matchPattern(product.getRhs(), m_Constant()))
    value = product.getLhs();
  auto wide = value.getDefiningOp<arith::ExtUIOp>();
  auto bits = wide ? wide.getIn().getDefiningOp<arith::AndIOp>() : arith::AndIOp();
  auto shift = bits ? bits.getLhs().getDefiningOp<arith::ShRUIOp>() : arith::ShRUIOp();
  return matchPattern(value, m_Constant()) || (shift && takesBits(shift));
}

/// x + (a + b)  -->  (x + a) + b, in 32 bits where b is a number, so that two rounds name one byte alike.
struct SharedFirst : OpRewritePattern<arith::AddIOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::AddIOp op, PatternRewriter &b) const override {
    auto inner = op.getRhs().getDefiningOp<arith::AddIOp>();
    if (!inner || !(op.getType().isInteger(64) || matchPattern(inner.getRhs(), m_Constant())))
      return failure();
    Value shared = arith::AddIOp::create(b, op.getLoc(), op.getLhs(), inner.getLhs());
    b.replaceOpWithNewOp<arith::AddIOp>(op, shared, inner.getRhs());
    return success();
  }
};

/// (x + last) + y  -->  (x + y) + last
struct AddLast : OpRewritePattern<arith::AddIOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::AddIOp op, PatternRewriter &b) const override {
    auto sum = op.getLhs().getDefiningOp<arith::AddIOp>();
    if (!op.getType().isInteger(64) || !sum || !goesLast(sum.getRhs()) || goesLast(op.getRhs()))
      return failure();
    Value rest = arith::AddIOp::create(b, op.getLoc(), sum.getLhs(), op.getRhs());
    b.replaceOpWithNewOp<arith::AddIOp>(op, rest, sum.getRhs());
    return success();
  }
};

/// (x + last) * n  -->  x * n + last * n
struct ScaleLast : OpRewritePattern<arith::MulIOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::MulIOp op, PatternRewriter &b) const override {
    auto sum = op.getLhs().getDefiningOp<arith::AddIOp>();
    if (!op.getType().isInteger(64) || !sum || !goesLast(sum.getRhs()) || !matchPattern(op.getRhs(), m_Constant()))
      return failure();
    Value rest = arith::MulIOp::create(b, op.getLoc(), sum.getLhs(), op.getRhs());
    Value last = arith::MulIOp::create(b, op.getLoc(), sum.getRhs(), op.getRhs());
    b.replaceOpWithNewOp<arith::AddIOp>(op, rest, last);
    return success();
  }
};

/// &p[x + last]  -->  &(&p[x])[last]
struct SharedAddress : OpRewritePattern<LLVM::GEPOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LLVM::GEPOp op, PatternRewriter &b) const override {
    auto indices = op.getDynamicIndices();
    bool isOne = indices.size() == 1 && op.getRawConstantIndices().size() == 1;
    auto sum = isOne ? indices[0].getDefiningOp<arith::AddIOp>() : arith::AddIOp();
    if (!sum || !goesLast(sum.getRhs()))
      return failure();
    Value shared =
        LLVM::GEPOp::create(b, op.getLoc(), op.getType(), op.getElemType(), op.getBase(), ValueRange{sum.getLhs()});
    b.replaceOpWithNewOp<LLVM::GEPOp>(op, op.getType(), op.getElemType(), shared, ValueRange{sum.getRhs()});
    return success();
  }
};

/// Is memory only read?
bool onlyReads(Block &block) {
  return !block.walk([](Operation *op) {
                 bool known = isa<LLVM::LoadOp, scf::IfOp>(op) || isMemoryEffectFree(op);
                 return known ? WalkResult::advance() : WalkResult::interrupt();
               }).wasInterrupted();
}

/// The operations of a block that values are made of; nothing where a guard is one of them.
std::optional<llvm::SetVector<Operation *>> sourcesOf(ArrayRef<Value> values, Block &block) {
  llvm::SetVector<Operation *> found;
  SmallVector<Value> left(values);
  while (!left.empty()) {
    Operation *op = left.pop_back_val().getDefiningOp();
    if (!op || op->getBlock() != &block || !found.insert(op))
      continue;
    if (isa<scf::IfOp>(op))
      return std::nullopt;
    llvm::append_range(left, op->getOperands());
  }
  return found;
}

/// The operations of a round that are not there yet; `whole` says that all guards hold.
void cloneRound(OpBuilder b, Block &block, IRMapping mapping, bool whole) {
  for (Operation &op : block.without_terminator()) {
    if (op.getNumResults() != 0 && mapping.contains(op.getResult(0)))
      continue;
    auto guard = dyn_cast<scf::IfOp>(op);
    if (!guard || !whole) {
      b.clone(op, mapping);
      continue;
    }
    for (Operation &inner : guard.thenBlock()->without_terminator())
      b.clone(inner, mapping);
    for (auto [result, value] : llvm::zip(guard.getResults(), guard.thenYield().getOperands()))
      mapping.map(result, mapping.lookupOrDefault(value));
  }
  auto values = llvm::map_to_vector(block.getTerminator()->getOperands(),
                                    [&](Value value) { return mapping.lookupOrDefault(value); });
  scf::YieldOp::create(b, block.getTerminator()->getLoc(), values);
}

/// A round whose guards all hold has none.
void splitWhole(scf::ForOp loop) {
  Block &body = *loop.getBody();
  SmallVector<Value> conditions;
  for (auto guard : body.getOps<scf::IfOp>())
    conditions.push_back(guard.getCondition());
  auto sources = sourcesOf(conditions, body);
  if (conditions.size() < 2 || !sources || !onlyReads(body))
    return;
  OpBuilder before(loop);
  auto made = scf::ForOp::create(before, loop.getLoc(), loop.getLowerBound(), loop.getUpperBound(),
                                 loop.getStep(), loop.getInits());
  made->setAttrs(loop->getAttrs());
  made.getBody()->clear();
  OpBuilder b = OpBuilder::atBlockEnd(made.getBody());
  IRMapping mapping;
  mapping.map(body.getArguments(), made.getBody()->getArguments());
  for (Operation &op : body)
    if (sources->contains(&op))
      b.clone(op, mapping);
  Value all = mapping.lookupOrDefault(conditions[0]);
  for (Value condition : ArrayRef(conditions).drop_front())
    all = arith::AndIOp::create(b, loop.getLoc(), all, mapping.lookupOrDefault(condition));
  auto choice = scf::IfOp::create(b, loop.getLoc(), loop.getResultTypes(), all, /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  cloneRound(OpBuilder::atBlockEnd(choice.thenBlock()), body, mapping, /*whole=*/true);
  cloneRound(OpBuilder::atBlockEnd(choice.elseBlock()), body, mapping, /*whole=*/false);
  scf::YieldOp::create(b, loop.getLoc(), choice.getResults());
  loop.replaceAllUsesWith(made.getResults());
  loop.erase();
}

/// What is known to divide the size that argument `number` of a kernel is; 1 where nothing is.
int64_t divisorOf(DictionaryAttr record, unsigned number) {
  auto whole = [](DictionaryAttr of, StringRef name) {
    auto value = of.getAs<IntegerAttr>(name);
    return value ? value.getInt() : 0;
  };
  auto arguments = record.getAs<ArrayAttr>("args"), tensors = record.getAs<ArrayAttr>("tensors"),
       sizes = record.getAs<ArrayAttr>("sizes");
  if (!arguments || !tensors || !sizes || number >= arguments.size())
    return 1;
  auto argument = cast<DictionaryAttr>(arguments[number]);
  if (argument.getAs<StringAttr>("kind") != "dim")
    return 1;
  for (auto tensor : tensors.getAsRange<DictionaryAttr>()) {
    auto dims = tensor.getAs<ArrayAttr>("dims");
    if (tensor.get("name") || tensor.get("derived") || !dims || whole(tensor, "operand") != whole(argument, "operand"))
      continue;
    std::optional<int64_t> size = cast<SizeAttr>(dims[whole(argument, "dim")]).getArgument();
    return size ? std::max<int64_t>(whole(cast<DictionaryAttr>(sizes[*size]), "multiple"), 1) : 1;
  }
  return 1;
}

/// The exact quotient of a size, in words that show what divides it.
void showDivisors(func::FuncOp kernel, DictionaryAttr record) {
  kernel.walk([&](arith::CeilDivUIOp op) {
    auto narrow = op.getLhs().getDefiningOp<arith::TruncIOp>();
    auto argument = dyn_cast<BlockArgument>(narrow ? narrow.getIn() : op.getLhs());
    APInt by;
    if (!argument || argument.getOwner() != &kernel.front() || !matchPattern(op.getRhs(), m_ConstantInt(&by)))
      return;
    int64_t divisor = divisorOf(record, argument.getArgNumber());
    int64_t power = divisor & -divisor; // of two
    if (divisor % by.getSExtValue() != 0 || power == 1)
      return;
    OpBuilder b(op);
    Value mask = arith::ConstantOp::create(b, op.getLoc(), b.getIntegerAttr(op.getType(), -power));
    Value size = arith::AndIOp::create(b, op.getLoc(), op.getLhs(), mask);
    op.replaceAllUsesWith(arith::DivUIOp::create(b, op.getLoc(), size, op.getRhs()).getResult());
    op.erase();
  });
}

class DecodeLoops : public PassWrapper<DecodeLoops, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DecodeLoops)
  StringRef getName() const override { return "lacis-decode-loops"; }

  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<arith::ArithDialect>(); }

  void runOnOperation() override {
    auto record = getOperation()->getAttrOfType<DictionaryAttr>("lacis.artifact");
    RewritePatternSet patterns(&getContext());
    patterns.add<WidenIndex, SharedFirst, AddLast, ScaleLast, ShortenQuotient, SharedAddress>(&getContext());
    FrozenRewritePatternSet frozen(std::move(patterns));
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      SmallVector<scf::ForOp> loops = decodingLoops(kernel);
      for (scf::ForOp loop : loops)
        splitWhole(loop);
      for (scf::ForOp loop : decodingLoops(kernel))
        widenCounter(loop);
      for (scf::ForOp loop : decodingLoops(kernel))
        if (failed(applyPatternsGreedily(loop.getRegion(), frozen)))
          return signalPassFailure();
      if (!loops.empty() && record)
        showDivisors(kernel, record);
    }
  }
};

} // namespace

std::unique_ptr<Pass> lacis::createDecodeLoopsPass() { return std::make_unique<DecodeLoops>(); }
