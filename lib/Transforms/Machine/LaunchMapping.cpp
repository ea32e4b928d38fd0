// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the mappings of all targets share: one function a nest, and the flat number of a unit.
#include "LaunchMapping.h"
#include "../Stages.h"

using namespace mlir;
using namespace lacis;

static bool isNest(Operation &op) {
  bool bound = false;
  op.walk([&](scf::ForOp loop) { bound |= loop->hasAttr("lacis.bind"); });
  return bound || isa<scf::ForOp>(op);
}

/// Loops that are bound say how many units they have.
static LogicalResult verifyBound(func::FuncOp kernel) {
  auto found = kernel.walk([](scf::ForOp loop) -> WalkResult {
    if (!loop->hasAttr("lacis.bind") || loop->hasAttr("lacis.size"))
      return WalkResult::advance();
    return loop.emitError("bind: the loop is bound to ") << loop->getAttr("lacis.bind") << " and has no 'lacis.size'";
  });
  return failure(found.wasInterrupted());
}

static FailureOr<SmallVector<func::FuncOp>> outlineNests(ModuleOp module) {
  auto kernels = llvm::to_vector(module.getOps<func::FuncOp>());
  if (kernels.size() != 1 || !module->hasAttr("lacis.artifact"))
    return module.emitError("a launch is made of one kernel at the buffers stage");
  func::FuncOp kernel = kernels.front();
  if (kernel.isExternal())
    return kernel.emitError("a launch is made of a kernel with a body");
  if (failed(verifyBound(kernel)))
    return failure();
  SmallVector<func::FuncOp> functions;
  OpBuilder b(kernel);
  for (Operation &nest : llvm::make_filter_range(kernel.getBody().front(), isNest)) {
    IRMapping mapping;
    auto function = cast<func::FuncOp>(b.cloneWithoutRegions(*kernel));
    function.setName((kernel.getName() + "_" + Twine(functions.size())).str());
    OpBuilder body = OpBuilder::atBlockBegin(function.addEntryBlock());
    mapping.map(kernel.getArguments(), function.getArguments());
    for (Operation &op : kernel.getBody().front())
      if (!isNest(op) || &op == &nest)
        body.clone(op, mapping);
    functions.push_back(function);
  }
  kernel.erase();
  return functions;
}

SmallVector<scf::ForOp> lacis::boundLoops(func::FuncOp function, ArrayRef<StringRef> units) {
  SmallVector<scf::ForOp> loops;
  function.walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
    auto unit = loop->getAttrOfType<StringAttr>("lacis.bind");
    if (unit && llvm::is_contained(units, unit.getValue()))
      loops.push_back(loop);
  });
  return loops;
}

SizeAttr lacis::productOfSizes(Builder &b, ArrayRef<scf::ForOp> loops) {
  auto sizes = llvm::map_to_vector(loops, [](scf::ForOp loop) { return loop->getAttrOfType<SizeAttr>("lacis.size"); });
  return SizeAttr::product(b.getContext(), sizes);
}

SmallVector<Value> lacis::decodeUnit(OpBuilder &b, Location loc, Value unit, ArrayRef<scf::ForOp> loops) {
  SmallVector<Value> coordinates(loops.size());
  for (size_t n = loops.size(); n-- > 0;) {
    scf::ForOp loop = loops[n];
    Type type = loop.getInductionVar().getType();
    Value rest = unit;
    if (n > 0) {
      Value size = loop.getUpperBound();
      if (size.getType() != unit.getType())
        size = arith::ExtUIOp::create(b, loc, unit.getType(), size);
      rest = arith::RemUIOp::create(b, loc, unit, size);
      unit = arith::DivUIOp::create(b, loc, unit, size);
    }
    coordinates[n] = type == rest.getType() ? rest : arith::TruncIOp::create(b, loc, type, rest).getResult();
  }
  return coordinates;
}

void lacis::inlineLoop(scf::ForOp loop, Value coordinate) {
  loop.getInductionVar().replaceAllUsesWith(coordinate);
  loop.getBody()->getTerminator()->erase();
  loop->getBlock()->getOperations().splice(loop->getIterator(), loop.getBody()->getOperations());
  loop.erase();
}

static void recordLaunches(ModuleOp module, ArrayRef<Attribute> launches) {
  Builder b(module.getContext());
  NamedAttrList artifact(module->getAttrOfType<DictionaryAttr>("lacis.artifact"));
  artifact.set("launches", b.getArrayAttr(launches));
  module->setAttr("lacis.artifact", artifact.getDictionary(b.getContext()));
}

void lacis::changeLaunches(ModuleOp module, llvm::function_ref<void(NamedAttrList &)> change) {
  SmallVector<Attribute> launches;
  auto artifact = module->getAttrOfType<DictionaryAttr>("lacis.artifact");
  if (!artifact || !artifact.get("launches"))
    return; // a kernel that nobody launches
  for (auto before : artifact.getAs<ArrayAttr>("launches").getAsRange<DictionaryAttr>()) {
    NamedAttrList launch(before);
    change(launch);
    launches.push_back(launch.getDictionary(module.getContext()));
  }
  recordLaunches(module, launches);
}

