// SPDX-License-Identifier: Apache-2.0
/// \file
/// `torch.ops.lacis` against LibTorch's stable ABI: an einsum by its kernel's key, and calls that are bound beforehand.
#include "bound.h"
#include "launch.h"

using namespace lacis::ops;

/// Launches on `tensors`, which the caller owns.
static OwnedTensor launchOn(const std::vector<OwnedTensor> &tensors, const FoundKernel &found, Call &call) {
  if (tensors.empty())
    refuseData("a call needs dense operands and storage tensors, got none");
  std::vector<AtenTensorHandle> lent;
  lent.reserve(tensors.size());
  for (const OwnedTensor &tensor : tensors)
    lent.push_back(tensor.get());
  call.first = lent[0];
  call.others = lent.data() + 1;
  call.numOthers = lent.size() - 1;
  return launch(found, call);
}

/// einsum(Tensor[] operands, Tensor[] storage, SymInt[] shape, str kernel_key, SymInt[] packed_shape,
/// Tensor[] companions), whose companions are arrays that only the kernels of the gradients walk.
static void einsum(StableIValue *stack, uint64_t, uint64_t) {
  TextArgument key(stack[3]);
  std::vector<OwnedTensor> tensors, companions;
  tensors.reserve(kUsual);
  std::vector<int64_t> sizes;
  sizes.reserve(kUsual);
  Call call;
  takeTensors(stack[0], tensors);
  call.numOperands = tensors.size();
  takeTensors(stack[1], tensors);
  takeTensors(stack[5], companions);
  takeNumbers(stack[2], sizes);
  call.rank = sizes.size();
  takeNumbers(stack[4], sizes);
  call.shape = sizes.data();
  call.packedShape = sizes.data() + call.rank;
  call.packedRank = sizes.size() - call.rank;
  stack[0] = torch::stable::detail::from(launchOn(tensors, FoundKernel(key.get()), call).release());
}

/// einsum.exported(Tensor[] tensors, int operands, SymInt[] shape, str kernel_key, SymInt[] packed_shape): the same
/// without companions, `operands` of the tensors being dense. Graphs that leave Python have it: what runs packages of
/// AOTInductor hands over nothing for a list of tensors that is empty.
static void einsumExported(StableIValue *stack, uint64_t, uint64_t) {
  TextArgument key(stack[3]);
  std::vector<OwnedTensor> tensors;
  std::vector<int64_t> sizes;
  takeTensors(stack[0], tensors);
  auto operands = torch::stable::detail::to<int64_t>(stack[1]);
  takeNumbers(stack[2], sizes);
  Call call;
  call.rank = sizes.size();
  takeNumbers(stack[4], sizes);
  if (operands < 0 || size_t(operands) > tensors.size())
    refuseData("expected at least " + std::to_string(operands) + " tensors, got " + std::to_string(tensors.size()));
  call.numOperands = size_t(operands);
  call.shape = sizes.data();
  call.packedShape = sizes.data() + call.rank;
  call.packedRank = sizes.size() - call.rank;
  stack[0] = torch::stable::detail::from(launchOn(tensors, FoundKernel(key.get()), call).release());
}

/// einsum.inference(Tensor[] tensors, SymInt[] sizes, str kernel_key): the same in the fewest lists. `tensors` are the
/// dense operands and the storage; `sizes` the rank of the output, its shape, and the sizes of the packed operand. It
/// has no autograd kernel: cheap to call, and wrong under grad mode, where it refuses.
static void einsumInference(StableIValue *stack, uint64_t, uint64_t) {
  TextArgument key(stack[2]);
  std::vector<OwnedTensor> tensors;
  tensors.reserve(kUsual);
  std::vector<int64_t> sizes;
  sizes.reserve(kUsual);
  takeTensors(stack[0], tensors);
  takeNumbers(stack[1], sizes);
  refuseGradMode("einsum.inference");
  FoundKernel found(key.get());
  if (sizes.empty() || sizes[0] < 0 || size_t(sizes[0]) >= sizes.size())
    refuseData("the sizes of einsum.inference begin with the rank of the output");
  if (tensors.size() < found.signature->num_operands)
    refuseData("expected " + std::to_string(found.signature->num_operands) + " dense operands, got " +
               std::to_string(tensors.size()) + " tensors");
  Call call;
  call.numOperands = found.signature->num_operands;
  call.rank = size_t(sizes[0]);
  call.shape = sizes.data() + 1;
  call.packedShape = call.shape + call.rank;
  call.packedRank = sizes.size() - 1 - call.rank;
  stack[0] = torch::stable::detail::from(launchOn(tensors, found, call).release());
}

STABLE_TORCH_LIBRARY(lacis, m) {
  m.def("einsum(Tensor[] operands, Tensor[] storage, SymInt[] shape, str kernel_key, SymInt[] packed_shape, "
        "Tensor[] companions) -> Tensor");
  m.def("einsum.exported(Tensor[] tensors, int operands, SymInt[] shape, str kernel_key, SymInt[] packed_shape) "
        "-> Tensor");
  m.def("einsum.inference(Tensor[] tensors, SymInt[] sizes, str kernel_key) -> Tensor");
  m.def("bind(Tensor[] tensors, str kernel_key, int[] packed_shape, int dropped, int[] tail, int[] fills=[]) -> int");
  m.def("bind.pair(Tensor[] tensors, str kernel_key, int[] packed_shape, int[] shape) -> int");
  m.def("bind.fill(Tensor[] tensors, str kernel_key, Tensor into) -> int");
  m.def("fill(int call) -> ()");
  m.def("einsum.bound(Tensor operand, int call) -> Tensor");
  m.def("einsum.bound_pair(Tensor first, Tensor second, int call) -> Tensor");
  m.def("unbind(int call) -> ()");
}

/// The same on each device: the kernel that a key names is for one.
template <typename Library> static void implement(Library &m) {
  m.impl("einsum", einsum);
  m.impl("einsum.exported", einsumExported);
  m.impl("einsum.inference", einsumInference);
  m.impl("bind", bind);
  m.impl("bind.pair", bindPair);
  m.impl("bind.fill", bindFill);
  m.impl("einsum.bound", einsumBound);
  m.impl("einsum.bound_pair", einsumBoundPair);
}

STABLE_TORCH_LIBRARY_IMPL(lacis, CPU, m) { implement(m); }
STABLE_TORCH_LIBRARY_IMPL(lacis, CUDA, m) { implement(m); }

STABLE_TORCH_LIBRARY_IMPL(lacis, CompositeExplicitAutograd, m) {
  m.impl("fill", fill);
  m.impl("unbind", unbind);
}
