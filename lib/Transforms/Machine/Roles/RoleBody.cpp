// SPDX-License-Identifier: Apache-2.0
/// \file
/// Loops and branches of a role, whose carried tile values become several values.
#include "RoleBody.h"
#include "../../Buffers/Addressing.h"
#include "../LaunchMapping.h"
#include "../../Stages.h"
#include "WarpInstructions.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lacis;

//===- Pieces -------------------------------------------------------------===//

static bool isTileValue(Type type) { return isa<RingType, TileType, AccType>(type); }

RoleBody::Pieces RoleBody::pieces(Value value) {
  if (auto found = split.find(value); found != split.end())
    return found->second;
  return {mapping.lookupOrDefault(value)};
}

RoleBody::Pieces RoleBody::pieces(ValueRange values) {
  Pieces all;
  for (Value value : values)
    llvm::append_range(all, pieces(value));
  return all;
}

void RoleBody::setPieces(Value before, ValueRange after) {
  if (isTileValue(before.getType()))
    split[before] = Pieces(after);
  else
    mapping.map(before, after.front());
}

void RoleBody::distribute(ValueRange before, ValueRange all) {
  for (Value value : before) {
    size_t count = countPieces(value.getType());
    setPieces(value, all.take_front(count));
    all = all.drop_front(count);
  }
}

void RoleBody::map(OpBuilder &b, Value argument, Value number) {
  mapping.map(argument, castInteger(b, number.getLoc(), number, argument.getType()));
}

RoleBody::Pieces RoleBody::placesAt(OpBuilder &b, MapOp op, Value row, Value column) {
  Pieces found, owns{row, column};
  for (auto [place, own] : llvm::zip(op.getPlaces(), owns)) {
    Value first = mapping.lookupOrDefault(place);
    found.push_back(arith::AddIOp::create(b, op.getLoc(), first, castInteger(b, op.getLoc(), own, first.getType())));
  }
  return found;
}

Value RoleBody::applyMap(OpBuilder &b, MapOp op, llvm::function_ref<Value(Value)> element, ValueRange coordinates,
                         bool isEven) {
  Block &body = op.getBody().front();
  for (auto [coordinate, argument] : llvm::zip(coordinates, body.getArguments().take_back(coordinates.size())))
    mapping.map(argument, coordinate);
  for (auto [value, argument] : llvm::zip(op.getValues(), body.getArguments()))
    mapping.map(argument, element(value));
  for (Operation &inner : body.without_terminator())
    if (auto load = dyn_cast<LLVM::LoadOp>(b.clone(inner, mapping)); load && !isEven)
      load.removeAlignmentAttr(); // that of even columns
  return mapping.lookupOrDefault(body.getTerminator()->getOperand(0));
}

RoleBody::Pieces RoleBody::placeOf(OpBuilder &b, Value value) {
  if (auto ring = value.getDefiningOp<RingOp>(); ring && !split.count(value))
    lowerRing(b, ring);
  return pieces(value);
}

std::array<Value, 2> RoleBody::nextPlace(OpBuilder &b, Location loc, Value ring) {
  WarpInstructions i(b, loc);
  Pieces at = pieces(ring);
  Value last = i.equal(at[0], cast<RingType>(ring.getType()).getStages() - 1);
  Value stage = arith::SelectOp::create(b, loc, last, i.constant(0), i.add(at[0], 1));
  Value flipped = arith::XOrIOp::create(b, loc, at[1], i.constant(1));
  return {stage, arith::SelectOp::create(b, loc, last, flipped, at[1])};
}

Value RoleBody::tileAddress(WarpInstructions &i, Value tile, Value place) {
  Value address = pieces(tile)[0];
  if (!place)
    return address;
  return i.add(address, i.multiply(mapping.lookupOrDefault(place), bytesPerTile(cast<TileType>(tile.getType()))));
}

//===- Structure ----------------------------------------------------------===//

LogicalResult RoleBody::lower(OpBuilder &b, Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(lowerOperation(b, op)))
      return failure();
  return success();
}

LogicalResult RoleBody::lowerOperation(OpBuilder &b, Operation &op) {
  auto done = lowerOneOf<scf::ForOp, scf::IfOp, LoadAccOp, StoreAccOp>(op, [&](auto own) { return lower(b, own); });
  if (!done)
    done = lowerTiles(b, op);
  return done ? *done : cloneOther(b, op);
}

