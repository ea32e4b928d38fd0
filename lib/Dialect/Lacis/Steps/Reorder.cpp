// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i: for j  -->  for j: for i, among loops that are perfectly nested.
///
/// A loop over coordinates and one over positions change places where both carry one sum and neither depends on the other;
/// one that carries none sinks below a walk whose sum is for each of its rounds.
#include "SunkLoop.h"

#include "lacis/Dialect/Lacis/Steps/Steps.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lacis;

/// Loops that carry one sum swap what they run over: names, sizes, marks, and who uses their coordinates.
static void reorderCarried(ArrayRef<LoopOp> chain, ArrayRef<LoopOp> wanted) {
  struct Face {
    Value upper;
    LoopOp::Properties marks;
    DictionaryAttr others;
    Location loc;
    SmallVector<OpOperand *> uses;
  };
  SmallVector<Face, 0> faces;
  for (LoopOp loop : wanted) {
    auto uses = llvm::map_to_vector(loop.getCoordinate().getUses(), [](OpOperand &use) { return &use; });
    faces.push_back({loop.getUpper(), loop.getProperties(), loop->getDiscardableAttrDictionary(), loop.getLoc(), uses});
  }
  for (auto [place, face] : llvm::zip(chain, faces)) {
    LoopOp loop = place;
    loop.getUpperMutable().assign(face.upper);
    loop.getProperties() = face.marks;
    loop->setDiscardableAttrs(face.others);
    loop->setLoc(face.loc);
    for (OpOperand *use : face.uses)
      use->set(loop.getCoordinate());
  }
}

static StringRef nameOf(Operation *loop) { return cast<LoopOpInterface>(loop).getName(); }

static MutableOperandRange initsOf(Operation *loop) {
  if (auto walk = dyn_cast<LevelLoopOp>(loop))
    return walk.getInitsMutable();
  return cast<LoopOp>(loop).getInitsMutable();
}

static ValueRange carriedBy(Operation *loop) {
  return loop->getRegion(0).front().getArguments().take_back(loop->getNumResults());
}

/// What `outer` does beside `inner` in each round, if it is free of effects, and their sum is one; else why not.
static std::string objectionToExchange(Operation *outer, Operation *inner, SmallVectorImpl<Operation *> &found) {
  std::string around = nameOf(outer).str(), inside = nameOf(inner).str();
  Block &body = outer->getRegion(0).front();
  bool carries = outer->getNumResults() != 0 && inner->getNumResults() == outer->getNumResults() &&
                 llvm::equal(ValueRange(OperandRange(initsOf(inner))), carriedBy(outer)) &&
                 llvm::equal(inner->getResults(), body.getTerminator()->getOperands()) &&
                 llvm::all_of(carriedBy(outer), [](Value value) { return value.hasOneUse(); });
  bool isAlone = llvm::all_of(body.without_terminator(), [&](Operation &op) { return &op == inner || isPure(&op); });
  if (!carries || inner->getBlock() != &body || !isAlone)
    return "loops '" + around + "' and '" + inside + "' do not carry one sum, the one inside the other";
  llvm::SetVector<Value> reached(body.args_begin(), body.args_end());
  for (Operation &op : body.without_terminator()) {
    bool depends = llvm::any_of(op.getOperands(), [&](Value value) { return reached.contains(value); });
    if (&op == inner) {
      OperandRange inits = initsOf(inner);
      for (OpOperand &operand : op.getOpOperands())
        if (!llvm::is_contained(inits, operand.get()) && reached.contains(operand.get()))
          return "what loop '" + inside + "' runs over depends on loop '" + around + "'";
      continue;
    }
    if (!depends)
      continue;
    found.push_back(&op);
    reached.insert(op.result_begin(), op.result_end());
  }
  return "";
}

