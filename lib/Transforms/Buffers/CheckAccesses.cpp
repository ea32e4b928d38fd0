// SPDX-License-Identifier: Apache-2.0
/// \file
/// Guards every access of a kernel marked `lacis.checked` by the size of its array, and records the first outside.
#include "AccessChecks.h"

#include "mlir/Analysis/SliceAnalysis.h"

namespace lacis {
#define GEN_PASS_DEF_LACISCHECKACCESSES
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

static Value addressOf(Operation *op) {
  if (auto load = dyn_cast<LLVM::LoadOp>(op))
    return load.getAddr();
  if (auto store = dyn_cast<LLVM::StoreOp>(op))
    return store.getAddr();
  if (auto load = dyn_cast<LLVM::MaskedLoadOp>(op))
    return load.getData();
  if (auto store = dyn_cast<LLVM::MaskedStoreOp>(op))
    return store.getData();
  if (auto atomic = dyn_cast<LLVM::AtomicRMWOp>(op))
    return atomic.getPtr();
  return {};
}

/// What is loaded or stored.
static Type typeOf(Operation *access) {
  return access->getNumResults() ? access->getResult(0).getType() : access->getOperand(0).getType();
}

static Value maskOf(Operation *access) {
  if (auto load = dyn_cast<LLVM::MaskedLoadOp>(access))
    return load.getMask();
  auto store = dyn_cast<LLVM::MaskedStoreOp>(access);
  return store ? store.getMask() : Value();
}

/// What an address points into.
static Value arrayOf(Value address) {
  while (auto step = address.getDefiningOp<LLVM::GEPOp>())
    address = step.getBase();
  return address;
}

StringRef AccessChecks::kindOf(Value array) const {
  auto argument = dyn_cast<BlockArgument>(array);
  if (!argument || argument.getOwner()->getParentOp() != kernel)
    return "";
  return cast<DictionaryAttr>(records[argument.getArgNumber()]).getAs<StringAttr>("kind").getValue();
}

/// What a workspace holds, in words: the nest that fills it reads one operand and nothing else, or it has results.
std::string AccessChecks::nameOf(BlockArgument workspace) {
  SetVector<Value> sources;
  for (Operation &nest : kernel.getBody().front()) {
    SetVector<Value> read;
    bool fills = false;
    nest.walk([&](Operation *op) {
      if (isa<LLVM::LoadOp, LLVM::MaskedLoadOp>(op))
        read.insert(arrayOf(addressOf(op)));
      else if (addressOf(op))
        fills |= arrayOf(addressOf(op)) == workspace;
    });
    if (fills)
      sources.insert_range(read);
  }
  if (sources.size() != 1 || kindOf(sources[0]) != "operand")
    return "partial results";
  auto record = cast<DictionaryAttr>(records[cast<BlockArgument>(sources[0]).getArgNumber()]);
  return "copy of operand " + std::to_string(record.getAs<IntegerAttr>("operand").getInt());
}

Value AccessChecks::addArgument(Type type, StringRef kind, ArrayRef<NamedAttribute> fields) {
  Builder b(kernel.getContext());
  unsigned number = kernel.getNumArguments();
  NamedAttrList attributes;
  if (isa<LLVM::LLVMPointerType>(type))
    attributes.set("llvm.noalias", b.getUnitAttr());
  (void)kernel.insertArgument(number, type, attributes.getDictionary(kernel.getContext()), kernel.getLoc());
  NamedAttrList record(fields);
  record.set("kind", b.getStringAttr(kind));
  records.push_back(record.getDictionary(kernel.getContext()));
  return kernel.getArgument(number);
}

Value AccessChecks::bytesOf(BlockArgument array, Type element) {
  if (Value known = bytes.lookup(array))
    return known;
  auto number = [&](StringRef name, int64_t value) { return entry.getNamedAttr(name, entry.getI64IntegerAttr(value)); };
  SmallVector<NamedAttribute> fields{number("index", array.getArgNumber())};
  if (kindOf(array) == "workspace") // no tensor tells these
    llvm::append_values(fields, number("dim", bytesOfElement(element)),
                        entry.getNamedAttr("name", entry.getStringAttr(names.lookup(array))));
  return bytes[array] = addArgument(entry.getI64Type(), "bytes", fields);
}

Value AccessChecks::extentOf(OpBuilder &b, Location loc, BlockArgument array, Type element) {
  return arith::DivUIOp::create(b, loc, bytesOf(array, element), constant(b, loc, bytesOfElement(element)));
}

FailureOr<Place> AccessChecks::placeOf(OpBuilder &b, Operation *access, Value address, Type element) {
  Location loc = access->getLoc();
  Value total = constant(b, loc, 0);
  while (auto step = address.getDefiningOp<LLVM::GEPOp>()) {
    if (step.getIndices().size() != 1 || bytesOfElement(step.getElemType()) != bytesOfElement(element))
      return access->emitError("check: an access to elements of another size than its array has");
    auto number = step.getIndices()[0];
    auto value = dyn_cast<Value>(number);
    Value by = value ? value : constant(b, loc, cast<IntegerAttr>(number).getInt());
    if (by.getType() != b.getI64Type())
      by = arith::ExtSIOp::create(b, loc, b.getI64Type(), by);
    total = arith::AddIOp::create(b, loc, total, by);
    address = step.getBase();
  }
  auto array = dyn_cast<BlockArgument>(address);
  if (!array || array.getOwner()->getParentOp() != kernel)
    return access->emitError("check: an access to what is no argument of the kernel");
  return Place{array, total};
}

/// fault = min(fault, array : element); the first word in this order stays, whatever the timing.
void AccessChecks::record(OpBuilder &b, Location loc, const Place &place, Value extent) {
  Value negative = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, place.element, constant(b, loc, 0));
  Value outside = arith::MaxSIOp::create(b, loc, place.element, extent); // a run may begin inside
  Value element = arith::SelectOp::create(b, loc, negative, place.element, outside);
  Value low = arith::AndIOp::create(b, loc, element, constant(b, loc, (int64_t(1) << kIndexBits) - 1));
  Value word = arith::OrIOp::create(b, loc, low,
                                    constant(b, loc, int64_t(place.array.getArgNumber()) << kIndexBits));
  LLVM::AtomicRMWOp::create(b, loc, LLVM::AtomicBinOp::umin, fault, word, LLVM::AtomicOrdering::monotonic);
}

