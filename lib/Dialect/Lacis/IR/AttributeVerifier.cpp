// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the attributes `lacis.…` of modules, functions, arguments and loops must be, whoever wrote them.
#include "lacis/Dialect/Lacis/IR/Lacis.h"
#include "lacis/Dialect/Lacis/IR/Limits.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace lacis;

static bool isText(Attribute attr) { return isa<StringAttr>(attr); }

static bool isInRange(Attribute attr, int64_t least, int64_t most) {
  auto number = dyn_cast_or_null<IntegerAttr>(attr);
  return number && number.getType().isSignlessInteger(64) && number.getInt() >= least && number.getInt() <= most;
}

static bool isNumber(Attribute attr) { return isInRange(attr, 0, std::numeric_limits<int64_t>::max()); }

static bool isPositive(Attribute attr) { return isInRange(attr, 1, std::numeric_limits<int64_t>::max()); }

template <bool fits(Attribute)> static bool isList(Attribute attr) {
  auto list = dyn_cast_or_null<ArrayAttr>(attr);
  return list && llvm::all_of(list, fits);
}

static bool isStages(Attribute attr) { return isInRange(attr, 2, kMostStages); }

static bool isRounds(Attribute attr) { return isInRange(attr, 1, kMostRounds); }

static bool isSize(Attribute attr) { return isa<SizeAttr>(attr); }

static bool isCase(Attribute attr) {
  auto entry = dyn_cast_or_null<DictionaryAttr>(attr);
  return entry && entry.getAs<StringAttr>("name") && isNumber(entry.get("argument")) && isNumber(entry.get("axis")) &&
         isNumber(entry.get("upto"));
}

static bool isMark(Attribute attr) { return isa<UnitAttr>(attr); }

static bool isUnit(Attribute attr) {
  auto text = dyn_cast<StringAttr>(attr);
  return text && symbolizeParallelUnit(text);
}

static bool isLayout(Attribute attr) { return isa<LayoutAttr>(attr); }

static bool isReduction(Attribute attr) { return isa<ReductionAttr>(attr); }

static bool isCost(Attribute attr) { return isa<CostAttr>(attr); }

static bool isArgumentRecord(Attribute attr) {
  auto record = dyn_cast<DictionaryAttr>(attr);
  return record && record.getAs<StringAttr>("kind");
}

static bool isLaunch(Attribute attr) {
  auto launch = dyn_cast<DictionaryAttr>(attr);
  return launch && launch.getAs<StringAttr>("entry");
}

static bool isArtifact(Attribute attr) {
  auto artifact = dyn_cast<DictionaryAttr>(attr);
  return artifact && (!artifact.get("args") || isList<isArgumentRecord>(artifact.get("args"))) &&
         (!artifact.get("launches") || isList<isLaunch>(artifact.get("launches")));
}

static bool isSizes(Attribute attr) {
  auto sizes = dyn_cast<DenseI64ArrayAttr>(attr);
  return sizes && llvm::all_of(sizes.asArrayRef(), [](int64_t size) { return size >= 1; });
}

static bool isSteps(Attribute attr) { return isa<ArrayAttr>(attr); } // each is looked at where it is applied

