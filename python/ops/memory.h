// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tensors of torch as the core sees them: views, dtypes, places, and memory for new ones.
#ifndef LACIS_PYTHON_OPS_MEMORY_H
#define LACIS_PYTHON_OPS_MEMORY_H

#include "lacis-c/lacis_runtime.h"
#include "stack.h"
#include <array>
#include <dlfcn.h>

namespace lacis::ops {

/// The first words tell Python which error of Lacis this is, see `refusal` in python/lacis/runtime/library.py.
[[noreturn]] inline void refuseData(const std::string &text) { throw std::runtime_error("lacis data: " + text); }

inline void refuseGradMode(const char *overload) {
  if (aoti_torch_grad_mode_is_enabled())
    throw std::runtime_error(std::string("lacis: ") + overload +
                             " runs under torch.no_grad() or torch.inference_mode() only; call "
                             "torch.ops.lacis.einsum.default where gradients are recorded");
}

/// Torch's number of a dtype beside the core's.
struct DtypePair {
  int32_t torch;
  int32_t lacis;
};

inline const std::array<DtypePair, 9> &dtypes() {
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

/// What the core calls a dtype of torch, and the bytes of an element.
struct KnownDtype {
  int32_t lacis = LACIS_DTYPE_OTHER;
  int64_t bytes = 0; // 0: torch must be asked
};

inline KnownDtype known(int32_t torchDtype) {
  static const std::array<KnownDtype, 16> table = [] { // torch's number of bfloat16, the largest of these, is 15
    std::array<KnownDtype, 16> table;
    for (const DtypePair &pair : dtypes())
      table.at(pair.torch) = {pair.lacis, int64_t(aoti_torch_dtype_element_size(pair.torch))};
    return table;
  }();
  return uint32_t(torchDtype) < table.size() ? table[torchDtype] : KnownDtype();
}

inline int32_t toTorch(int32_t lacisDtype) {
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
  static int32_t gpuType() {
    static const int32_t type = aoti_torch_device_type_cuda();
    return type;
  }
};

inline Place placeOf(AtenTensorHandle tensor) {
  Place place;
  checkTorch(aoti_torch_get_device_type(tensor, &place.type), "device type");
  if (place.isHost())
    return place;
  if (place.type != Place::gpuType())
    refuseData("tensors must lie on the CPU or on a CUDA device");
  checkTorch(aoti_torch_get_device_index(tensor, &place.index), "device index");
  return place;
}

/// Is all of the tensor in its storage? Sharded training frees the storage of tensors that live on.
inline bool hasMemory(AtenTensorHandle tensor, const lacis_tensor_view &view, int64_t elementBytes) {
  int64_t last = 0, bytes = 0;
  checkTorch(aoti_torch_get_storage_offset(tensor, &last), "storage offset");
  for (int32_t d = 0; d < view.ndim; ++d) {
    if (view.sizes[d] == 0)
      return true;
    last += (view.sizes[d] - 1) * view.strides[d];
  }
  checkTorch(aoti_torch_get_storage_size(tensor, &bytes), "storage size");
  return view.data && (last + 1) * elementBytes <= bytes;
}

/// A view, whose `data` is null where the tensor has elements but no memory for them.
inline lacis_tensor_view view(AtenTensorHandle tensor) {
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
  KnownDtype element = known(dtype);
  result.dtype = element.lacis;
  result.device = placeOf(tensor).device();
  if (!hasMemory(tensor, result, element.bytes ? element.bytes : int64_t(aoti_torch_dtype_element_size(dtype))))
    result.data = nullptr;
  return result;
}

constexpr int32_t kMaxRank = 16;

inline OwnedTensor allocate(const int64_t *sizes, size_t rank, int32_t dtype, const Place &place) {
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
inline void *currentStream(const Place &place) {
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

inline bool isContiguous(const lacis_tensor_view &view) {
  int64_t expected = 1;
  for (int32_t d = view.ndim - 1; d >= 0; --d) {
    if (view.sizes[d] != 1 && view.strides[d] != expected)
      return false;
    expected *= view.sizes[d] ? view.sizes[d] : 1;
  }
  return true;
}

constexpr uintptr_t kAlignment = 16;

inline bool isAligned(const lacis_tensor_view &view) {
  return reinterpret_cast<uintptr_t>(view.data) % kAlignment == 0;
}

/// Do rows of neighbours begin at multiples of 16 bytes?
inline bool hasAlignedRows(const lacis_tensor_view &view, AtenTensorHandle tensor) {
  int32_t dtype = 0;
  checkTorch(aoti_torch_get_dtype(tensor, &dtype), "dtype");
  auto bytes = int64_t(aoti_torch_dtype_element_size(dtype));
  for (int32_t d = 0; d < view.ndim; ++d) {
    int64_t stride = view.strides[d];
    bool fits = d + 1 == view.ndim ? stride == 1 : stride > 0 && stride * bytes % int64_t(kAlignment) == 0;
    if (view.sizes[d] > 1 && !fits)
      return false;
  }
  return true;
}

} // namespace lacis::ops

#endif
