// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads and writes of dense tensors: scalars, contiguous vectors, and vectors across rows.
#include "SharedArray.h"
#include "LoopLowering.h"

using namespace mlir;
using namespace lacis;

LogicalResult lacis::requireEven(Operation *op, DenseAccess &access, ValueRange indices, unsigned axis, int64_t lanes) {
  if (access.isEven(axis, knownMultiple(indices[axis]), lanes))
    return success();
  return op->emitError("vectorize: ") << lanes << " elements along axis " << axis
                                      << " are not evenly spaced in the layout of the operand";
}

Value lacis::laneMask(OpBuilder &b, Location loc, Value count, int64_t lanes) {
  Type element = count.getType();
  auto type = VectorType::get({lanes}, element);
  SmallVector<Attribute> numbers;
  for (int64_t lane = 0; lane < lanes; ++lane)
    numbers.push_back(b.getIntegerAttr(element, lane));
  Value iota = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, numbers));
  Value bound = vector::BroadcastOp::create(b, loc, type, count);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, iota, bound);
}

static Value laneAddress(OpBuilder &b, Location loc, Type element, Value base, Value stride, int64_t lane) {
  if (lane == 0)
    return base;
  Value number = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(lane));
  return elementAddress(b, loc, base, arith::MulIOp::create(b, loc, stride, number), element);
}

/// Is a lane below `count`?
static Value isActive(OpBuilder &b, Location loc, Value count, int64_t lane) {
  Value number = arith::ConstantOp::create(b, loc, b.getIntegerAttr(count.getType(), lane));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, number, count);
}

/// Calls `emit` for each lane, under `lane < count` where `count` is not null.
static void forEachLane(OpBuilder &b, Location loc, Value count, int64_t lanes,
                        llvm::function_ref<void(OpBuilder &, int64_t)> emit) {
  for (int64_t lane = 0; lane < lanes; ++lane) {
    if (!count) {
      emit(b, lane);
      continue;
    }
    auto guard = scf::IfOp::create(b, loc, isActive(b, loc, count, lane), /*withElseRegion=*/false);
    OpBuilder then = guard.getThenBodyBuilder();
    emit(then, lane);
  }
}

/// A vector whose lanes lie `stride` apart, zero from `count` on where that is not null.
static Value loadLanes(OpBuilder &b, Location loc, VectorType type, Value base, Value stride, Value count) {
  Type element = type.getElementType();
  Value result = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  for (int64_t lane = 0; lane < type.getDimSize(0); ++lane) {
    auto load = [&](OpBuilder &b) {
      return LLVM::LoadOp::create(b, loc, element, laneAddress(b, loc, element, base, stride, lane)).getResult();
    };
    Value loaded;
    if (count) {
      auto guard = scf::IfOp::create(b, loc, element, isActive(b, loc, count, lane), /*withElseRegion=*/true);
      OpBuilder then = guard.getThenBodyBuilder(), otherwise = guard.getElseBodyBuilder();
      scf::YieldOp::create(then, loc, load(then));
      scf::YieldOp::create(otherwise, loc,
                           arith::ConstantOp::create(otherwise, loc, b.getZeroAttr(element)).getResult());
      loaded = guard.getResult(0);
    } else {
      loaded = load(b);
    }
    result = vector::InsertOp::create(b, loc, loaded, result, lane);
  }
  return result;
}

/// A cache line, and any vector.
static constexpr unsigned kTileAlignment = 64;

/// A workspace inside of a nest is a tile in shared memory, or one that a thread has to itself; others are arguments.
void LoopLowering::lowerWorkspace(OpBuilder &b, WorkspaceOp op) {
  std::optional<WorkspacePlace> place = op.getPlace();
  if (!place)
    return;
  int64_t bytes = std::max(1u, cast<RankedTensorType>(op.getType()).getElementTypeBitWidth() / 8);
  for (Value size : op.getSizes())
    bytes *= *getConstantIntValue(size);
  if (place == WorkspacePlace::Private) {
    Type pointer = LLVM::LLVMPointerType::get(b.getContext());
    Value count = arith::ConstantOp::create(b, op.getLoc(), b.getI64IntegerAttr(bytes));
    auto tile = LLVM::AllocaOp::create(b, op.getLoc(), pointer, b.getI8Type(), count, kTileAlignment);
    mapping.map(op.getResult(), tile.getResult());
    return;
  }
  auto kernel = b.getInsertionBlock()->getParentOp()->getParentOfType<func::FuncOp>();
  mapping.map(op.getResult(), sharedArray(b, kernel, bytes));
}

/// Where a map reads the row of an operand along its own, the address at even columns, or null: threads that have two
/// neighbours load both at once.
static unsigned alignmentOfPairs(ReadOp op, DenseAccess &access) {
  auto map = dyn_cast<MapOp>(op->getParentOp());
  if (!map || map.getPlaces().empty() || op.getIndices().empty() || op.getIndices().back() != map.getBody().getArguments().back())
    return 0;
  return access.alignment(op.getIndices().size() - 1, knownMultiple(map.getPlaces().back()), /*lanes=*/2);
}

