// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sums over the entries of a row that one loop can make: those of exponentials below a maximum are rescaled when it grows.
///
/// With p(t, m) = exp(t - m) is p(t, n) = p(t, m) p(m, n): what was added up for a maximum m is right for a larger one, n,
/// when it is multiplied by p(m, n). That holds of every sum that is linear in p and begins at 0. Without a maximum a round
/// adds what it makes; sums that are linear in it take nothing from padding, where it is 0.
#include "Rescaled.h"

#include "Expression.h"
#include "lacis/Dialect/Lacis/IR/Follows.h"
#include "lacis/Dialect/Lacis/IR/Nest.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lacis;

static constexpr StringLiteral kNoMaximum =
    "no statement takes the largest of what another made on the pattern, for exponentials below it";
static constexpr StringLiteral kNoSum = "no statement adds up what another made on the pattern";
static const std::string kOutside = " is no statement of the loop";

static Operation *resultOf(linalg::GenericOp generic) {
  return generic.getBody()->getTerminator()->getOperand(0).getDefiningOp();
}

static std::string nameOf(linalg::GenericOp generic) {
  auto name = generic->getAttrOfType<StringAttr>("lacis.name");
  return name ? "'" + name.str() + "'" : "a statement";
}

static bool isMadeBy(Value value, linalg::GenericOp maker) {
  return value == maker.getResult(0) || makerOf(value) == maker; // behind a walk
}

/// The block argument for what `maker` made, or null; the last of several.
static Value readerOf(linalg::GenericOp generic, linalg::GenericOp maker) {
  Value found;
  for (OpOperand *operand : generic.getDpsInputOperands())
    if (isMadeBy(operand->get(), maker))
      found = generic.getMatchingBlockArgument(operand);
  return found;
}

/// m, or 0 where that is -infinity: no score yet, whose difference would be NaN.
static bool isMaximum(Value value, Value largest) {
  if (value == largest)
    return true;
  auto select = value.getDefiningOp<arith::SelectOp>();
  auto compare = select ? select.getCondition().getDefiningOp<arith::CmpFOp>() : arith::CmpFOp();
  return compare && compare.getPredicate() == arith::CmpFPredicate::OEQ && compare.getLhs() == largest &&
         matchPattern(compare.getRhs(), m_NegInfFloat()) && matchPattern(select.getTrueValue(), m_AnyZeroFloat()) &&
         select.getFalseValue() == largest;
}

/// exp(t - m), of nothing else.
static bool isShare(linalg::GenericOp generic, Value score, Value largest) {
  Operation *exponential = resultOf(generic);
  if (!isa_and_nonnull<math::ExpOp, math::Exp2Op>(exponential) || generic.getNumDpsInputs() != 2 || !score || !largest)
    return false;
  auto difference = exponential->getOperand(0).getDefiningOp<arith::SubFOp>();
  return difference && difference.getLhs() == score && isMaximum(difference.getRhs(), largest);
}

/// Is `value` a product with `share` as one factor, or that or 0 as something else says? `known` has what was asked.
static bool isLinear(Value value, Value share, llvm::SmallDenseMap<Value, bool> &known) {
  if (value == share)
    return true;
  if (auto found = known.find(value); found != known.end())
    return found->second;
  bool linear = false;
  if (auto choice = value.getDefiningOp<arith::SelectOp>())
    linear = !followsFrom(choice.getCondition(), share) && isLinear(choice.getTrueValue(), share, known) &&
             matchPattern(choice.getFalseValue(), m_AnyZeroFloat());
  else if (auto product = value.getDefiningOp<arith::MulFOp>())
    linear = isLinear(product.getLhs(), share, known) != isLinear(product.getRhs(), share, known);
  return known[value] = linear;
}

static bool isLinear(Value value, Value share) {
  llvm::SmallDenseMap<Value, bool> known;
  return isLinear(value, share, known);
}

/// sum += a product with p, from 0 on.
static bool isFollower(linalg::GenericOp generic, linalg::GenericOp shares) {
  Value share = readerOf(generic, shares);
  if (llvm::count_if(generic.getInputs(), [&](Value input) { return isMadeBy(input, shares); }) != 1)
    return false;
  auto sum = dyn_cast_or_null<arith::AddFOp>(resultOf(generic));
  Value carried = generic.getRegionOutputArgs()[0];
  auto fill = generic.getOutputs()[0].getDefiningOp<linalg::FillOp>();
  return sum && sum.getLhs() == carried && share && isLinear(sum.getRhs(), share) && fill &&
         matchPattern(fill.getInputs()[0], m_AnyZeroFloat());
}