/// access   -->   if it lies inside: access, else: record it; what is not loaded is zero
LogicalResult AccessChecks::guard(Operation *access) {
  Location loc = access->getLoc();
  OpBuilder b(access);
  Type type = typeOf(access);
  FailureOr<Place> place = placeOf(b, access, addressOf(access), type);
  if (failed(place))
    return failure();
  auto vector = dyn_cast<VectorType>(type);
  Value count = constant(b, loc, vector ? vector.getNumElements() : 1), wanted;
  if (Value mask = maskOf(access)) { // the first lanes of it
    Value lanes = arith::ExtUIOp::create(b, loc, VectorType::get(vector.getShape(), b.getI64Type()), mask);
    count = vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD, lanes);
    wanted = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, count, constant(b, loc, 0));
  }
  Value extent = extentOf(b, loc, place->array, type);
  Value last = arith::SubIOp::create(b, loc, extent, count);
  Value above = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, place->element, constant(b, loc, 0));
  Value below = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, place->element, last);
  Value inside = arith::AndIOp::create(b, loc, above, below);
  bool isRead = !access->use_empty();
  TypeRange types = isRead ? TypeRange(access->getResultTypes()) : TypeRange();
  auto choice = scf::IfOp::create(b, loc, types, inside, /*withElseRegion=*/true);
  if (isRead) {
    access->replaceAllUsesWith(choice); // an if that yields has no terminator yet
    access->moveBefore(choice.thenBlock(), choice.thenBlock()->end());
    OpBuilder then = OpBuilder::atBlockEnd(choice.thenBlock());
    scf::YieldOp::create(then, loc, access->getResults());
    OpBuilder otherwise = OpBuilder::atBlockEnd(choice.elseBlock());
    Value zero = arith::ConstantOp::create(otherwise, loc, otherwise.getZeroAttr(type));
    scf::YieldOp::create(otherwise, loc, zero);
  } else {
    access->moveBefore(choice.thenBlock()->getTerminator());
  }
  OpBuilder otherwise = OpBuilder::atBlockBegin(choice.elseBlock());
  if (wanted)
    otherwise = scf::IfOp::create(otherwise, loc, wanted, /*withElseRegion=*/false).getThenBodyBuilder();
  record(otherwise, loc, *place, extent);
  return success();
}

