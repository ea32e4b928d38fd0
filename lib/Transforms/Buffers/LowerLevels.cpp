// SPDX-License-Identifier: Apache-2.0
/// \file
/// Explodes encoded tensors into buffers: level loops become scf loops, positions become loads.
#include "LoopLowering.h"
#include "../Stages.h"
#include "TensorTable.h"
#include "TileCoordinates.h"
#include "VerifyAccesses.h"
#include "lacis/Dialect/Lacis/IR/NestFacts.h"

namespace lacis {
#define GEN_PASS_DEF_LACISLOWERLEVELS
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

namespace {

/// The width of positions and coordinates in the kernel, in bits. It is 64 if an operand has an index array of 64 bits,
/// or if a loop runs over pairs of coordinates: the product of two sizes can exceed 2^31. Else it is 32. Roles count tiles
/// of a batch of matrices, and coordinates of the copy engine have 32 bits.
unsigned indexBits(func::FuncOp function) {
  unsigned bits = 32;
  auto visit = [&](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    auto format = tensor ? dyn_cast_or_null<FormatAttr>(tensor.getEncoding()) : nullptr;
    if (!format)
      return;
    for (LevelAttr level : format.getLevels())
      for (auto &buffers : {level.getExtent().getBuffers(), level.getCoordinate().getBuffers()})
        for (const BufferSpec &spec : buffers)
          if (spec.elementType.isInteger(64))
            bits = 64;
  };
  for (Type type : function.getArgumentTypes())
    visit(type);
  function.walk([&](Operation *op) { llvm::for_each(op->getResultTypes(), visit); });
  function.walk([&](LoopOp loop) {
    Value size = loop.getUpper();
    while (auto strips = size.getDefiningOp<arith::CeilDivUIOp>())
      size = strips.getLhs();
    bool hasRoles = loop->getParentOfType<RolesOp>() ||
                    loop->walk([](RolesOp) { return WalkResult::interrupt(); }).wasInterrupted();
    if (size.getDefiningOp<arith::MulIOp>() && !hasRoles)
      bits = 64;
  });
  return bits;
}

/// The sizes of the values of a sampled output: the copies that share a pattern, the slots of that, and the levels of a
/// stored block.
ArrayAttr sampledShape(func::FuncOp function, KernelArguments &arguments, unsigned pattern) {
  Builder b(function.getContext());
  auto format = cast<FormatAttr>(cast<RankedTensorType>(function.getArgumentTypes().back()).getEncoding());
  TensorSource source = sourceOf(function.getArgument(pattern), {});
  SmallVector<Attribute> shape;
  for (LevelAttr level : format.getLevels().take_front(format.getNumBatchLevels())) {
    SizeAttr copies = arguments.constantSize(1);
    for (const Digit &digit : level.getDigits())
      copies = copies.times(arguments.sizeOfDim(source, digit.axis));
    shape.push_back(copies);
  }
  shape.push_back(arguments.slots(source, format));
  for (int64_t size : blockOf(format))
    shape.push_back(arguments.constantSize(size));
  return b.getArrayAttr(shape);
}

/// The sizes of the output: each letter's size, from the first operand that has the letter.
ArrayAttr outputShape(func::FuncOp function, KernelArguments &arguments) {
  Builder b(function.getContext());
  unsigned last = function.getNumArguments() - 1;
  if (auto pattern = function.getArgAttrOfType<IntegerAttr>(last, "lacis.sample"))
    return sampledShape(function, arguments, pattern.getInt());
  unsigned output = function.getNumArguments() - 1;
  SmallVector<Attribute> shape;
  for (Attribute letter : axesOf(function, output))
    for (unsigned argument = 0; argument < output; ++argument) {
      ArrayRef<Attribute> axes = axesOf(function, argument); // none where nobody reads it
      const Attribute *found = llvm::find(axes, letter);
      if (found == axes.end())
        continue;
      shape.push_back(arguments.sizeOfDim(sourceOf(function.getArgument(argument), {}), found - axes.begin()));
      break;
    }
  return b.getArrayAttr(shape);
}

/// The argument with a format, or -1.
int64_t packedArgument(func::FuncOp function) {
  for (auto [number, type] : llvm::enumerate(function.getArgumentTypes()))
    if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && tensor.getEncoding() && number + 1 < function.getNumArguments())
      return number;
  return -1;
}

/// Where all that use a workspace is for some sizes of a letter, it is of no size for the others.
SizeAttr conditionOf(WorkspaceOp workspace, KernelArguments &arguments, ArrayRef<WorkspaceOp> workspaces) {
  auto function = workspace->getParentOfType<func::FuncOp>();
  std::optional<Case> found;
  for (Operation *user : workspace->getUsers()) {
    auto around = user->getParentOfType<LoopOp>();
    std::optional<Case> own = around ? caseOf(outermostLoop(around)) : std::nullopt;
    if (!own || (found && found->above != own->above))
      return {};
    found = own;
  }
  if (!found)
    return {};
  return arguments.condition(sourceOf(function.getArgument(found->argument), workspaces), found->axis, found->above,
                             found->upto);
}

/// Roles store every block that has a slot, padding too, so nothing is left where each slot holds a block.
bool storesEverySlot(func::FuncOp function, FormatAttr format) {
  bool roles = function.walk([](RolesOp) { return WalkResult::interrupt(); }).wasInterrupted();
  ArrayRef<LevelAttr> prefix = format.getLevels().drop_back(format.getNumTileLevels());
  return roles && !prefix.empty() && prefix.back().getCoordinate().isStored() &&
         !prefix.back().getCoordinate().isPadded() && !prefix.back().getExtent().hasCapacity();
}

/// What the runtime must know: arguments, output, workspaces. Launches are added when nests are mapped.
DictionaryAttr makeArtifact(func::FuncOp before, KernelArguments &arguments, ArrayRef<WorkspaceOp> workspaces,
                            unsigned bits) {
  Builder b(before.getContext());
  BlockArgument output = before.getArguments().back();
  auto type = cast<RankedTensorType>(output.getType());
  SmallVector<Attribute> bytes;
  for (WorkspaceOp workspace : workspaces) {
    auto laidOut = cast<RankedTensorType>(workspace.getResult().getType());
    SizeAttr size = arguments.constantSize(std::max(1u, laidOut.getElementTypeBitWidth() / 8));
    if (SizeAttr condition = conditionOf(workspace, arguments, workspaces))
      size = size.times(condition);
    for (LevelAttr level : cast<FormatAttr>(laidOut.getEncoding()).getLevels())
      for (Digit digit : level.getDigits())
        size = size.times(digit.mod ? arguments.constantSize(digit.mod)
                                    : arguments.sizeOf(workspace.getSizes()[digit.axis], workspaces).ceilDiv(digit.div));
    bytes.push_back(b.getDictionaryAttr(b.getNamedAttr("bytes", size)));
  }
  ArrayAttr shape = outputShape(before, arguments);
  // What no entry sets stays zero.
  auto format = dyn_cast_or_null<FormatAttr>(type.getEncoding());
  bool startsAsZeros = (type.getEncoding() && !(format && storesEverySlot(before, format))) ||
                       before.getArgAttr(output.getArgNumber(), "lacis.scatter") ||
                       before->hasAttr("lacis.room"); // no loop comes to slots behind the last position
  if (auto zeros = before.getArgAttrOfType<BoolAttr>(output.getArgNumber(), "lacis.listed"))
    startsAsZeros |= zeros.getValue(); // what no level lists
  NamedAttrList record;
  record.set("args", arguments.getRecord());
  record.set("output", b.getDictionaryAttr({
                           b.getNamedAttr("dtype", b.getStringAttr(dtypeName(type.getElementType()))),
                           b.getNamedAttr("shape", shape),
                           b.getNamedAttr("zero", b.getBoolAttr(startsAsZeros)),
                       }));
  record.set("packed", b.getI64IntegerAttr(packedArgument(before)));
  record.set("workspace", b.getArrayAttr(bytes));
  record.set("index_bits", b.getI64IntegerAttr(bits));
  TensorTable(before, arguments).addTo(record);
  if (!arguments.getDerived().empty())
    record.set("derived", arguments.getDerived());
  return record.getDictionary(b.getContext());
}

LogicalResult lowerKernel(func::FuncOp function, bool outline) {
  auto types = function.getArgumentTypes();
  if (types.empty() || !llvm::all_of(types, llvm::IsaPred<RankedTensorType>))
    return function.emitError("a kernel takes tensors, the last of them its output");
  if (failed(verifyAccesses(function)))
    return failure();
  OpBuilder b(function);
  unsigned bits = indexBits(function);
  auto kernel = func::FuncOp::create(b, function.getLoc(), function.getName(), b.getFunctionType({}, {}));
  kernel->setAttr("lacis.kernel", b.getUnitAttr());
  for (StringRef kept : {"lacis.steps", "lacis.remarks", "lacis.checked"})
    if (Attribute attribute = function->getAttr(kept))
      kernel->setAttr(kept, attribute);
  kernel.addEntryBlock();
  SmallVector<WorkspaceOp> workspaces(function.getBody().getOps<WorkspaceOp>());
  KernelArguments arguments(kernel, function, bits);
  OpBuilder body = OpBuilder::atBlockEnd(&kernel.getBody().front());
  // Every access of a checked kernel has a guard that knows the kernel's arrays.
  LoopLowering lowering(arguments, workspaces, /*outlines=*/outline && !function->hasAttr("lacis.checked"));
  if (failed(lowering.lower(body, function.getBody().front())))
    return failure();
  func::ReturnOp::create(body, function.getLoc());
  if (bits > 32)
    narrowTileCoordinates(kernel);
  DictionaryAttr artifact = makeArtifact(function, arguments, workspaces, bits);
  function->getParentOfType<ModuleOp>()->setAttr("lacis.artifact", artifact);
  function.erase();
  return success();
}

struct LowerLevels : lacis::impl::LacisLowerLevelsBase<LowerLevels> {
  using LacisLowerLevelsBase::LacisLowerLevelsBase;

  void runOnOperation() override {
    if (hasReached(getOperation(), "buffers"))
      return;
    auto functions = llvm::to_vector(getOperation().getOps<func::FuncOp>());
    if (functions.size() != 1) {
      getOperation().emitError("a module holds one kernel, not ") << functions.size();
      return signalPassFailure();
    }
    if (failed(lowerKernel(functions.front(), outline)))
      return signalPassFailure();
    for (Operation &op : llvm::make_early_inc_range(*getOperation().getBody()))
      if (isa<KindOp, BindingOp>(op))
        op.erase(); // its code is where it is needed
  }
};

} // namespace
