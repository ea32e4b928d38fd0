// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lends tensors to the core, allocates through torch, and starts the kernel on torch's stream or threads.
#include "launch.h"
#include <algorithm>
#include <forward_list>

using namespace lacis::ops;

static void checkCore(int status, char *error) {
  if (status == LACIS_DONE)
    return;
  std::string text = error ? error : "unknown error";
  lacis_string_free(error);
  if (status == LACIS_REFUSED)
    refuseData(text);
  throw std::runtime_error("lacis kernel: " + text);
}

FoundKernel::FoundKernel(std::string_view key) {
  char *error = nullptr;
  checkCore(lacis_kernel_find(key.data(), key.size(), &kernel, &error), error);
  signature = lacis_kernel_signature(kernel);
}

/// Leading dimensions that a kernel takes as one: a batch of sequences is a batch of tokens.
class Folding {
public:
  /// `view`, which is contiguous, with its first dimensions taken together so that `rank` are left; one that lacks
  /// just one gets it, of size 1, if it may.
  void fold(lacis_tensor_view &view, int32_t rank, bool mayLack) {
    if (rank < 1 || view.ndim == rank || view.ndim + mayLack < rank || rank > kMaxRank || used == kept.size())
      return;
    auto &[sizes, strides] = kept[used++];
    int32_t extra = view.ndim - rank;
    if (extra < 0)
      return unfold(view, sizes, strides);
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

  static void unfold(lacis_tensor_view &view, Numbers &sizes, Numbers &strides) {
    sizes[0] = 1;
    strides[0] = view.ndim ? view.sizes[0] * view.strides[0] : 1;
    std::copy(view.sizes, view.sizes + view.ndim, sizes.begin() + 1);
    std::copy(view.strides, view.strides + view.ndim, strides.begin() + 1);
    view.sizes = sizes.data();
    view.strides = strides.data();
    ++view.ndim;
  }

  std::array<std::pair<Numbers, Numbers>, 6> kept;
  size_t used = 0;
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

namespace {

/// The views of a call's tensors, and the copies that some of them are of.
class Views {
public:
  Views(const Call &call, const Place &place) : place(place), many(call.numOthers < kUsual ? 0 : call.numOthers + 1) {
    data = many.empty() ? few.data() : many.data();
  }

  /// Kernels read dense operands in row-major order, 16 bytes at a time: those that are not so are copied. The arrays
  /// of the packed one must be contiguous, and are copied where they begin elsewhere. Rows of one of `stridedRank`
  /// dimensions may lie anywhere.
  void take(size_t index, AtenTensorHandle tensor, bool isOperand, int32_t stridedRank) {
    lacis_tensor_view &seen = data[index] = view(tensor);
    bool contiguous = isContiguous(seen), pairs = !isOperand && contiguous && holdsPairs(seen, tensor);
    if (!contiguous && seen.ndim == stridedRank && isAligned(seen) && hasAlignedRows(seen, tensor))
      return;
    if (seen.data && !(contiguous && isAligned(seen)) && (contiguous || isOperand)) {
      int32_t dtype = pairs ? aoti_torch_dtype_uint8() : toTorch(seen.dtype);
      OwnedTensor copy = allocate(seen.sizes, size_t(seen.ndim), dtype, place);
      checkTorch(aoti_torch_copy_(copy.get(), tensor, /*non_blocking=*/1), "copy of an operand");
      seen = view(copy.get());
      copies.push_back(std::move(copy));
    }
    if (pairs)
      joinPairs(seen);
  }

  lacis_tensor_view *data;

private:
  /// Are they bytes, of which the last dimension has two?
  static bool holdsPairs(const lacis_tensor_view &seen, AtenTensorHandle tensor) {
    if (seen.dtype != LACIS_DTYPE_OTHER || seen.ndim < 1 || seen.ndim > kMaxRank || seen.sizes[seen.ndim - 1] != 2)
      return false;
    int32_t dtype = 0;
    checkTorch(aoti_torch_get_dtype(tensor, &dtype), "dtype");
    return dtype == aoti_torch_dtype_uint8();
  }

  /// Modules keep 16-bit arrays as pairs of bytes, which torch.distributed can send.
  void joinPairs(lacis_tensor_view &seen) {
    joined.emplace_front();
    for (int32_t d = 0; d + 1 < seen.ndim; ++d)
      joined.front()[d] = seen.strides[d] / 2;
    seen.strides = joined.front().data();
    seen.dtype = LACIS_I16;
    --seen.ndim;
  }

  const Place &place;
  std::array<lacis_tensor_view, kUsual> few;
  std::vector<lacis_tensor_view> many;
  std::vector<OwnedTensor> copies;
  std::forward_list<std::array<int64_t, kMaxRank>> joined; // strides of arrays
};

} // namespace

OwnedTensor lacis::ops::launch(const FoundKernel &found, const Call &call) {
  const lacis_signature &signature = *found.signature;
  Place place = placeOf(call.first);
  OwnedTensor output;
  if (!call.into)
    output = allocate(call.shape, call.rank, toTorch(signature.output_dtype), place);
  AtenTensorHandle into = call.into ? call.into : output.get();
  if (signature.zero_output)
    checkTorch(aoti_torch_zero_(into), "zeros");
  lacis_tensor_view outputView = view(into);
  Folding folding;
  folding.fold(outputView, signature.output_rank, call.outputMayLackLeading);
  Views views(call, place);
  for (size_t i = 0; i <= call.numOthers; ++i) {
    bool isOperand = i < call.numOperands, isKnown = isOperand && i < signature.num_operands;
    int32_t stridedRank = isKnown && signature.operand_strided[i] ? signature.operand_ranks[i] : -1;
    views.take(i, i ? call.others[i - 1] : call.first, isOperand, stridedRank);
    if (isKnown)
      folding.fold(views.data[i], signature.operand_ranks[i], i < call.mayLackLeading);
  }
  lacis_launch_args args = {};
  args.operands = views.data;
  args.num_operands = call.numOperands;
  args.storage = views.data + call.numOperands;
  args.num_storage = call.numOthers + 1 - call.numOperands;
  args.packed_sizes = call.packedShape;
  args.num_packed_sizes = call.packedRank;
  args.output = &outputView;
  Workspace workspace{place, OwnedTensor()};
  char *error = nullptr;
  checkCore(lacis_kernel_launch(found.kernel, &args, currentStream(place), torch_parallel_for, Workspace::get,
                                &workspace, &error),
            error);
  return output;
}
