// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i: for j  -->  for j: for i, among loops that are perfectly nested.
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

/// Loops that carry one sum swap what they run over: names, sizes, marks, and who uses their coordinates.
static void reorderCarried(ArrayRef<LoopOp> chain, ArrayRef<LoopOp> wanted) {
  struct Face {
    Value upper;
    DictionaryAttr attributes;
    Location loc;
    SmallVector<OpOperand *> uses;
  };
  auto faces = llvm::map_to_vector(wanted, [](LoopOp loop) {
    auto uses = llvm::map_to_vector(loop.getCoordinate().getUses(), [](OpOperand &use) { return &use; });
    return Face{loop.getUpper(), loop->getAttrDictionary(), loop.getLoc(), uses};
  });
  for (auto [place, face] : llvm::zip(chain, faces)) {
    LoopOp loop = place;
    loop.getUpperMutable().assign(face.upper);
    loop->setAttrs(face.attributes);
    loop->setLoc(face.loc);
    for (OpOperand *use : face.uses)
      use->set(loop.getCoordinate());
  }
}

SmallVector<StringRef> ReorderStepAttr::namedLoops() const {
  return llvm::map_to_vector(getLoops().getAsValueRange<StringAttr>(), [](StringRef name) { return name; });
}

LogicalResult ReorderStepAttr::apply(Nest &nest, Location loc) const {
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
  SmallVector<LoopOp> chain = carried ? carriedChain(loops.front()) : perfectChain(outermostLoop(loops.front()));
  SmallVector<unsigned> places;
  for (auto [place, loop] : llvm::enumerate(chain))
    if (llvm::is_contained(loops, loop))
      places.push_back(place);
  if (places.size() != loops.size())
    return emitError(loc) << "reorder: the loops are not perfectly nested in '" << chain.front().getName() << "'";
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
