// SPDX-License-Identifier: Apache-2.0
/// \file
/// What rings bring for a nest of statements: boxes of operands that products take, vectors along the columns of tiles.
#include "StagedBoxes.h"

#include "lacis/Dialect/Lacis/IR/NestFacts.h"
#include "lacis/Dialect/Lacis/IR/Product.h"
#include "lacis/Dialect/Lacis/IR/Reduction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace lacis;

/// A place in a stored block of the tensor, whose levels, the last two, are behind the position; of values in copies that is
/// behind the copy. A dense matrix is one block.
static std::optional<Access> placeInBlock(Operation *op, Value tensor, Value position, Value copy) {
  Access found;
  for (unsigned below = 0; below < 2; ++below) {
    auto level = position.getDefiningOp<LocateOp>();
    if (!level || level.getDigits().size() != 1)
      return std::nullopt;
    found.indices.insert(found.indices.begin(), level.getDigits()[0]);
    position = level.getParent();
  }
  found.op = op, found.tensor = tensor;
  found.indices.insert(found.indices.begin(), position);
  if (copy)
    found.indices.insert(found.indices.begin(), copy);
  return found;
}

std::optional<Access> Access::ofFactor(Value factor) {
  if (ReadOp read = operandOf(factor))
    return Access(read);
  factor = behindCast(factor);
  auto choice = factor.getDefiningOp<arith::SelectOp>();
  bool isInStep = choice && choice.getCondition().getDefiningOp<FindOp>();
  auto value = (isInStep ? choice.getTrueValue() : factor).getDefiningOp<ValueOp>();
  Value tensor = value && !value.getBatch() ? behindWalk(value.getTensor()) : Value();
  bool isOperand = isa_and_nonnull<BlockArgument>(tensor), isOfStep = isInStep && tensor && tensor.getDefiningOp<RegroupOp>();
  return isOperand || isOfStep ? placeInBlock(value, tensor, value.getPosition(), Value()) : std::nullopt;
}

std::optional<Access> Access::ofStore(Operation *store) {
  if (auto set = dyn_cast<SetOp>(store))
    return placeInBlock(set, set.getTensor(), set.getPosition(), set.getBatch());
  auto write = cast<WriteOp>(store);
  Access found;
  found.op = write, found.tensor = write.getTensor();
  found.indices = foldDigits(write.getIndices());
  return found;
}

FindOp lacis::findOf(const Access &access) {
  if (!access.tensor.getDefiningOp<RegroupOp>())
    return {};
  auto link = access.indices.front().getDefiningOp<LocateOp>();
  return (link ? link.getParent() : access.indices.front()).getDefiningOp<FindOp>();
}

/// Do both reads take the same elements, or elements of one step?
static bool isSame(const Access &one, const Access &other, TileVariance &variance) {
  if (FindOp own = findOf(one), its = findOf(other); own)
    return its && own.getParent() == its.getParent();
  return one.tensor == other.tensor &&
         llvm::all_of(llvm::zip(one.indices, other.indices), [&](auto pair) {
           std::optional<TileVariance::Place> own = variance.placeInParts(std::get<0>(pair));
           std::optional<TileVariance::Place> its = variance.placeInParts(std::get<1>(pair));
           bool areThere = own && its && !own->base == !its->base && own->width == its->width;
           return areThere && (!own->base || isSameValue(own->base, its->base)) &&
                  variance.sizeOf(own->coordinate) == variance.sizeOf(its->coordinate);
         });
}

TileType lacis::listOf(TileType tile, int64_t count) {
  SmallVector<int64_t> shape{count * tile.getCount(), tile.getRows(), tile.getColumns()};
  return count == 1 ? tile : TileType::get(tile.getContext(), shape, tile.getElementType());
}

TileType StagedBox::tileOfRing() const {
  return listOf(tile, consumers);
}

SmallVector<TileType> StagedBoxes::tiles(const StagedBox &ring, TileVariance &variance) {
  SmallVector<TileType> found{ring.tileOfRing()};
  for (ReadOp vector : ring.vectors) {
    int64_t columns = variance.sizeOf(variance.placeOf(vector.getIndices().back())->coordinate);
    found.push_back(TileType::get(vector.getContext(), {1, columns}, vector.getType()));
  }
  for (unsigned number : ring.joined)
    found.push_back(boxes[number].tileOfRing());
  return found;
}

SmallVector<Type> StagedBoxes::types(const StagedBox &ring, TileVariance &variance) {
  return llvm::to_vector_of<Type>(tiles(ring, variance));
}

