// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i: s += blocks; s += rest  -->  for rest.i: t[i] = s of rest;  for i: s = t[i]; s += blocks
///
/// A part of a sum is summed up by a nest of its own, which runs before: other units may do it, otherwise scheduled.
/// The parts of which that is said one after another share the workspace: each begins with what the one before left.
#include "lacis/Dialect/Lacis/IR/NestFacts.h"
#include "lacis/Dialect/Lacis/IR/Workspace.h"
#include "lacis/Dialect/Lacis/Steps/Steps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lacis;

namespace {

/// What the step finds in the main nest.
struct Chain {
  LoopOp top;
  SmallVector<Operation *> loops; // one of each part, in the order in which they carry the sum
  Operation *part = nullptr;      // the one among them
  WriteOp write;

  Value start() const { return loops.front()->getOperands().back(); }
  /// The workspace that the sum begins with, or null.
  WorkspaceOp workspace() const {
    auto read = start().getDefiningOp<ReadOp>();
    return read ? read.getTensor().getDefiningOp<WorkspaceOp>() : WorkspaceOp();
  }
};

} // namespace

/// The outermost loops of parts of the main nest, where each carries on the sum of the one before.
static bool findLoops(Chain &chain) {
  chain.top->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto write = dyn_cast<WriteOp>(op))
      chain.write = write;
    auto loop = dyn_cast<LoopOpInterface>(op);
    if (!loop || !loop.getPathAttr())
      return WalkResult::advance();
    chain.loops.push_back(op);
    return WalkResult::skip();
  });
  for (auto [n, loop] : llvm::enumerate(chain.loops)) {
    bool follows = n == 0 || (loop->getBlock() == chain.loops[n - 1]->getBlock() &&
                              loop->getOperands().back() == chain.loops[n - 1]->getResult(0));
    if (loop->getNumResults() != 1 || !follows)
      return false;
  }
  return static_cast<bool>(chain.write);
}

/// Fills in what the nest has of a part; answers why the step cannot apply, or nothing.
static std::string findPart(Nest &nest, StringRef name, Chain &chain) {
  SmallVector<StringRef> parts = nest.parts();
  std::string part = ("part '" + name + "'").str();
  if (!llvm::is_contained(parts, name))
    return "no " + part + " of a sum; " +
           (parts.empty() ? "no operand is one, see decompose" : "parts are '" + llvm::join(parts, "', '") + "'");
  chain.top = nest.mainChain().front();
  func::FuncOp function = nest.getFunction();
  if (hasMarks(chain.top) || function->hasAttr("lacis.cases") || function->hasAttr("lacis.apart"))
    return "other steps have marked or copied the nest already; say it before them";
  if (!findLoops(chain))
    return "the parts do not carry one sum, one after another";
  for (Operation *loop : chain.loops)
    if (isInPart(loop, name))
      chain.part = loop;
  if (!chain.part)
    return part + " has a nest of its own already";
  if (chain.loops.size() == 1)
    return part + " is the last one in the nest, which adds it to the others";
  return "";
}

/// The layout that is asked for, or that of the output's axes in their order; null where it is none of dense levels.
static FormatAttr layoutOf(Attribute wanted, Value output) {
  int64_t rank = cast<RankedTensorType>(output.getType()).getRank();
  if (!wanted)
    return denseLayout(output.getContext(), rank);
  auto layout = dyn_cast<FormatAttr>(wanted);
  bool fits = layout && static_cast<int64_t>(layout.getAxes().size()) == rank &&
              llvm::all_of(layout.getLevels(), [](LevelAttr level) { return level.getExtent().coversDomain(); });
  return fits ? layout : FormatAttr();
}

static WorkspaceOp workspaceFor(Chain &chain, FormatAttr layout, Location loc) {
  OpBuilder b(chain.top);
  Value output = chain.write.getTensor();
  auto type = cast<RankedTensorType>(output.getType());
  SmallVector<Value> sizes;
  for (int64_t axis = 0; axis < type.getRank(); ++axis)
    sizes.push_back(tensor::DimOp::create(b, loc, output, axis));
  Type element = chain.part->getResultTypes()[0];
  return WorkspaceOp::create(b, loc, RankedTensorType::get(type.getShape(), element, layout), sizes);
}

/// A loop of a part leaves the sum as it found it.
static void leaveOut(Operation *loop) {
  loop->getResult(0).replaceAllUsesWith(loop->getOperands().back());
  loop->erase();
}

/// What nothing in the nest needs any more.
static void eraseUnused(LoopOp top) {
  top->walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
    bool reads = isa<ReadOp>(op) || isPure(op);
    if (reads && op->use_empty() && !op->hasTrait<OpTrait::IsTerminator>())
      op->erase();
  });
}

/// A copy of the nest, before it, that keeps the sum of the part.
static void makeNest(Chain &chain, WorkspaceOp workspace, StringRef part, Location loc) {
  OpBuilder b(chain.top);
  IRMapping mapping;
  auto top = cast<LoopOp>(b.clone(*chain.top, mapping));
  PathAttr path = pathOf(b.getContext(), PathKind::Part, part);
  top->walk([&](LoopOpInterface loop) {
    if (!isInPart(loop, part))
      loop.setPathAttr(join(path, loop.getPathAttr()));
  });
  auto write = cast<WriteOp>(mapping.lookup(chain.write.getOperation()));
  Operation *sum = mapping.lookup(chain.part);
  SmallVector<Value> indices(write.getIndices());
  write.erase();
  OpBuilder after(sum->getContext());
  after.setInsertionPointAfter(sum);
  WriteOp::create(after, loc, sum->getResult(0), workspace, indices, Value(), IntegerAttr());
  for (Operation *loop : chain.loops)
    if (loop != chain.part)
      leaveOut(mapping.lookup(loop));
  eraseUnused(top);
}

/// The nest itself begins with what is kept.
static void beginWith(Chain &chain, WorkspaceOp workspace, Location loc) {
  if (!chain.workspace()) {
    Operation *first = chain.loops.front();
    OpBuilder b(first);
    Value kept = ReadOp::create(b, loc, chain.part->getResultTypes()[0], workspace, chain.write.getIndices(), Value(),
                                IntegerAttr());
    first->setOperand(first->getNumOperands() - 1, kept);
  }
  leaveOut(chain.part);
  eraseUnused(chain.top);
}

SmallVector<StringRef> PrecomputeStepAttr::namedLoops() const { return {}; }

LogicalResult PrecomputeStepAttr::apply(Nest &nest, Location loc) const {
  Chain chain;
  if (std::string objection = findPart(nest, getPart(), chain); !objection.empty())
    return emitError(loc) << "precompute: " << objection;
  FormatAttr layout = layoutOf(getLayout(), chain.write.getTensor());
  if (!layout)
    return emitError(loc) << "precompute: the layout must be dense levels over the axes of the output";
  WorkspaceOp workspace = chain.workspace();
  if (workspace && getLayout() && formatOf(workspace) != layout)
    return emitError(loc) << "precompute: another part lies in " << formatOf(workspace)
                          << " already, and this one is added to it; say no layout, or that";
  if (!workspace)
    workspace = workspaceFor(chain, layout, loc);
  makeNest(chain, workspace, getPart(), loc);
  beginWith(chain, workspace, loc);
  return success();
}