static bool isIndex(Value value) { return value.getType().isInteger(32) || value.getType().isInteger(64); }

/// A role knows no thread, so what it loads is the same for all; consumers' branches must be known to be uniform.
LogicalResult RoleBody::cloneOther(OpBuilder &b, Operation &op) {
  auto inside = op.walk([](Operation *inner) {
    return llvm::any_of(inner->getOperandTypes(), isTileValue) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (inside.wasInterrupted())
    return op.emitError("tiles: '") << op.getName() << "' has no place inside a role";
  if (llvm::all_of(op.getResults(), [&](Value result) { return mapping.contains(result); }) && isa<LLVM::LoadOp>(op))
    return success(); // loaded a round ago
  b.clone(op, mapping);
  if (isa<LLVM::LoadOp>(op) && isIndex(op.getResult(0)) && !isProducer)
    mapping.map(op.getResult(0), WarpInstructions(b, op.getLoc()).uniform(mapping.lookup(op.getResult(0))));
  return success();
}

/// Operations of the loop's body that the address of `load` takes, in order; false where it needs more than arithmetic
/// on the counter.
static bool addressOf(LLVM::LoadOp load, scf::ForOp loop, SetVector<Operation *> &address) {
  SmallVector<Value> open{load.getAddr()};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getOwner() == loop.getBody() && argument != loop.getInductionVar())
        return false;
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (op->getBlock() != loop.getBody() || !address.insert(op))
      continue;
    if (!isPure(op))
      return false;
    llvm::append_range(open, op->getOperands());
  }
  return true;
}

/// The load is of an array that the kernel only reads.
static bool isOfReadonlyArray(LLVM::LoadOp load) {
  auto element = load.getAddr().getDefiningOp<LLVM::GEPOp>();
  auto array = dyn_cast<BlockArgument>(element ? element.getBase() : load.getAddr());
  auto function = array ? dyn_cast<func::FuncOp>(array.getOwner()->getParentOp()) : func::FuncOp();
  return function && function.getArgAttr(array.getArgNumber(), "llvm.readonly");
}

/// Loads that a round of the loop can start for the next one.
SmallVector<LLVM::LoadOp> RoleBody::earlyLoads(scf::ForOp loop) {
  SmallVector<LLVM::LoadOp> loads;
  bool hasRing = llvm::any_of(loop.getBody()->getOperations(), [](Operation &op) { return isa<AcquireOp>(op); });
  for (auto load : loop.getBody()->getOps<LLVM::LoadOp>()) {
    SetVector<Operation *> address;
    if (hasRing && isOfReadonlyArray(load) && addressOf(load, loop, address))
      loads.push_back(load);
  }
  return loads;
}

/// What `load` reads in the round `counter`; in the last round before `end` once more, in none 0.
Value RoleBody::loadAt(OpBuilder &b, LLVM::LoadOp load, Value counter, Value first, Value end) {
  Location loc = load.getLoc();
  auto loop = cast<scf::ForOp>(load->getParentOp());
  SetVector<Operation *> address;
  addressOf(load, loop, address);
  Value some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, counter, end);
  auto guard = scf::IfOp::create(b, loc, load.getType(), some, /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder then = OpBuilder::atBlockEnd(guard.thenBlock()), otherwise = OpBuilder::atBlockEnd(guard.elseBlock());
  IRMapping local = mapping;
  local.map(loop.getInductionVar(), counter);
  for (Operation &op : *loop.getBody())
    if (address.contains(&op))
      then.clone(op, local);
  scf::YieldOp::create(then, loc, then.clone(*load, local)->getResult(0));
  scf::YieldOp::create(otherwise, loc, first);
  return guard.getResult(0);
}

