// SPDX-License-Identifier: Apache-2.0
/// \file
/// Kernel arguments that describe matrices to the copy engine.
#include "TensorMaps.h"

#include "lacis/Dialect/Lacis/IR/TilePart.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::hopper;

static constexpr StringLiteral kArtifact = "lacis.artifact";

static ArrayAttr append(ArrayAttr list, Attribute element) {
  SmallVector<Attribute> elements;
  if (list)
    llvm::append_range(elements, list);
  elements.push_back(element);
  return ArrayAttr::get(element.getContext(), elements);
}

/// Every kernel of the module takes the artifact's arguments, so each gets the new one.
static void addArgument(ModuleOp module) {
  Builder b(module.getContext());
  auto pointer = LLVM::LLVMPointerType::get(module.getContext());
  DictionaryAttr attributes = b.getDictionaryAttr({
      b.getNamedAttr("llvm.align", b.getI64IntegerAttr(64)),
      b.getNamedAttr("llvm.byval", TypeAttr::get(LLVM::LLVMArrayType::get(b.getI8Type(), 128))),
  });
  for (auto kernel : module.getOps<func::FuncOp>())
    if (kernel->hasAttr("lacis.gpu_kernel"))
      (void)kernel.insertArgument(kernel.getNumArguments(), pointer, attributes, kernel.getLoc());
}

FailureOr<Value> TensorMaps::get(Operation *user, Value pointer, ArrayAttr shape, Type element, int64_t rows,
                                 int64_t columns) {
  auto argument = dyn_cast<BlockArgument>(pointer);
  int64_t bytes = columns * element.getIntOrFloatBitWidth() / 8;
  if (!argument || argument.getOwner() != &function.getBody().front())
    return user->emitError("tiles: a box is loaded from, or stored to, an argument of the kernel");
  constexpr int64_t most = 256, alignment = 16;
  bool isVector = rows == 1;
  if (isVector && (columns > most || bytes % alignment != 0))
    return user->emitError("tiles: a part of a vector of ")
           << columns << " elements, " << bytes << " bytes; it may have 256 elements, and a multiple of 16 bytes";
  if (!isVector && (rows > most || (bytes != 32 && bytes != 64 && bytes != 128)))
    return user->emitError("tiles: a box of ")
           << rows << " rows of " << bytes << " bytes; it may have 256 rows of 32, 64 or 128 bytes";
  auto listed = module->getAttrOfType<DictionaryAttr>(kArtifact);
  if (!listed || !listed.get("args") || !shape || shape.size() < 2 || shape.size() > kMapAxes)
    return user->emitError("tiles: a box needs 'lacis.artifact', which lists the kernel's arguments, and two sizes, or "
                           "three to five of a batch");
  Builder b(module.getContext());
  SmallVector<Attribute> sizes(llvm::reverse(shape));
  SmallVector<int64_t> box{columns, rows};
  box.resize(sizes.size(), 1);
  DictionaryAttr map = b.getDictionaryAttr({
      b.getNamedAttr("pointer", b.getI64IntegerAttr(argument.getArgNumber())),
      b.getNamedAttr("shape", b.getArrayAttr(sizes)),
      b.getNamedAttr("box", b.getI64ArrayAttr(box)),
      b.getNamedAttr("swizzle", b.getI64IntegerAttr(isVector ? 0 : bytes)),
      b.getNamedAttr("dtype", b.getStringAttr(element.isBF16()  ? "bf16"
                                              : element.isF16() ? "f16"
                                              : isVector        ? "f32"
                                                                : "tf32")),
  });
  Value &value = known[map];
  if (value)
    return value;
  NamedAttrList artifact(module->getAttrOfType<DictionaryAttr>(kArtifact));
  auto maps = dyn_cast_or_null<ArrayAttr>(artifact.get("tensor_maps"));
  DictionaryAttr record = b.getDictionaryAttr({b.getNamedAttr("kind", b.getStringAttr("tensor_map")),
                                               b.getNamedAttr("index", b.getI64IntegerAttr(maps ? maps.size() : 0))});
  artifact.set("args", append(cast<ArrayAttr>(artifact.get("args")), record));
  artifact.set("tensor_maps", append(maps, map));
  module->setAttr(kArtifact, artifact.getDictionary(b.getContext()));
  addArgument(module);
  return value = function.getArguments().back();
}

void TensorMaps::exchangeChunks(Value pointer, int64_t bytes) {
  Builder b(module.getContext());
  NamedAttrList artifact(module->getAttrOfType<DictionaryAttr>(kArtifact));
  auto args = dyn_cast_or_null<ArrayAttr>(artifact.get("args"));
  auto derived = dyn_cast_or_null<ArrayAttr>(artifact.get("derived"));
  unsigned argument = cast<BlockArgument>(pointer).getArgNumber();
  auto record = args && argument < args.size() ? cast<DictionaryAttr>(args[argument]) : DictionaryAttr();
  auto number = record ? record.getAs<IntegerAttr>("derived") : IntegerAttr();
  if (!number || !derived)
    return; // values in their own order; no launcher takes a record that lacks arguments
  SmallVector<Attribute> steps(derived.getValue());
  NamedAttrList step(cast<DictionaryAttr>(steps[number.getInt()]));
  auto layout = cast<LayoutAttr>(step.get("step"));
  step.set("step", LayoutAttr::get(b.getContext(), layout.getFormat(), layout.getCapacity(), bytes));
  steps[number.getInt()] = step.getDictionary(b.getContext());
  artifact.set("derived", b.getArrayAttr(steps));
  module->setAttr(kArtifact, artifact.getDictionary(b.getContext()));
}
