// SPDX-License-Identifier: Apache-2.0
/// \file
/// `torch.ops.lacis.einsum` against LibTorch's stable ABI: lends tensors to the core, allocates through torch.
#include "lacis-c/lacis_runtime.h"
#include "stack.h"
#include <array>
#include <dlfcn.h>

using namespace lacis::ops;

/// The first words tell Python which error of Lacis this is, see `refusal` in python/lacis/runtime/library.py.
[[noreturn]] static void refuseData(const std::string &text) { throw std::runtime_error("lacis data: " + text); }

static void checkCore(int status, char *error) {
  if (status == LACIS_DONE)
    return;
  std::string text = error ? error : "unknown error";
  lacis_string_free(error);
  if (status == LACIS_REFUSED)
    refuseData(text);
  throw std::runtime_error("lacis kernel: " + text);
}

/// Torch's number of a dtype beside the core's.
struct DtypePair {
  int32_t torch;
  int32_t lacis;
};

static const std::array<DtypePair, 9> &dtypes() {
  static const std::array<DtypePair, 9> table = {{{aoti_torch_dtype_float32(), LACIS_F32},
                                                  {aoti_torch_dtype_int32(), LACIS_I32},
                                                  {aoti_torch_dtype_int64(), LACIS_I64},
                                                  {aoti_torch_dtype_float16(), LACIS_F16},
                                                  {aoti_torch_dtype_bfloat16(), LACIS_BF16},
                                                  {aoti_torch_dtype_float64(), LACIS_F64},
                                                  {aoti_torch_dtype_bool(), LACIS_I1},
                                                  {aoti_torch_dtype_int8(), LACIS_I8},
                                                  {aoti_torch_dtype_int16(), LACIS_I16}}};
  return table;
}

static int32_t toLacis(int32_t torchDtype) {
  for (const DtypePair &pair : dtypes())
    if (pair.torch == torchDtype)
      return pair.lacis;
  return LACIS_DTYPE_OTHER;
}

static int32_t toTorch(int32_t lacisDtype) {
  for (const DtypePair &pair : dtypes())
    if (pair.lacis == lacisDtype)
      return pair.torch;
  throw std::runtime_error("lacis: torch has no dtype for the output of this kernel");
}

/// Where the tensors of a launch lie.
struct Place {
  int32_t type = 0;
  int32_t index = 0;
  bool isHost() const { return type == hostType(); }
  int32_t device() const { return isHost() ? LACIS_DEVICE_HOST : index; }
  static int32_t hostType() {
    static const int32_t type = aoti_torch_device_type_cpu();
    return type;
  }
};

static Place placeOf(AtenTensorHandle tensor) {
  Place place;
  checkTorch(aoti_torch_get_device_type(tensor, &place.type), "device type");
  if (place.isHost())
    return place;
  if (place.type != aoti_torch_device_type_cuda())
    refuseData("tensors must lie on the CPU or on a CUDA device");
  checkTorch(aoti_torch_get_device_index(tensor, &place.index), "device index");
  return place;
}

static lacis_tensor_view view(AtenTensorHandle tensor) {
  lacis_tensor_view result = {};
  int64_t rank = 0, *sizes = nullptr, *strides = nullptr;
  int32_t dtype = 0;
  checkTorch(aoti_torch_get_dim(tensor, &rank), "rank");
  checkTorch(aoti_torch_get_sizes(tensor, &sizes), "sizes");
  checkTorch(aoti_torch_get_strides(tensor, &strides), "strides");
  checkTorch(aoti_torch_get_dtype(tensor, &dtype), "dtype");
  checkTorch(aoti_torch_get_data_ptr(tensor, &result.data), "data pointer");
  result.sizes = sizes;
  result.strides = strides;
  result.ndim = int32_t(rank);
  result.dtype = toLacis(dtype);
  result.device = placeOf(tensor).device();
  return result;
}

constexpr int32_t kMaxRank = 16;

static OwnedTensor allocate(const int64_t *sizes, size_t rank, int32_t dtype, const Place &place) {
  if (rank > kMaxRank)
    refuseData("tensors have at most 16 dimensions");
  int64_t strides[kMaxRank];
  int64_t stride = 1;
  for (size_t i = rank; i-- > 0;) {
    if (sizes[i] < 0)
      refuseData("negative size in the shape of the output");
    strides[i] = stride;
    stride *= sizes[i] > 1 ? sizes[i] : 1;
  }
  AtenTensorHandle handle = nullptr;
  checkTorch(aoti_torch_empty_strided(int64_t(rank), sizes, strides, dtype, place.type, place.index, &handle),
             "allocation");
  return OwnedTensor(handle);
}