/// for outer: for inner: s  -->  for inner: for outer: s; `found` are the operations of `outer` that depend on it.
static void exchange(Operation *outer, Operation *inner, ArrayRef<Operation *> found) {
  Block &around = outer->getRegion(0).front(), &inside = inner->getRegion(0).front();
  SmallVector<Value> inits(OperandRange(initsOf(outer))), sums(inside.getTerminator()->getOperands());
  for (Operation &op : llvm::make_early_inc_range(around.without_terminator()))
    if (&op != inner && !llvm::is_contained(found, &op))
      op.moveBefore(outer);
  inner->moveBefore(outer);
  Block payload;
  payload.getOperations().splice(payload.end(), around.getOperations(), around.begin(), std::prev(around.end()));
  payload.getOperations().splice(payload.end(), inside.getOperations(), inside.begin(), std::prev(inside.end()));
  around.getOperations().splice(around.begin(), payload.getOperations());
  outer->replaceAllUsesWith(inner->getResults());
  outer->moveBefore(inside.getTerminator());
  for (auto [before, after] : llvm::zip(carriedBy(inner), carriedBy(outer)))
    before.replaceAllUsesWith(after);
  initsOf(inner).assign(inits);
  initsOf(outer).assign(SmallVector<Value>(carriedBy(inner)));
  around.getTerminator()->setOperands(sums);
  inside.getTerminator()->setOperands(outer->getResults());
}

/// One of the two loops walks positions.
static LogicalResult reorderWalk(ArrayRef<Operation *> wanted, Location loc) {
  Operation *first = wanted[0], *second = wanted[1];
  for (Operation *loop : wanted)
    if (auto dense = dyn_cast<LoopOp>(loop); (dense && isMarked(dense)) || cast<LoopOpInterface>(loop).getUnroll())
      return emitError(loc) << "reorder: loop '" << nameOf(loop) << "' is marked already, and one of the two walks positions";
  if (auto dense = dyn_cast<LoopOp>(second); dense && dense.getNumResults() == 0) {
    auto walk = cast<LevelLoopOp>(first);
    if (std::string why = objectionToSinking(dense, walk); !why.empty())
      return emitError(loc) << "reorder: " << why;
    return sinkBelow(dense, walk), success();
  }
  SmallVector<Operation *> found;
  if (std::string why = objectionToExchange(second, first, found); !why.empty())
    return emitError(loc) << "reorder: " << why << "; walk says by which axes an operand is walked";
  exchange(second, first, found);
  return success();
}

/// The loops that are named, where one of them, and no other, walks positions; else nothing.
static SmallVector<Operation *> withWalk(Nest &nest, ArrayRef<StringRef> names) {
  SmallVector<Operation *> loops;
  for (StringRef name : names)
    if (SmallVector<Operation *> all = nest.findAll(name); all.size() == 1 && !llvm::is_contained(loops, all[0]))
      loops.push_back(all[0]);
  unsigned walks = llvm::count_if(loops, llvm::IsaPred<LevelLoopOp>);
  return names.size() > 1 && loops.size() == names.size() && walks == 1 ? loops : SmallVector<Operation *>();
}

/// The loops over coordinates take their order first, then the one of them that has to changes places with the walk.
static LogicalResult reorderAroundWalk(Nest &nest, ArrayRef<Operation *> wanted, Location loc) {
  const auto *place = llvm::find_if(wanted, llvm::IsaPred<LevelLoopOp>);
  SmallVector<Operation *> others(wanted);
  llvm::erase(others, *place);
  SmallVector<Attribute> names =
      llvm::map_to_vector(others, [&](Operation *loop) -> Attribute { return StringAttr::get(loc.getContext(), nameOf(loop)); });
  bool inOrder = llvm::all_of(llvm::zip(others, llvm::drop_begin(others)), [](auto pair) {
    return std::get<0>(pair)->isProperAncestor(std::get<1>(pair));
  });
  MLIRContext *context = loc.getContext();
  if (!inOrder && failed(ReorderStepAttr::get(context, ArrayAttr::get(context, names)).apply(nest, loc)))
    return failure();
  SmallVector<Operation *> pair;
  for (auto [number, loop] : llvm::enumerate(wanted)) {
    Operation *walk = wanted[place - wanted.begin()];
    bool isBefore = int64_t(number) < place - wanted.begin();
    if (loop == walk || (isBefore ? loop->isProperAncestor(walk) : walk->isProperAncestor(loop)))
      continue;
    if (!pair.empty())
      return emitError(loc) << "reorder: more than one loop changes places with loop '" << nameOf(walk)
                            << "', which walks positions; a step moves one";
    pair = isBefore ? SmallVector<Operation *>{loop, walk} : SmallVector<Operation *>{walk, loop};
  }
  return pair.empty() ? success() : reorderWalk(pair, loc);
}