/// Elements on the pattern that are linear in p, each in that of its own place.
static bool isLinearIn(linalg::GenericOp generic, linalg::GenericOp shares) {
  Value share = readerOf(generic, shares);
  return share && formatOf(generic.getResult(0)) && generic.getNumReductionLoops() == 0 &&
         llvm::count_if(generic.getInputs(), [](Value input) { return formatOf(input) != nullptr; }) == 1 &&
         isLinear(generic.getBody()->getTerminator()->getOperand(0), share);
}

/// Is the statement one that the scores are made of?
static bool leadsTo(linalg::GenericOp statement, linalg::GenericOp scores) {
  SmallVector<linalg::GenericOp> left{scores};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!left.empty()) {
    linalg::GenericOp next = left.pop_back_val();
    if (next == statement)
      return true;
    for (Value input : next.getInputs())
      if (auto maker = input.getDefiningOp<linalg::GenericOp>(); maker && seen.insert(maker).second)
        left.push_back(maker);
  }
  return false;
}

/// Does the statement take the largest of what another made on the pattern?
static bool takesLargest(linalg::GenericOp generic) {
  return isa_and_nonnull<arith::MaximumFOp>(resultOf(generic)) && madeOperand(generic) && !formatOf(generic.getResult(0));
}

/// The maximum, the scores that it is of, and the exponentials below it.
static std::string findLargest(Rescaled &found, ArrayRef<linalg::GenericOp> statements) {
  for (linalg::GenericOp each : statements)
    if (takesLargest(each)) {
      if (found.largest)
        return "two maxima, " + nameOf(found.largest) + " and " + nameOf(each) + ", are no one state";
      found.largest = each;
    }
  if (found.largest.getNumDpsInputs() != 1)
    return kNoMaximum.str();
  linalg::GenericOp scores = makerOf(found.largest.getInputs()[0]);
  found.made.push_back(scores);
  for (linalg::GenericOp each : statements)
    if (formatOf(each.getResult(0)) && readerOf(each, found.largest)) {
      if (!isShare(each, readerOf(each, scores), readerOf(each, found.largest)))
        return nameOf(each) + " depends on the maximum through more than the exponential of a difference";
      if (found.shares)
        return nameOf(each) + kOutside;
      found.shares = each;
    }
  return found.shares ? "" : kNoMaximum.str();
}

static std::string objectionToFollowers(Rescaled &found, ArrayRef<linalg::GenericOp> roots,
                                        ArrayRef<linalg::GenericOp> statements) {
  for (linalg::GenericOp each : statements)
    if (isLinearIn(each, found.shares))
      found.linear.push_back(each);
  for (linalg::GenericOp each : statements) {
    bool isMade = each == found.largest || each == found.shares || llvm::is_contained(found.linear, each);
    if (isMade || leadsTo(each, found.made[0]))
      continue;
    auto linear = llvm::find_if(found.linear, [&](linalg::GenericOp own) { return readerOf(each, own) != nullptr; });
    bool readsOne = llvm::count_if(each.getInputs(), [](Value input) { return formatOf(input) != nullptr; }) == 1;
    if (linear != found.linear.end()) {
      if (!readsOne || !isFollower(each, *linear))
        return nameOf(each) + " is no sum from 0 on that is linear in " + nameOf(*linear);
      found.followers.push_back(each);
    } else if (readerOf(each, found.shares)) {
      if (!isFollower(each, found.shares))
        return nameOf(each) + " is no sum from 0 on that is linear in " + nameOf(found.shares);
      found.followers.push_back(each);
    } else if (!llvm::is_contained(roots, each) || madeOperand(each)) {
      return nameOf(each) + kOutside;
    }
  }
  for (linalg::GenericOp root : roots)
    if (formatOf(root.getResult(0)) || root == found.largest || llvm::is_contained(found.followers, root))
      return nameOf(root) + kOutside;
  return "";
}

/// Sums without a maximum; what several statements read, or a sum does, stands in a tile of its own.
static std::string objectionToSums(Rescaled &found, ArrayRef<linalg::GenericOp> roots,
                                   ArrayRef<linalg::GenericOp> statements) {
  for (linalg::GenericOp each : statements) {
    if (formatOf(each.getResult(0)))
      continue;
    if (OpOperand *made = madeOperand(each)) {
      linalg::GenericOp maker = makerOf(made->get());
      if (llvm::count_if(each.getInputs(), [](Value input) { return formatOf(input) != nullptr; }) != 1 ||
          !isFollower(each, maker))
        return nameOf(each) + " is no sum from 0 on that is linear in " + nameOf(maker);
      found.followers.push_back(each);
    } else if (llvm::none_of(each.getInputs(), [](Value input) { return input.getDefiningOp<linalg::GenericOp>(); })) {
      return nameOf(each) + kOutside;
    }
  }
  for (linalg::GenericOp each : statements) {
    if (!formatOf(each.getResult(0)))
      continue;
    auto reads = [&](linalg::GenericOp reader) { return readerOf(reader, each) != nullptr; };
    auto isDense = [](Value input) { return !formatOf(input) && input.getDefiningOp<linalg::GenericOp>(); };
    if (llvm::is_contained(roots, each) || llvm::any_of(each.getInputs(), isDense)) // a sum before another
      return nameOf(each) + kOutside;
    if (llvm::any_of(found.followers, reads) || llvm::count_if(statements, reads) > 1)
      found.made.push_back(each);
  }
  llvm::sort(found.made, [](linalg::GenericOp a, linalg::GenericOp b) { return a->isBeforeInBlock(b); });
  return found.followers.empty() ? kNoSum.str() : "";
}