LogicalResult RoleBody::lower(OpBuilder &b, scf::ForOp loop) {
  Location loc = loop.getLoc();
  for (Value place : loop.getInits())
    if (isa<RingType>(place.getType()))
      (void)placeOf(b, place);
  Value begin = mapping.lookupOrDefault(loop.getLowerBound()), end = mapping.lookupOrDefault(loop.getUpperBound());
  Value step = mapping.lookupOrDefault(loop.getStep());
  SmallVector<LLVM::LoadOp> early = earlyLoads(loop);
  Pieces inits = pieces(loop.getInits());
  for (LLVM::LoadOp load : early) {
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(load.getType()));
    inits.push_back(loadAt(b, load, begin, zero, end));
  }
  auto made = scf::ForOp::create(b, loc, begin, end, step, inits);
  if (made.getBody()->mightHaveTerminator())
    made.getBody()->getTerminator()->erase();
  // Neither unrolled nor peeled: products must not be under a test that holds in some round only.
  made->setAttr("llvm.loop_annotation",
                parseAttribute("#llvm.loop_annotation<unroll = <disable = true>>", loop.getContext()));
  mapping.map(loop.getInductionVar(), made.getInductionVar());
  auto carried = made.getRegionIterArgs();
  distribute(loop.getRegionIterArgs(), ValueRange(carried).drop_back(early.size()));
  OpBuilder inner = OpBuilder::atBlockEnd(made.getBody());
  Pieces next;
  if (!early.empty()) {
    Value counter = arith::AddIOp::create(inner, loc, made.getInductionVar(), step);
    for (auto [load, value] : llvm::zip(early, ValueRange(carried).take_back(early.size()))) {
      bool isShared = isIndex(value) && !isProducer;
      mapping.map(load.getResult(), isShared ? WarpInstructions(inner, loc).uniform(value) : value);
      next.push_back(loadAt(inner, load, counter, value, end));
    }
  }
  if (failed(lower(inner, *loop.getBody())))
    return failure();
  Pieces yielded = pieces(loop.getBody()->getTerminator()->getOperands());
  llvm::append_range(yielded, next);
  scf::YieldOp::create(inner, loc, yielded);
  distribute(loop.getResults(), ValueRange(made.getResults()).drop_back(early.size()));
  return success();
}

/// Of a place, i32; of an accumulator, its numbers, or words with two halves.
static Type pieceType(Type type) {
  auto acc = dyn_cast<AccType>(type);
  bool isWord = isa<RingType>(type) || (acc && acc.getElementType().getIntOrFloatBitWidth() < 32);
  return isWord ? IntegerType::get(type.getContext(), 32) : acc ? acc.getElementType() : type;
}

LogicalResult RoleBody::lower(OpBuilder &b, scf::IfOp op) {
  SmallVector<Type> types;
  for (Type type : op.getResultTypes())
    types.append(countPieces(type), pieceType(type));
  bool hasElse = op.elseBlock() != nullptr;
  auto made = scf::IfOp::create(b, op.getLoc(), types, mapping.lookupOrDefault(op.getCondition()),
                                /*addThenBlock=*/true, /*addElseBlock=*/hasElse);
  for (unsigned side = 0; side < (hasElse ? 2 : 1); ++side) {
    Block &before = op->getRegion(side).front();
    OpBuilder inner = OpBuilder::atBlockEnd(&made->getRegion(side).front());
    if (failed(lower(inner, before)))
      return failure();
    scf::YieldOp::create(inner, op.getLoc(), pieces(before.getTerminator()->getOperands()));
  }
  distribute(op.getResults(), made.getResults());
  return success();
}

//===- Kernels ------------------------------------------------------------===//

RingOp lacis::ringOf(Value place) {
  while (true) {
    if (auto argument = dyn_cast<BlockArgument>(place)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      OpOperand *init = loop ? loop.getTiedLoopInit(argument) : nullptr;
      if (!init)
        return {};
      place = init->get();
      continue;
    }
    unsigned number = cast<OpResult>(place).getResultNumber();
    Operation *op = place.getDefiningOp();
    if (auto ring = dyn_cast<RingOp>(op))
      return ring;
    if (isa<ReleaseOp, AdvanceOp>(op))
      place = op->getOperand(0);
    else if (auto complete = dyn_cast<CompleteOp>(op))
      place = complete.getValues()[number];
    else if (auto loop = dyn_cast<scf::ForOp>(op))
      place = loop.getInits()[number];
    else if (auto guard = dyn_cast<scf::IfOp>(op))
      place = guard.thenYield().getOperand(number);
    else
      return {};
  }
}

