// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which products are waited for in the block that begins them, and which rings such products alone read.
#include "Awaited.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::hopper;

/// What waits for the product in its own block; null where nothing does.
static CompleteOp waitOf(MmaOp product) {
  auto wait = product.getResult().hasOneUse() ? dyn_cast<CompleteOp>(*product.getResult().user_begin()) : CompleteOp();
  bool isOfProducts = wait && llvm::all_of(wait.getValues(), [&](Value value) {
                        auto other = value.getDefiningOp<MmaOp>();
                        return other && other->getBlock() == wait->getBlock();
                      });
  return isOfProducts ? wait : CompleteOp();
}

/// What ends the use of the place in the block that acquires or revisits it: its release, or, of one that is kept beyond
/// the next one, what hands it on. Null where nothing does. A branch beside may have its own.
static Operation *endOf(Operation *acquire) {
  Operation *end = nullptr;
  bool isKept = isa<RevisitOp>(acquire);
  for (Operation *user : acquire->getOperand(0).getUsers()) {
    if (user->getBlock() != acquire->getBlock())
      continue;
    isKept |= isa<AdvanceOp, ReleaseOp>(user);
    if (!isa<AcquireOp, AdvanceOp, RevisitOp>(user) && (!end || user->isBeforeInBlock(end)))
      end = user;
  }
  return isKept ? end : nullptr;
}

/// All that reads the place has happened before it is released: products are complete, and registers are loaded.
bool Awaited::isFreeWhereReleased(Operation *acquire) const {
  Operation *end = endOf(acquire);
  auto isBefore = [&](Operation *op) {
    Operation *own = end->getBlock()->findAncestorOpInBlock(*op);
    return own && own->isBeforeInBlock(end);
  };
  return end && llvm::all_of(acquire->getUsers(), [&](Operation *user) {
           if (isa<ReadTileOp, ReadColumnsOp, StoreTileOp>(user))
             return isBefore(user);
           auto product = dyn_cast<MmaOp>(user);
           return product && products.contains(product) && isBefore(waitOf(product));
         });
}

/// Removes rings that others read, and the products that read them; false where there are none.
bool Awaited::dropOthers(ArrayRef<Operation *> acquires) {
  bool changed = false;
  for (Operation *acquire : acquires) {
    RingOp ring = ringOf(acquire->getOperand(0));
    if (rings.contains(ring) && !isFreeWhereReleased(acquire))
      changed |= rings.erase(ring);
    if (rings.contains(ring))
      continue;
    for (Operation *user : acquire->getUsers())
      changed |= products.erase(user);
  }
  return changed;
}

Awaited::Awaited(RolesOp roles) {
  SmallVector<Operation *> acquires;
  roles.getConsumer().walk([&](MmaOp product) {
    if (!product.getPresent() && waitOf(product))
      products.insert(product);
  });
  auto isOfProducts = [](Operation *user) {
    auto read = dyn_cast<ReadTileOp>(user); // what products hold
    return isa<MmaOp>(user) || (read && !read.getAcc().getType().getElementType().isF32());
  };
  roles.getConsumer().walk([&](Operation *acquire) {
    if (!isa<AcquireOp, RevisitOp>(acquire))
      return;
    acquires.push_back(acquire);
    if (llvm::any_of(acquire->getUsers(), isOfProducts))
      rings.insert(ringOf(acquire->getOperand(0)));
    if (llvm::any_of(acquire->getUsers(), llvm::IsaPred<StoreTileOp>))
      stored.insert(ringOf(acquire->getOperand(0)));
  });
  while (dropOthers(acquires)) {
  }
}