/// The factor of a launch's size that says when the nest runs; null where it always does.
static SizeAttr conditionOf(func::FuncOp function) {
  SizeAttr condition;
  function.walk([&](scf::ForOp loop) {
    if (auto own = loop->getAttrOfType<SizeAttr>("lacis.when"))
      condition = own;
  });
  return condition;
}

/// The launch, of no size where the condition does not hold.
static Attribute launchWhere(DictionaryAttr launch, SizeAttr condition) {
  Builder b(launch.getContext());
  NamedAttrList fields(launch);
  auto with = [&](Attribute size) -> Attribute { return cast<SizeAttr>(size).times(condition); };
  if (auto grid = launch.getAs<ArrayAttr>("grid")) {
    SmallVector<Attribute> axes(grid.getValue());
    axes[0] = with(axes[0]);
    fields.set("grid", b.getArrayAttr(axes));
  } else {
    fields.set("units", with(launch.get("units")));
  }
  if (auto beside = launch.getAs<ArrayAttr>("beside"))
    fields.set("beside", b.getArrayAttr(llvm::map_to_vector(beside, with)));
  return fields.getDictionary(b.getContext());
}

static constexpr StringLiteral kStart = "lacis.start";

bool lacis::isBeside(func::FuncOp function) {
  return function
      .walk([](scf::ForOp loop) { return loop->hasAttr("lacis.beside") ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

SharedUnits lacis::shareUnits(OpBuilder &b, Location loc, Type type, ArrayRef<scf::ForOp> loops) {
  auto wide = [&](Value value) {
    return value.getType() == type ? value : arith::ExtUIOp::create(b, loc, type, value).getResult();
  };
  auto start = arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, 0));
  start->setAttr(kStart, b.getUnitAttr()); // the units of those before, once they are known
  Value units = arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, 1));
  for (scf::ForOp loop : loops)
    units = arith::MulIOp::create(b, loc, units, wide(loop.getUpperBound()));
  return {start, units, arith::AddIOp::create(b, loc, start, units)};
}

void BesideNests::add(func::FuncOp function, Value end, Attribute size) {
  functions.push_back(function);
  ends.push_back(end);
  sizes.push_back(size);
}

Attribute BesideNests::joinTo(func::FuncOp function, Attribute launch) {
  Block &to = function.getBody().front();
  Value end;
  auto startAt = [&](Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block))
      if (op.hasAttr(kStart)) {
        op.removeAttr(kStart);
        if (end)
          op.getResult(0).replaceAllUsesWith(end), op.erase();
      }
  };
  startAt(functions.front().getBody().front());
  Block::iterator place = to.begin();
  for (auto [before, last] : llvm::zip(functions, ends)) {
    Block &from = before.getBody().front();
    if (end)
      startAt(from);
    for (auto [own, shared] : llvm::zip(from.getArguments(), to.getArguments()))
      own.replaceAllUsesWith(shared);
    to.getOperations().splice(place, from.getOperations(), from.begin(), std::prev(from.end()));
    end = last;
  }
  startAt(to);
  for (func::FuncOp before : functions)
    before.erase();
  NamedAttrList fields(cast<DictionaryAttr>(launch));
  fields.set("beside", ArrayAttr::get(launch.getContext(), sizes));
  *this = {};
  return fields.getDictionary(launch.getContext());
}

/// What a thread has to itself is one piece of memory for all rounds of its loops.
static void hoistTiles(func::FuncOp function) {
  SmallVector<LLVM::AllocaOp> tiles;
  function.walk([&](LLVM::AllocaOp tile) { tiles.push_back(tile); });
  Block &entry = function.getBody().front();
  for (LLVM::AllocaOp tile : tiles) {
    tile->moveBefore(&entry, entry.begin());
    if (Operation *size = tile.getArraySize().getDefiningOp())
      size->moveBefore(tile);
  }
}

LogicalResult lacis::mapNests(ModuleOp module, llvm::function_ref<FailureOr<Attribute>(func::FuncOp)> map) {
  if (hasReached(module, "target"))
    return success();
  auto functions = outlineNests(module);
  if (failed(functions))
    return failure();
  SmallVector<Attribute> launches;
  for (func::FuncOp function : *functions) {
    SizeAttr condition = conditionOf(function);
    FailureOr<Attribute> launch = map(function);
    if (failed(launch))
      return failure();
    hoistTiles(function);
    if (*launch)
      launches.push_back(condition ? launchWhere(cast<DictionaryAttr>(*launch), condition) : *launch);
  }
  recordLaunches(module, launches);
  return success();
}
