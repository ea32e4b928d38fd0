// SPDX-License-Identifier: Apache-2.0
/// \file
/// What must hold in an artifact's record before a launcher may trust it.
#include "lacis/Target/Artifact.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace lacis;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

static constexpr int64_t maxRank = 64;
static constexpr int64_t maxThreads = 1024;
static constexpr int64_t maxShared = 1 << 20;

static Error malformed(const Twine &what) { return llvm::createStringError("malformed artifact: " + what); }

static bool isSymbol(StringRef name) {
  return !name.empty() && !llvm::isDigit(name[0]) &&
         llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.'; });
}

static bool isTarget(StringRef name) {
  auto word = [](StringRef text) {
    return !text.empty() && llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_' || c == '-'; });
  };
  auto [family, arch] = name.split(':');
  return word(family) && (name.contains(':') ? word(arch) : true);
}

static Error verifyArgument(const Artifact &artifact, const Artifact::Argument &arg) {
  static constexpr StringRef kinds[] = {"storage", "storage_dim", "derived",   "operand",   "dim",
                                        "stride",  "output",      "workspace", "tensor_map", "bytes", "fault"};
  if (!llvm::is_contained(kinds, arg.kind))
    return malformed("argument of kind '" + arg.kind + "'");
  bool mayBeOutput = arg.kind == "dim" || arg.kind == "stride";
  if (arg.operand < (mayBeOutput ? -1 : 0) || arg.operand >= maxRank)
    return malformed(arg.kind + " of operand " + Twine(arg.operand));
  if (arg.dim < 0 || arg.dim >= maxRank)
    return malformed(arg.kind + " of dimension " + Twine(arg.dim));
  if (arg.strided && arg.kind != "operand")
    return malformed(arg.kind + " that is strided");
  if (mayBeOutput && arg.operand == -1 && arg.dim >= int64_t(artifact.output.shape.size()))
    return malformed(arg.kind + " " + Twine(arg.dim) + " of an output of rank " + Twine(artifact.output.shape.size()));
  if (arg.kind == "workspace" && (arg.index < 0 || arg.index >= int64_t(artifact.workspace.size())))
    return malformed("workspace " + Twine(arg.index) + " of " + Twine(artifact.workspace.size()));
  if (arg.kind == "tensor_map" && (arg.index < 0 || arg.index >= int64_t(artifact.tensorMaps.size())))
    return malformed("tensor map " + Twine(arg.index) + " of " + Twine(artifact.tensorMaps.size()));
  if (arg.kind == "bytes" && (arg.index < 0 || arg.index >= int64_t(artifact.args.size())))
    return malformed("bytes of argument " + Twine(arg.index) + " of " + Twine(artifact.args.size()));
  if (arg.derived < -1 || arg.derived >= int64_t(artifact.derived.size()))
    return malformed(arg.kind + " of step " + Twine(arg.derived) + " of " + Twine(artifact.derived.size()));
  return Error::success();
}

/// A step is made from the pattern, or from one before it.
static Error verifyDerived(const Artifact &artifact, size_t number) {
  const Artifact::Derived &step = artifact.derived[number];
  if (!isSymbol(step.function))
    return malformed("a derived array of function '" + step.function + "'");
  if (step.source < -1 || step.source >= int64_t(number))
    return malformed("step " + Twine(number) + " is made from step " + Twine(step.source));
  if (step.operand < 0 || step.operand >= maxRank)
    return malformed("step " + Twine(number) + " is made from operand " + Twine(step.operand));
  return Error::success();
}