/// What the lowerings rely on: levels are lowered, and each place of a ring comes from its ring.
static LogicalResult verifyRoles(func::FuncOp function) {
  auto found = function.walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
    if (isa<LoopOp, LevelLoopOp>(op) || llvm::any_of(op->getOperandTypes(), llvm::IsaPred<TensorType>))
      return op->emitError("tiles: '") << op->getName() << "' stands before roles are lowered: lower the levels first";
    for (Value place : op->getOperands())
      if (isa<RingType>(place.getType()) && !ringOf(place))
        return op->emitError("tiles: a place comes from 'lacis.ring' by way of loops, branches, 'lacis.release', "
                             "'lacis.advance' and 'lacis.complete' alone");
    return WalkResult::advance();
  });
  return failure(found.wasInterrupted());
}

Value lacis::sharedMemory(OpBuilder &b, ModuleOp module, Location loc) {
  constexpr StringLiteral name = "lacis_shared";
  auto bytes = LLVM::LLVMArrayType::get(b.getI8Type(), 0);
  constexpr unsigned space = 3, alignment = 1024;
  if (!module.lookupSymbol(name)) {
    OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
    LLVM::GlobalOp::create(top, loc, bytes, /*isConstant=*/false, LLVM::Linkage::External, name, Attribute(), alignment,
                           space);
  }
  Value address = LLVM::AddressOfOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext(), space), name);
  return LLVM::PtrToIntOp::create(b, loc, b.getI32Type(), address);
}

void lacis::finishRoles(func::FuncOp function, RolesOp roles, int64_t threads, int64_t bytes, int64_t blocks) {
  auto module = function->getParentOfType<ModuleOp>();
  Builder b(module.getContext());
  function->setAttr("lacis.block", b.getDenseI64ArrayAttr({threads, 1, 1}));
  function->setAttr("lacis.blocks_per_processor", b.getI64IntegerAttr(blocks));
  changeLaunches(module, [&](NamedAttrList &launch) {
    if (cast<StringAttr>(launch.get("entry")).getValue() != function.getName())
      return;
    launch.set("block", b.getI64ArrayAttr({threads, 1, 1}));
    launch.set("shared", b.getI64IntegerAttr(bytes));
  });
  roles.erase();
  function.walk([](RingOp ring) { ring.erase(); });
}

LogicalResult lacis::lowerRolesOf(ModuleOp module, llvm::function_ref<LogicalResult(func::FuncOp, RolesOp)> lower) {
  if (hasReached(module, "target"))
    return success();
  for (auto function : module.getOps<func::FuncOp>()) {
    SmallVector<RolesOp> found;
    function.walk([&](RolesOp roles) { found.push_back(roles); });
    if (found.size() > 1)
      return found[1].emitError("tiles: a kernel has roles once");
    if (!found.empty() && (failed(verifyRoles(function)) || failed(lower(function, found.front()))))
      return failure();
  }
  return success();
}

int64_t lacis::lineBytes(TileType tile) {
  int64_t bytes = tile.getColumns() * tile.getElementType().getIntOrFloatBitWidth() / 8;
  return bytes == 32 || bytes == 64 || bytes == 128 ? bytes : 0;
}

/// The stores that read what `op` makes, by way of other maps or at once; false where anything else reads it.
static bool findStores(Operation *op, SmallVectorImpl<Operation *> &stores) {
  return llvm::all_of(op->getUsers(), [&](Operation *user) {
    if (user->getBlock() != op->getBlock())
      return false;
    if (isa<MapOp>(user))
      return op->hasOneUse() && findStores(user, stores);
    stores.push_back(user);
    return isa<MapOp>(op) && isa<StoreTileOp, StoreBlocksOp>(user);
  });
}

/// No stage of a ring is given back between `op` and the stores.
static bool keepsStages(Operation *op, ArrayRef<Operation *> stores) {
  for (size_t left = stores.size(); left != 0; op = op->getNextNode()) {
    if (isa<ReleaseOp>(op))
      return false;
    left -= llvm::is_contained(stores, op);
  }
  return true;
}

bool lacis::waitsForStore(Value acc) {
  Operation *op = acc.getDefiningOp();
  if (!isa_and_nonnull<MapOp, ReadTileOp>(op) || cast<AccType>(acc.getType()).getColumns() == 1)
    return false;
  SmallVector<Operation *> stores;
  return findStores(op, stores) && !stores.empty() && (isa<MapOp>(op) || keepsStages(op, stores));
}