LogicalResult LoopLowering::lowerRead(OpBuilder &b, ReadOp op) {
  Location loc = op.getLoc();
  DenseAccess access(b, loc, arguments, workspaces, op.getTensor(), mapping.lookupOrNull(op.getTensor()));
  Value base = access.address(mapped(op.getIndices()));
  auto vector = dyn_cast<VectorType>(op.getType());
  if (!vector) {
    mapping.map(op.getResult(), LLVM::LoadOp::create(b, loc, op.getType(), base, alignmentOfPairs(op, access)));
    return success();
  }
  unsigned axis = *op.getAlong();
  int64_t lanes = vector.getDimSize(0);
  if (failed(requireEven(op, access, op.getIndices(), axis, lanes)))
    return failure();
  Value count = op.getCount() ? mapping.lookup(op.getCount()) : Value();
  Value stride = access.strideOf(axis);
  unsigned alignment = access.alignment(axis, knownMultiple(op.getIndices()[axis]), lanes);
  if (!stride && !count) {
    mapping.map(op.getResult(), LLVM::LoadOp::create(b, loc, vector, base, alignment));
    return success();
  }
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vector));
  if (!stride) {
    Value mask = laneMask(b, loc, count, lanes);
    unsigned bytes = std::max(1u, vector.getElementTypeBitWidth() / 8);
    mapping.map(op.getResult(), LLVM::MaskedLoadOp::create(b, loc, vector, base, mask, zero, bytes));
    return success();
  }
  mapping.map(op.getResult(), loadLanes(b, loc, vector, base, stride, count));
  return success();
}

static LLVM::AtomicBinOp instructionOf(AtomicKind atomic) {
  switch (atomic) {
  case AtomicKind::AddF:
    return LLVM::AtomicBinOp::fadd;
  case AtomicKind::MaximumF:
    return LLVM::AtomicBinOp::fmaximum;
  case AtomicKind::Or:
    return LLVM::AtomicBinOp::_or;
  }
}

/// Stores a value; where `atomic` is an instruction, combines it with what is there.
static void store(OpBuilder &b, Location loc, Value value, Value address, std::optional<AtomicKind> atomic) {
  if (!atomic) {
    LLVM::StoreOp::create(b, loc, value, address);
    return;
  }
  LLVM::AtomicRMWOp::create(b, loc, instructionOf(*atomic), address, value, LLVM::AtomicOrdering::monotonic);
}

LogicalResult LoopLowering::lowerWrite(OpBuilder &b, WriteOp op) {
  Location loc = op.getLoc();
  std::optional<AtomicKind> atomic = op.getAtomic();
  DenseAccess access(b, loc, arguments, workspaces, op.getTensor(), mapping.lookupOrNull(op.getTensor()));
  Value base = access.address(mapped(op.getIndices()));
  Value value = mapping.lookup(op.getValue());
  auto vector = dyn_cast<VectorType>(value.getType());
  if (!vector) {
    store(b, loc, value, base, atomic);
    return success();
  }
  unsigned axis = *op.getAlong();
  int64_t lanes = vector.getDimSize(0);
  if (failed(requireEven(op, access, op.getIndices(), axis, lanes)))
    return failure();
  Value count = op.getCount() ? mapping.lookup(op.getCount()) : Value();
  Value stride = access.strideOf(axis);
  if (!stride && !count && !atomic) {
    unsigned alignment = access.alignment(axis, knownMultiple(op.getIndices()[axis]), lanes);
    LLVM::StoreOp::create(b, loc, value, base, alignment);
    return success();
  }
  if (!stride && !atomic) {
    unsigned bytes = std::max(1u, vector.getElementTypeBitWidth() / 8);
    LLVM::MaskedStoreOp::create(b, loc, value, base, laneMask(b, loc, count, lanes), bytes);
    return success();
  }
  if (!stride)
    stride = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(1));
  auto storeLane = [&](OpBuilder &b, int64_t lane) {
    Value element = vector::ExtractOp::create(b, loc, value, lane);
    store(b, loc, element, laneAddress(b, loc, vector.getElementType(), base, stride, lane), atomic);
  };
  if (!count) {
    forEachLane(b, loc, {}, lanes, storeLane);
    return success();
  }
  // Whole vectors store without a test for each lane.
  Value all = arith::ConstantOp::create(b, loc, b.getIntegerAttr(count.getType(), lanes));
  Value whole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, count, all);
  auto guard = scf::IfOp::create(b, loc, whole, /*withElseRegion=*/true);
  OpBuilder then = guard.getThenBodyBuilder(), otherwise = guard.getElseBodyBuilder();
  forEachLane(then, loc, {}, lanes, storeLane);
  forEachLane(otherwise, loc, count, lanes, storeLane);
  return success();
}