/// Does a value come from memory?
static bool isLoaded(Value value) {
  SetVector<Operation *> from;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitBlockArguments = true;
  (void)getBackwardSlice(value, &from, options);
  return llvm::any_of(from, [](Operation *op) { return addressOf(op) || op->getNumRegions(); });
}

/// A loop whose bounds a damaged array tells ends after as many rounds as the largest array has bytes.
void AccessChecks::limit(scf::ForOp loop) {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  Type type = loop.getUpperBound().getType();
  auto wide = [&](Value value) {
    return type == b.getI64Type() ? value : arith::ExtSIOp::create(b, loc, b.getI64Type(), value).getResult();
  };
  Value end = arith::AddIOp::create(b, loc, wide(loop.getLowerBound()), longest);
  end = arith::MinSIOp::create(b, loc, wide(loop.getUpperBound()), end);
  loop.setUpperBound(type == b.getI64Type() ? end : arith::TruncIOp::create(b, loc, type, end).getResult());
}

LogicalResult AccessChecks::run() {
  SmallVector<Operation *> accesses, tiles;
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](Operation *op) {
    Value address = addressOf(op); // tiles are as large as what is read of them
    if (address && !isa_and_nonnull<LLVM::AddressOfOp, LLVM::AllocaOp>(arrayOf(address).getDefiningOp()))
      accesses.push_back(op);
    if (isTileAccess(op))
      tiles.push_back(op);
    auto loop = dyn_cast<scf::ForOp>(op);
    if (loop && (isLoaded(loop.getLowerBound()) || isLoaded(loop.getUpperBound())))
      loops.push_back(loop);
  });
  for (BlockArgument array : kernel.getArguments())
    if (kindOf(array) == "workspace")
      names[array] = nameOf(array);
  fault = addArgument(LLVM::LLVMPointerType::get(kernel.getContext()), "fault");
  for (Operation *access : accesses)
    if (failed(guard(access)))
      return failure();
  for (Operation *tile : tiles)
    guardTileAccess(tile);
  longest = constant(entry, kernel.getLoc(), 0);
  for (auto &[array, size] : bytes)
    longest = arith::MaxSIOp::create(entry, kernel.getLoc(), longest, size);
  for (scf::ForOp loop : loops)
    limit(loop);
  return success();
}

namespace {

struct CheckAccesses : lacis::impl::LacisCheckAccessesBase<CheckAccesses> {
  void runOnOperation() override {
    auto record = getOperation()->getAttrOfType<DictionaryAttr>("lacis.artifact");
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      if (!record || !kernel->hasAttr("lacis.checked"))
        continue;
      auto arguments = record.getAs<ArrayAttr>("args");
      if (!arguments || arguments.size() != kernel.getNumArguments()) {
        kernel.emitError("checked: 'lacis.artifact' lists ") << (arguments ? arguments.size() : 0) << " arguments; the kernel has "
                                                             << kernel.getNumArguments();
        return signalPassFailure();
      }
      AccessChecks checks(kernel, arguments);
      if (failed(checks.run()))
        return signalPassFailure();
      kernel->removeAttr("lacis.checked"); // it is now
      NamedAttrList changed(record);
      changed.set("args", ArrayAttr::get(&getContext(), checks.getRecords()));
      getOperation()->setAttr("lacis.artifact", changed.getDictionary(&getContext()));
    }
  }
};

} // namespace