SmallVector<StringRef> ReorderStepAttr::namedLoops() const {
  return llvm::map_to_vector(getLoops().getAsValueRange<StringAttr>(), [](StringRef name) { return name; });
}

/// The order of some loops is part of the order of them all.
Attribute ReorderStepAttr::unify(Attribute open) const {
  auto other = dyn_cast<ReorderStepAttr>(open);
  if (!other)
    return {};
  SmallVector<StringRef> own = namedLoops();
  auto next = own.begin();
  for (StringRef name : other.namedLoops())
    if (next != own.end() && *next == name)
      ++next;
  return next == own.end() ? open : Attribute();
}

LogicalResult ReorderStepAttr::apply(Nest &nest, Location loc) const {
  if (SmallVector<Operation *> walk = withWalk(nest, namedLoops()); !walk.empty())
    return reorderAroundWalk(nest, walk, loc);
  SmallVector<LoopOp> loops;
  for (StringAttr name : getLoops().getAsRange<StringAttr>()) {
    FailureOr<LoopOp> loop = nest.require(name, "reorder", loc);
    if (failed(loop))
      return failure();
    if (llvm::is_contained(loops, *loop))
      return emitError(loc) << "reorder: loop " << name << " is named twice";
    loops.push_back(*loop);
  }
  if (loops.empty())
    return emitError(loc) << "reorder: no loop is named";
  bool carried = loops.front().getNumResults() != 0;
  LoopOp first = *llvm::find_if(loops, [&](LoopOp loop) {
    return llvm::none_of(loops, [&](LoopOp other) { return other->isProperAncestor(loop); });
  });
  SmallVector<LoopOp> chain = carried ? carriedChain(loops.front()) : perfectChain(first);
  SmallVector<unsigned> places;
  for (auto [place, loop] : llvm::enumerate(chain))
    if (llvm::is_contained(loops, loop))
      places.push_back(place);
  if (places.size() != loops.size())
    return emitError(loc) << "reorder: the loops are not perfectly nested in '" << outermostLoop(first).getName() << "'";
  SmallVector<LoopOp> wanted = chain;
  for (auto [place, loop] : llvm::zip(places, loops))
    wanted[place] = loop;
  if (carried)
    return reorderCarried(chain, wanted), success();
  // Empty the chain from the inside, then nest it anew around the innermost body.
  Block *body = chain.back().getBlock();
  Operation *anchor = chain.front()->getNextNode();
  Block *parent = chain.front()->getBlock();
  Block payload;
  payload.getOperations().splice(payload.end(), body->getOperations(), body->begin(), std::prev(body->end()));
  for (LoopOp loop : chain)
    loop->remove();
  parent->getOperations().insert(anchor ? Block::iterator(anchor) : parent->end(), wanted.front());
  for (auto [outer, inner] : llvm::zip(wanted, llvm::drop_begin(wanted)))
    outer.getBlock()->getOperations().insert(outer.getBlock()->begin(), inner);
  Block *innermost = wanted.back().getBlock();
  innermost->getOperations().splice(innermost->begin(), payload.getOperations());
  return success();
}