/// `verifyNumber` says whether a number may stand for one.
static Error verifySize(const Size &size, llvm::function_ref<Error(int64_t)> verifyNumber) {
  if (size.kind == Size::Kind::Constant && size.number < 0)
    return malformed("a size of " + Twine(size.number));
  if (size.kind == Size::Kind::CeilDiv && size.number <= 0)
    return malformed("a size divided by " + Twine(size.number));
  if (size.kind == Size::Kind::Within && (size.number < -1 || size.upto < -1))
    return malformed("a condition between " + Twine(size.number) + " and " + Twine(size.upto));
  if (size.kind == Size::Kind::Argument)
    return verifyNumber(size.number);
  for (const Size &part : size.of)
    if (Error error = verifySize(part, verifyNumber))
      return error;
  return Error::success();
}

/// A size of the kernel's arguments.
static Error verifySize(const Artifact &artifact, const Size &size) {
  return verifySize(size, [&](int64_t number) {
    if (number < 0 || number >= int64_t(artifact.args.size()))
      return malformed("a size of argument " + Twine(number) + " of " + Twine(artifact.args.size()));
    StringRef kind = artifact.args[number].kind;
    bool isDimension = kind == "dim" || kind == "storage_dim";
    return isDimension ? Error::success()
                       : malformed("a size of argument " + Twine(number) + ", which is no dimension");
  });
}

/// A size of numbers of shared sizes.
static Error verifyDimension(const Artifact &artifact, const Size &size) {
  return verifySize(size, [&](int64_t number) {
    bool exists = number >= 0 && number < int64_t(artifact.sizes.size());
    return exists ? Error::success()
                  : malformed("a dimension of size " + Twine(number) + " of " + Twine(artifact.sizes.size()));
  });
}

static Error verifySharedSize(const Artifact &artifact, const Artifact::SharedSize &size) {
  if (size.most < -1 || size.most >= int64_t(artifact.sizes.size()))
    return malformed("size '" + size.name + "' below number " + Twine(size.most) + " of " +
                     Twine(artifact.sizes.size()));
  if (size.multiple < 1 || size.value < -1)
    return malformed("size '" + size.name + "' of " + Twine(size.value) + ", a multiple of " + Twine(size.multiple));
  return Error::success();
}

static Error verifyTensor(const Artifact &artifact, const Artifact::Tensor &tensor) {
  if (tensor.operand < -1 || tensor.operand >= maxRank || tensor.dims.size() > size_t(maxRank))
    return malformed("a tensor of operand " + Twine(tensor.operand) + " and rank " + Twine(tensor.dims.size()));
  if (tensor.derived < -1 || tensor.derived >= int64_t(artifact.derived.size()))
    return malformed("an array '" + tensor.name + "' of step " + Twine(tensor.derived) + " of " +
                     Twine(artifact.derived.size()));
  if (tensor.operand == -1 && !tensor.name.empty())
    return malformed("an array '" + tensor.name + "' of the output");
  if (tensor.operand == -1 && tensor.shaped && tensor.dims.size() != artifact.output.shape.size())
    return malformed("an output of " + Twine(tensor.dims.size()) + " and of " + Twine(artifact.output.shape.size()) +
                     " dimensions");
  if (tensor.copies < 0 || tensor.copies > int64_t(tensor.dims.size()))
    return malformed(Twine(tensor.copies) + " dimensions of copies in a tensor of rank " + Twine(tensor.dims.size()));
  for (const Size &dim : tensor.dims)
    if (Error error = verifyDimension(artifact, dim))
      return error;
  return Error::success();
}