void StagedBoxes::join(StagedBox &box, StagedBox &other) {
  other.around = &box - boxes.begin();
  other.tiles = 1 + box.vectors.size() + box.joined.size();
  box.joined.push_back(&other - boxes.begin());
  box.left = box.uses += other.uses;
}

void StagedBoxes::add(const StagedBox &box, TileVariance &variance) {
  auto *known = llvm::find_if(boxes, [&](StagedBox &each) { return isSame(each.read, box.read, variance); });
  numbers[box.read.op] = {known - boxes.begin(), 0};
  if (known == boxes.end())
    boxes.push_back(box);
  find(box.read.op).first->left = ++find(box.read.op).first->uses;
}

void StagedBoxes::addVector(ReadOp vector, ReadOp beside, TileVariance &variance) {
  StagedBox &box = *find(beside).first;
  auto *known = llvm::find_if(box.vectors, [&](ReadOp each) { return isSame(each, vector, variance); });
  numbers[vector] = {&box - boxes.begin(), known - box.vectors.begin() + 1};
  if (known == box.vectors.end())
    box.vectors.push_back(vector);
  box.left = ++box.uses;
}

std::pair<StagedBox *, unsigned> StagedBoxes::find(Operation *read) {
  auto found = numbers.find(read);
  if (found == numbers.end())
    return {nullptr, 0};
  return {&boxes[found->second.first], found->second.second};
}

/// A box that is one is loaded before one in parts.
static bool loadsFirst(const StagedBox &box, const StagedBox &other) { return !box.partIndex && other.partIndex; }

/// The boxes of both factors come together, where no other product takes either: consumers wait once for a round.
void StagedBoxes::joinPairs(LoopOp groups) {
  llvm::MapVector<StagedBox *, llvm::SmallSetVector<StagedBox *, 2>> beside;
  groups->walk([&](LoopOp loop) {
    auto product = loop != groups ? factorsOf(loop) : arith::MulFOp();
    auto boxOf = [&](Value factor) -> StagedBox * {
      std::optional<Access> access = product ? Access::ofFactor(factor) : std::nullopt;
      return access ? find(access->op).first : nullptr;
    };
    StagedBox *one = product ? boxOf(product.getLhs()) : nullptr, *other = product ? boxOf(product.getRhs()) : nullptr;
    for (auto [box, its] : {std::pair(one, other), std::pair(other, one)})
      if (box)
        beside[box].insert(its);
  });
  for (auto &[box, others] : beside) {
    StagedBox *other = others.size() == 1 ? others.front() : nullptr;
    bool arePair = other && other != box && beside[other].size() == 1 && box->inRound && other->inRound;
    if (arePair && box->vectors.empty() && other->vectors.empty() && !box->around && box->joined.empty())
      loadsFirst(*box, *other) ? join(*box, *other) : join(*other, *box);
  }
}

//===- Places -------------------------------------------------------------===//

SmallVector<StagedBox *> lacis::placesOf(StagedBoxes &boxes, bool inRound) {
  SmallVector<StagedBox *> found;
  for (StagedBox &box : boxes)
    if ((box.inRound || !inRound) && !box.around)
      found.push_back(&box);
  return found;
}

void lacis::setPlaces(ArrayRef<StagedBox *> boxes, ValueRange places) {
  for (auto [box, place] : llvm::zip(boxes, places))
    box->place = place;
}

SmallVector<Value> lacis::valuesOf(ArrayRef<StagedBox *> boxes) {
  return llvm::map_to_vector(boxes, [](StagedBox *box) { return box->place; });
}

Value lacis::numberOf(OpBuilder &b, Value tensor, ArrayRef<Value> indices, size_t behind) {
  Location loc = tensor.getLoc();
  Value number = indices[0];
  size_t axis = cast<RankedTensorType>(tensor.getType()).getRank() - behind - indices.size();
  for (Value index : indices.drop_front()) {
    Value size = tensor::DimOp::create(b, loc, tensor, ++axis);
    number = arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, number, size), index);
  }
  return number;
}

SmallVector<Value> lacis::placeOfBox(OpBuilder &b, Value tensor, ArrayRef<Value> indices) {
  if (formatOf(tensor))
    return SmallVector<Value>(indices);
  SmallVector<Value> folded(indices.take_back(2));
  if (indices.size() > 2)
    folded.insert(folded.begin(), numberOf(b, tensor, indices.drop_back(2), /*behind=*/2));
  return folded;
}
