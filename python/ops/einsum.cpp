// SPDX-License-Identifier: Apache-2.0
/// \file
/// `torch.ops.lacis.einsum` against LibTorch's stable ABI: lends tensors to the core, allocates through torch.
#include "lacis-c/lacis_runtime.h"
#include <array>
#include <dlfcn.h>
#include <stdexcept>
#include <string>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>
#include <vector>

using torch::stable::Tensor;

static void checkTorch(AOTITorchError status, const char *what) {
  if (status != AOTI_TORCH_SUCCESS)
    throw std::runtime_error(std::string("lacis: torch refused: ") + what);
}

static void checkCore(int status, char *error) {
  if (status == 0)
    return;
  std::string text = std::string("lacis: ") + (error ? error : "unknown error");
  lacis_string_free(error);
  throw std::runtime_error(text);
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
  int32_t type = aoti_torch_device_type_cpu();
  int32_t index = 0;
  bool isHost() const { return type == aoti_torch_device_type_cpu(); }
  int32_t device() const { return isHost() ? LACIS_DEVICE_HOST : index; }
};

static Place placeOf(AtenTensorHandle tensor) {
  Place place;
  checkTorch(aoti_torch_get_device_type(tensor, &place.type), "device type");
  checkTorch(aoti_torch_get_device_index(tensor, &place.index), "device index");
  if (place.isHost())
    place.index = 0;
  else if (place.type != aoti_torch_device_type_cuda())
    throw std::runtime_error("lacis: tensors must lie on the CPU or on a CUDA device");
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

static std::vector<lacis_tensor_view> views(const std::vector<Tensor> &tensors) {
  std::vector<lacis_tensor_view> result;
  result.reserve(tensors.size());
  for (const Tensor &tensor : tensors)
    result.push_back(view(tensor.get()));
  return result;
}

static Tensor allocate(const std::vector<int64_t> &shape, int32_t dtype, const Place &place) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i] > 1 ? shape[i] : 1;
  }
  AtenTensorHandle handle = nullptr;
  checkTorch(aoti_torch_empty_strided(int64_t(shape.size()), shape.data(), strides.data(), dtype, place.type,
                                      place.index, &handle),
             "allocation");
  return Tensor(handle);
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

static Place placeOfAll(const std::vector<Tensor> &operands, const std::vector<Tensor> &storage) {
  if (operands.empty() && storage.empty())
    throw std::runtime_error("lacis: einsum needs at least one tensor");
  return placeOf(operands.empty() ? storage.front().get() : operands.front().get());
}

static std::vector<Tensor> allocateWorkspaces(lacis_kernel *kernel, const lacis_launch_args &args,
                                              const Place &place) {
  std::vector<Tensor> workspaces;
  std::vector<int64_t> bytes(lacis_kernel_num_workspaces(kernel));
  if (bytes.empty())
    return workspaces;
  char *error = nullptr;
  checkCore(lacis_kernel_workspace_bytes(kernel, &args, bytes.data(), &error), error);
  for (int64_t size : bytes)
    workspaces.push_back(allocate({size}, aoti_torch_dtype_uint8(), place));
  return workspaces;
}

/// Kernels read dense operands in row-major order, 16 bytes at a time: views that are not so are copied.
static void makeRegular(std::vector<Tensor> &operands, const Place &place) {
  constexpr uintptr_t kAlignment = 16;
  for (Tensor &operand : operands) {
    lacis_tensor_view seen = view(operand.get());
    if (operand.is_contiguous() && reinterpret_cast<uintptr_t>(seen.data) % kAlignment == 0)
      continue;
    Tensor copy = allocate({seen.sizes, seen.sizes + seen.ndim}, toTorch(seen.dtype), place);
    checkTorch(aoti_torch_copy_(copy.get(), operand.get(), /*non_blocking=*/1), "copy of an operand");
    operand = copy;
  }
}

/// `companions` are arrays that only the kernels of the gradients walk.
static Tensor einsum(std::vector<Tensor> operands, std::vector<Tensor> storage, std::vector<int64_t> shape,
                     std::string key, std::vector<int64_t> packedShape, std::vector<Tensor> /*companions*/) {
  char *error = nullptr;
  lacis_kernel *kernel = nullptr;
  checkCore(lacis_kernel_find(key.data(), key.size(), &kernel, &error), error);
  Place place = placeOfAll(operands, storage);
  for (int64_t size : shape)
    if (size < 0)
      throw std::runtime_error("lacis: negative size in the shape of the output");
  Tensor output = allocate(shape, toTorch(lacis_kernel_output_dtype(kernel)), place);
  if (lacis_kernel_zeros_output(kernel))
    checkTorch(aoti_torch_zero_(output.get()), "zeros");
  makeRegular(operands, place);
  std::vector<lacis_tensor_view> operandViews = views(operands), storageViews = views(storage);
  lacis_tensor_view outputView = view(output.get());
  lacis_launch_args args = {};
  args.operands = operandViews.data();
  args.num_operands = operandViews.size();
  args.storage = storageViews.data();
  args.num_storage = storageViews.size();
  args.packed_sizes = packedShape.data();
  args.num_packed_sizes = packedShape.size();
  args.output = &outputView;
  std::vector<Tensor> workspaces = allocateWorkspaces(kernel, args, place);
  std::vector<void *> pointers;
  for (const Tensor &workspace : workspaces)
    pointers.push_back(view(workspace.get()).data);
  args.workspace = pointers.data();
  args.num_workspace = pointers.size();
  checkCore(lacis_kernel_launch(kernel, &args, currentStream(place), torch_parallel_for, &error), error);
  return output;
}

/// The overload without an autograd kernel: cheap to call, and wrong under grad mode, where it refuses.
static Tensor einsumInference(std::vector<Tensor> operands, std::vector<Tensor> storage, std::vector<int64_t> shape,
                              std::string key, std::vector<int64_t> packedShape) {
  if (aoti_torch_grad_mode_is_enabled())
    throw std::runtime_error("lacis: einsum.inference runs under torch.no_grad() or torch.inference_mode() only; "
                             "call torch.ops.lacis.einsum.default where gradients are recorded");
  return einsum(std::move(operands), std::move(storage), std::move(shape), std::move(key), std::move(packedShape), {});
}

STABLE_TORCH_LIBRARY(lacis, m) {
  m.def("einsum(Tensor[] operands, Tensor[] storage, SymInt[] shape, str kernel_key, SymInt[] packed_shape, "
        "Tensor[] companions) -> Tensor");
  m.def("einsum.inference(Tensor[] operands, Tensor[] storage, SymInt[] shape, str kernel_key, "
        "SymInt[] packed_shape=[]) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(lacis, CPU, m) {
  m.impl("einsum", TORCH_BOX(&einsum));
  m.impl("einsum.inference", TORCH_BOX(&einsumInference));
}

STABLE_TORCH_LIBRARY_IMPL(lacis, CUDA, m) {
  m.impl("einsum", TORCH_BOX(&einsum));
  m.impl("einsum.inference", TORCH_BOX(&einsumInference));
}