/// The stream of the calling thread; found by name, so that one binary serves torch with and without CUDA.
static void *currentStream(const Place &place) {
  if (place.isHost())
    return nullptr;
  using Getter = AOTITorchError (*)(int32_t, void **);
  static const Getter getter = [] {
    constexpr const char *name = "aoti_torch_get_current_cuda_stream";
    void *library = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
    void *symbol = library ? dlsym(library, name) : nullptr;
    return reinterpret_cast<Getter>(symbol ? symbol : dlsym(RTLD_DEFAULT, name));
  }();
  if (!getter)
    throw std::runtime_error("lacis: this torch was built without CUDA");
  void *stream = nullptr;
  checkTorch(getter(place.index, &stream), "current stream");
  return stream;
}

static bool isContiguous(const lacis_tensor_view &view) {
  int64_t expected = 1;
  for (int32_t d = view.ndim - 1; d >= 0; --d) {
    if (view.sizes[d] != 1 && view.strides[d] != expected)
      return false;
    expected *= view.sizes[d] ? view.sizes[d] : 1;
  }
  return true;
}

static bool isAligned(const lacis_tensor_view &view) {
  constexpr uintptr_t kAlignment = 16;
  return reinterpret_cast<uintptr_t>(view.data) % kAlignment == 0;
}

/// Kernels read dense operands in row-major order, 16 bytes at a time: views that are not so are copied. The arrays of
/// the packed one must be contiguous, and are copied where they begin elsewhere.
static void makeRegular(OwnedTensor &operand, lacis_tensor_view &seen, const Place &place) {
  if (isContiguous(seen) && isAligned(seen))
    return;
  OwnedTensor copy = allocate(seen.sizes, size_t(seen.ndim), toTorch(seen.dtype), place);
  checkTorch(aoti_torch_copy_(copy.get(), operand.get(), /*non_blocking=*/1), "copy of an operand");
  operand = std::move(copy);
  seen = view(operand.get());
}

/// Leading dimensions that a kernel takes as one: a batch of sequences is a batch of tokens.
class Folding {
public:
  /// `view`, which is contiguous, with its first dimensions taken together so that `rank` are left.
  void fold(lacis_tensor_view &view, int32_t rank) {
    if (rank < 1 || view.ndim <= rank || rank > kMaxRank || used == kept.size())
      return;
    auto &[sizes, strides] = kept[used++];
    int32_t extra = view.ndim - rank;
    sizes[0] = 1;
    for (int32_t d = 0; d <= extra; ++d)
      sizes[0] *= view.sizes[d];
    for (int32_t d = 1; d < rank; ++d)
      sizes[d] = view.sizes[d + extra];
    for (int32_t d = 0; d < rank; ++d)
      strides[d] = view.strides[d + extra];
    view.sizes = sizes.data();
    view.strides = strides.data();
    view.ndim = rank;
  }

private:
  using Numbers = std::array<int64_t, kMaxRank>;
  std::array<std::pair<Numbers, Numbers>, 6> kept;
  size_t used = 0;
};

/// One call: dense operands first, then storage.
struct Call {
  std::vector<OwnedTensor> tensors;
  size_t numOperands = 0;
  const int64_t *shape = nullptr;
  size_t rank = 0;
  const int64_t *packedShape = nullptr;
  size_t packedRank = 0;
};

/// Lends memory for one launch; torch takes it back in the order of the stream.
struct Workspace {
  Place place;
  OwnedTensor memory;

  static void *get(int64_t bytes, void *context) {
    auto *self = static_cast<Workspace *>(context);
    try {
      self->memory = allocate(&bytes, 1, aoti_torch_dtype_uint8(), self->place);
      void *data = nullptr;
      checkTorch(aoti_torch_get_data_ptr(self->memory.get(), &data), "data pointer");
      return data;
    } catch (const std::exception &) {
      return nullptr;
    }
  }
};

static lacis_kernel *findKernel(std::string_view key) {
  char *error = nullptr;
  lacis_kernel *kernel = nullptr;
  checkCore(lacis_kernel_find(key.data(), key.size(), &kernel, &error), error);
  return kernel;
}