static SmallVector<std::string> lettersOf(linalg::GenericOp generic) {
  SmallVector<std::string> names;
  for (AffineExpr expr : generic.getIndexingMapsArray().back().getResults())
    names.push_back(letterName(generic, cast<AffineDimExpr>(expr).getPosition()));
  return names;
}

/// The letters of the pattern that each sum is over, or that each lacks.
static std::string objectionToRows(const Rescaled &found, ArrayRef<std::string> names, SmallVector<std::string> &rows) {
  SmallVector<linalg::GenericOp> sums(found.followers);
  if (found.largest)
    sums.insert(sums.begin(), found.largest);
  for (linalg::GenericOp each : sums) {
    SmallVector<std::string> own = lettersOf(each);
    llvm::erase_if(own, [&](const std::string &name) { return !llvm::is_contained(names, name); });
    llvm::sort(own);
    if (each != sums.front() && own != rows)
      return nameOf(each) + " is over other axes than " + nameOf(sums.front());
    rows = own;
  }
  return "";
}

/// A loop over positions, under digits of rows that are located, and above one tile of each at the most.
static std::string objectionToLevels(Rescaled &found) {
  SmallVector<std::string> names = lettersOf(found.made[0]), rowNames;
  if (std::string objection = objectionToRows(found, names, rowNames); !objection.empty())
    return objection;
  FormatAttr format = formatOf(found.made[0].getResult(0));
  auto isRow = [&](Digit digit) { return llvm::is_contained(rowNames, names[digit.axis]); };
  if (rowNames.size() + 1 != names.size() || !format.getBindings().empty())
    return "the sum is over one axis of a pattern without bindings";
  ArrayRef<LevelAttr> levels = format.getLevels();
  while (found.level < levels.size() && llvm::all_of(levels[found.level].getDigits(), isRow) &&
         levels[found.level].getExtent().coversDomain())
    ++found.level;
  std::string number = std::to_string(found.level);
  if (found.level == levels.size() || levels[found.level].getDigits().size() != 1 || isRow(levels[found.level].getDigits()[0]) ||
      levels[found.level].getExtent().coversDomain())
    return "level " + number + " of the pattern has no positions of one row after another";
  unsigned tiles[2] = {0, 0};
  for (LevelAttr level : levels.drop_front(found.level + 1))
    for (Digit digit : level.getDigits()) {
      if (!level.getExtent().coversDomain() || !level.getCoordinate().isImplicit() || digit.mod == 0 || digit.div != 1 ||
          level.getDigits().size() != 1 || ++tiles[isRow(digit)] > 1)
        return "the levels below level " + number + " of the pattern are no dense tile";
    }
  std::string letter = names[levels[found.level].getDigits()[0].axis];
  found.loop = digitName(letter, 0, 1 + tiles[0]);
  for (linalg::GenericOp each : found.followers)
    for (auto [dim, size] : llvm::zip(each.getIndexingMapsArray().back().getResults(),
                                      cast<RankedTensorType>(each.getResult(0).getType()).getShape()))
      if (std::string name = letterName(each, cast<AffineDimExpr>(dim).getPosition());
          !llvm::is_contained(rowNames, name) && ShapedType::isDynamic(size))
        return "the size of '" + name + "' is not compiled in, and " + nameOf(each) + " has it in a tile";
  return "";
}

FailureOr<Rescaled> lacis::findRescaled(ArrayRef<linalg::GenericOp> roots, ArrayRef<linalg::GenericOp> statements,
                                        std::string &objection) {
  Rescaled found;
  if (llvm::none_of(statements, takesLargest))
    objection = objectionToSums(found, roots, statements);
  else if (objection = findLargest(found, statements); objection.empty())
    objection = objectionToFollowers(found, roots, statements);
  if (objection.empty())
    objection = objectionToLevels(found);
  if (!objection.empty())
    return failure();
  return found;
}