static Error verifyTensorMap(const Artifact &artifact, const Artifact::TensorMap &map) {
  if (map.pointer < 0 || map.pointer >= int64_t(artifact.args.size()))
    return malformed("a tensor map of argument " + Twine(map.pointer) + " of " + Twine(artifact.args.size()));
  StringRef kind = artifact.args[map.pointer].kind;
  if (kind != "storage" && kind != "derived" && kind != "operand" && kind != "output" && kind != "workspace")
    return malformed("a tensor map of argument " + Twine(map.pointer) + ", which is no pointer");
  constexpr size_t most = 5; // axes that the copy engine has
  if (map.shape.size() < 2 || map.shape.size() > most || map.box.size() != map.shape.size())
    return malformed("a tensor map of rank " + Twine(map.shape.size()) + " with a box of rank " +
                     Twine(map.box.size()));
  const Artifact::Argument &pointer = artifact.args[map.pointer];
  for (const Artifact::Tensor &tensor : artifact.tensors)
    if (pointer.strided && tensor.operand == pointer.operand && tensor.name.empty() && tensor.dims.size() != map.shape.size())
      return malformed("a tensor map of rank " + Twine(map.shape.size()) + " of an operand that is strided, of rank " +
                       Twine(tensor.dims.size()));
  for (int64_t extent : map.box)
    if (extent < 1 || extent > 256)
      return malformed("a tensor map with a box of " + Twine(extent));
  if (map.swizzle != 0 && map.swizzle != 32 && map.swizzle != 64 && map.swizzle != 128)
    return malformed("a tensor map with lines of " + Twine(map.swizzle) + " bytes");
  for (const Size &size : map.shape)
    if (Error error = verifySize(artifact, size))
      return error;
  return Error::success();
}

static Error verifyLaunch(const Artifact &artifact, const Artifact::Launch &launch) {
  if (!isSymbol(launch.entry))
    return malformed("entry '" + launch.entry + "'");
  for (const Size &size : launch.beside)
    if (Error error = verifySize(artifact, size))
      return error;
  if (launch.grid.empty()) {
    if (!launch.block.empty() || launch.shared != 0)
      return malformed("launch '" + launch.entry + "' has a block or shared memory, and no grid");
    return launch.units ? verifySize(artifact, *launch.units) : Error::success();
  }
  if (launch.grid.size() != 3 || launch.block.size() != 3)
    return malformed("launch '" + launch.entry + "' needs three extents of grid and of block");
  if (launch.units)
    return malformed("launch '" + launch.entry + "' has both a grid and units");
  int64_t threads = 1;
  for (int64_t extent : launch.block) {
    if (extent < 1 || extent > maxThreads)
      return malformed("a block of " + Twine(extent) + " threads");
    threads *= extent;
  }
  if (threads > maxThreads)
    return malformed("a block of " + Twine(threads) + " threads");
  if (launch.shared < 0 || launch.shared > maxShared)
    return malformed(Twine(launch.shared) + " bytes of shared memory");
  for (const Size &size : launch.grid)
    if (Error error = verifySize(artifact, size))
      return error;
  return Error::success();
}

Error Artifact::verify() const {
  if (!isTarget(target))
    return malformed("target '" + target + "'");
  if (!isSymbol(kind))
    return malformed("code of kind '" + kind + "'");
  if (indexBits != 32 && indexBits != 64)
    return malformed("index_bits " + Twine(indexBits));
  if (packed < -1 || packed >= maxRank)
    return malformed("packed operand " + Twine(packed));
  if (output.dtype.empty() || output.shape.size() > size_t(maxRank))
    return malformed("output of dtype '" + output.dtype + "'");
  for (const Argument &arg : args)
    if (Error error = verifyArgument(*this, arg))
      return error;
  for (size_t number = 0; number < derived.size(); ++number)
    if (Error error = verifyDerived(*this, number))
      return error;
  for (const SharedSize &size : sizes)
    if (Error error = verifySharedSize(*this, size))
      return error;
  for (const Tensor &tensor : tensors)
    if (Error error = verifyTensor(*this, tensor))
      return error;
  for (const Size &size : output.shape)
    if (Error error = verifySize(*this, size))
      return error;
  for (const Size &bytes : workspace)
    if (Error error = verifySize(*this, bytes))
      return error;
  for (const TensorMap &map : tensorMaps)
    if (Error error = verifyTensorMap(*this, map))
      return error;
  if (launches.empty())
    return malformed("no launches");
  for (const Launch &launch : launches)
    if (Error error = verifyLaunch(*this, launch))
      return error;
  return Error::success();
}