static OwnedTensor run(lacis_kernel *kernel, const lacis_signature &signature, Call &call) {
  if (call.tensors.empty())
    refuseData("einsum needs at least one tensor");
  Place place = placeOf(call.tensors.front().get());
  OwnedTensor output = allocate(call.shape, call.rank, toTorch(signature.output_dtype), place);
  if (signature.zero_output)
    checkTorch(aoti_torch_zero_(output.get()), "zeros");
  lacis_tensor_view outputView = view(output.get());
  Folding folding;
  folding.fold(outputView, signature.output_rank);
  std::vector<lacis_tensor_view> views;
  views.reserve(call.tensors.size());
  for (size_t i = 0; i < call.tensors.size(); ++i) {
    views.push_back(view(call.tensors[i].get()));
    bool isOperand = i < call.numOperands;
    if (isOperand || (!isAligned(views.back()) && isContiguous(views.back())))
      makeRegular(call.tensors[i], views.back(), place);
    if (isOperand && i < signature.num_operands)
      folding.fold(views.back(), signature.operand_ranks[i]);
  }
  lacis_launch_args args = {};
  args.operands = views.data();
  args.num_operands = call.numOperands;
  args.storage = views.data() + call.numOperands;
  args.num_storage = views.size() - call.numOperands;
  args.packed_sizes = call.packedShape;
  args.num_packed_sizes = call.packedRank;
  args.output = &outputView;
  Workspace workspace{place, OwnedTensor()};
  char *error = nullptr;
  checkCore(lacis_kernel_launch(kernel, &args, currentStream(place), torch_parallel_for, Workspace::get, &workspace,
                                &error),
            error);
  return output;
}

/// Room for the tensors and sizes of most calls.
constexpr size_t kUsual = 16;

/// einsum(Tensor[] operands, Tensor[] storage, SymInt[] shape, str kernel_key, SymInt[] packed_shape,
/// Tensor[] companions), whose companions are arrays that only the kernels of the gradients walk.
static void einsum(StableIValue *stack, uint64_t, uint64_t) {
  TextArgument key(stack[3]);
  Call call;
  call.tensors.reserve(kUsual);
  std::vector<int64_t> sizes;
  sizes.reserve(kUsual);
  std::vector<OwnedTensor> companions;
  takeTensors(stack[0], call.tensors);
  call.numOperands = call.tensors.size();
  takeTensors(stack[1], call.tensors);
  takeTensors(stack[5], companions);
  takeNumbers(stack[2], sizes);
  call.rank = sizes.size();
  takeNumbers(stack[4], sizes);
  call.shape = sizes.data();
  call.packedShape = sizes.data() + call.rank;
  call.packedRank = sizes.size() - call.rank;
  lacis_kernel *kernel = findKernel(key.get());
  stack[0] = torch::stable::detail::from(run(kernel, *lacis_kernel_signature(kernel), call).release());
}

/// einsum.inference(Tensor[] tensors, SymInt[] sizes, str kernel_key): the same in the fewest lists. `tensors` are the
/// dense operands and the storage; `sizes` the rank of the output, its shape, and the sizes of the packed operand. It
/// has no autograd kernel: cheap to call, and wrong under grad mode, where it refuses.
static void einsumInference(StableIValue *stack, uint64_t, uint64_t) {
  TextArgument key(stack[2]);
  Call call;
  call.tensors.reserve(kUsual);
  std::vector<int64_t> sizes;
  sizes.reserve(kUsual);
  takeTensors(stack[0], call.tensors);
  takeNumbers(stack[1], sizes);
  if (aoti_torch_grad_mode_is_enabled())
    throw std::runtime_error("lacis: einsum.inference runs under torch.no_grad() or torch.inference_mode() only; "
                             "call torch.ops.lacis.einsum.default where gradients are recorded");
  lacis_kernel *kernel = findKernel(key.get());
  const lacis_signature &signature = *lacis_kernel_signature(kernel);
  if (sizes.empty() || sizes[0] < 0 || size_t(sizes[0]) >= sizes.size())
    refuseData("the sizes of einsum.inference begin with the rank of the output");
  if (call.tensors.size() < signature.num_operands)
    refuseData("expected " + std::to_string(signature.num_operands) + " dense operands, got " +
                             std::to_string(call.tensors.size()) + " tensors");
  call.numOperands = signature.num_operands;
  call.rank = size_t(sizes[0]);
  call.shape = sizes.data() + 1;
  call.packedShape = call.shape + call.rank;
  call.packedRank = sizes.size() - 1 - call.rank;
  stack[0] = torch::stable::detail::from(run(kernel, signature, call).release());
}

STABLE_TORCH_LIBRARY(lacis, m) {
  m.def("einsum(Tensor[] operands, Tensor[] storage, SymInt[] shape, str kernel_key, SymInt[] packed_shape, "
        "Tensor[] companions) -> Tensor");
  m.def("einsum.inference(Tensor[] tensors, SymInt[] sizes, str kernel_key) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(lacis, CPU, m) {
  m.impl("einsum", einsum);
  m.impl("einsum.inference", einsumInference);
}

STABLE_TORCH_LIBRARY_IMPL(lacis, CUDA, m) {
  m.impl("einsum", einsum);
  m.impl("einsum.inference", einsumInference);
}