/// Attributes of other names are whose they are.
static constexpr struct {
  StringLiteral name, what;
  bool (*fits)(Attribute);
} kAttributes[] = {
    {"lacis.apart", "a list of names", isList<isText>},
    {"lacis.artifact", "a record of 'args', each with its 'kind', and of 'launches', each with its 'entry'", isArtifact},
    {"lacis.axes", "a list of names", isList<isText>},
    {"lacis.bind", "the name of a unit, as in 'bind' of a loop", isUnit},
    {"lacis.block", "sizes from 1 on", isSizes},
    {"lacis.blocks_per_processor", "a number from 1 on", isPositive},
    {"lacis.cases", "a list of cases with name, argument, axis and upto", isList<isCase>},
    {"lacis.class", "text", isText},
    {"lacis.classes", "a list of lists of names", isList<isList<isText>>},
    {"lacis.cost", "a '#lacis.cost'", isCost},
    {"lacis.divisible", "sizes from 1 on", isSizes},
    {"lacis.group", "a number", isNumber},
    {"lacis.name", "text", isText},
    {"lacis.pipeline", "a number of stages, from 2 to 256", isStages},
    {"lacis.reduce", "a '#lacis.reduction'", isReduction},
    {"lacis.regroup", "a '#lacis.layout'", isLayout},
    {"lacis.remarks", "a list of sentences", isList<isText>},
    {"lacis.rounds", "a number of rounds, from 1 to 1024", isRounds},
    {"lacis.sample", "the number of an argument", isNumber},
    {"lacis.scan", "a mark without a value", isMark},
    {"lacis.size", "a '#lacis.size'", isSize},
    {"lacis.staged", "text", isText},
    {"lacis.stage", "text", isText},
    {"lacis.steps", "a list of steps", isSteps},
    {"lacis.sums", "a number of sums, from 1 to 1024", isRounds},
    {"lacis.when", "a '#lacis.size'", isSize},
};

static LogicalResult verifyKnown(Operation *op, NamedAttribute attr) {
  for (const auto &known : kAttributes)
    if (attr.getName() == known.name && !known.fits(attr.getValue()))
      return op->emitError("'") << known.name << "' is " << known.what << "; got " << attr.getValue();
  return success();
}

/// How many axes a value of this type has; nothing where it has none.
static std::optional<size_t> rankOf(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.getRank();
  if (auto pattern = dyn_cast<PatternType>(type))
    return pattern.getShape().size();
  return {};
}

/// An argument and an axis of a function, which a pass looks up.
static LogicalResult verifyCases(Operation *op, ArrayAttr cases) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  for (auto entry : cases.getAsRange<DictionaryAttr>()) {
    int64_t argument = entry.getAs<IntegerAttr>("argument").getInt(), axis = entry.getAs<IntegerAttr>("axis").getInt();
    bool exists = function && argument < static_cast<int64_t>(function.getNumArguments());
    if (!exists || axis >= static_cast<int64_t>(rankOf(function.getArgumentTypes()[argument]).value_or(0)))
      return op->emitError("'lacis.cases': there is no axis ") << axis << " of argument " << argument;
  }
  return success();
}

LogicalResult LacisDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  if (failed(verifyKnown(op, attr)))
    return failure();
  if (attr.getName() == "lacis.cases")
    return verifyCases(op, cast<ArrayAttr>(attr.getValue()));
  if (attr.getName() == "lacis.rounds" || attr.getName() == "lacis.sums") {
    auto sums = op->getAttrOfType<IntegerAttr>("lacis.sums"), rounds = op->getAttrOfType<IntegerAttr>("lacis.rounds");
    if (rounds && (!sums || sums.getInt() < 1 || rounds.getInt() % sums.getInt() != 0))
      return op->emitError("'lacis.rounds' are a multiple of 'lacis.sums'");
  }
  return success();
}

LogicalResult LacisDialect::verifyRegionArgAttribute(Operation *op, unsigned region, unsigned argument,
                                                     NamedAttribute attr) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function || failed(verifyKnown(op, attr)))
    return failure();
  std::optional<size_t> rank = rankOf(function.getArgumentTypes()[argument]);
  auto names = dyn_cast<ArrayAttr>(attr.getValue());
  auto sizes = dyn_cast<DenseI64ArrayAttr>(attr.getValue());
  if ((attr.getName() == "lacis.axes" && names.size() != rank) ||
      (attr.getName() == "lacis.divisible" && static_cast<size_t>(sizes.size()) != rank))
    return op->emitError("argument ") << argument << ": " << attr.getName() << " is of each axis; got "
                                      << attr.getValue();
  auto number = dyn_cast<IntegerAttr>(attr.getValue());
  if (attr.getName() == "lacis.sample" && number.getInt() >= static_cast<int64_t>(function.getNumArguments()))
    return op->emitError("argument ") << argument << ": 'lacis.sample' names argument " << number.getInt()
                                      << ", which does not exist";
  return success();
}
