// SPDX-License-Identifier: Apache-2.0
/// \file
/// What torch hands to a boxed operator, read without copies: every reader owns what it was given.
///
/// `TORCH_BOX` copies its arguments once more, and never frees a string: too dear for a call of a few microseconds.
#ifndef LACIS_PYTHON_OPS_STACK_H
#define LACIS_PYTHON_OPS_STACK_H

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/library.h>
#include <utility>
#include <vector>

namespace lacis::ops {

[[noreturn, gnu::cold, gnu::noinline]] inline void refuseAsTorch(const char *what) {
  throw std::runtime_error(std::string("lacis: torch refused: ") + what);
}

/// A launch asks a hundred times: what raises the error is kept out of the way.
[[gnu::always_inline]] inline void checkTorch(AOTITorchError status, const char *what) {
  if (status != AOTI_TORCH_SUCCESS)
    refuseAsTorch(what);
}

/// A tensor that this process must give back.
class OwnedTensor {
public:
  OwnedTensor() = default;
  explicit OwnedTensor(AtenTensorHandle handle) : handle(handle) {}
  OwnedTensor(OwnedTensor &&other) noexcept : handle(other.release()) {}
  OwnedTensor &operator=(OwnedTensor &&other) noexcept {
    std::swap(handle, other.handle);
    return *this;
  }
  ~OwnedTensor() {
    if (handle)
      aoti_torch_delete_tensor_object(handle);
  }
  AtenTensorHandle get() const { return handle; }
  AtenTensorHandle release() { return std::exchange(handle, nullptr); }

private:
  AtenTensorHandle handle = nullptr;
};

/// The elements of a list argument, which is freed; `Element` is what they are as numbers of the stack.
template <typename Element, typename Take> void takeList(StableIValue value, Take take) {
  auto list = torch::stable::detail::to<StableListHandle>(value);
  std::unique_ptr<StableListOpaque, AOTITorchError (*)(StableListHandle)> owner(list, torch_delete_list);
  size_t count = 0;
  checkTorch(torch_list_size(list, &count), "size of a list");
  for (size_t i = 0; i < count; ++i) {
    StableIValue element = 0;
    checkTorch(torch_list_get_item(list, i, &element), "element of a list");
    take(torch::stable::detail::to<Element>(element));
  }
}

inline void takeTensors(StableIValue list, std::vector<OwnedTensor> &tensors) {
  takeList<AtenTensorHandle>(list, [&](AtenTensorHandle tensor) { tensors.emplace_back(tensor); });
}

inline void takeNumbers(StableIValue list, std::vector<int64_t> &numbers) {
  takeList<int64_t>(list, [&](int64_t number) { numbers.push_back(number); });
}

/// A string argument, readable while this object lives.
class TextArgument {
public:
  explicit TextArgument(StableIValue value) : handle(torch::stable::detail::to<StringHandle>(value)) {}
  TextArgument(const TextArgument &) = delete;
  TextArgument &operator=(const TextArgument &) = delete;
  ~TextArgument() { torch_delete_string(handle); }

  std::string_view get() const {
    size_t size = 0;
    const char *data = nullptr;
    checkTorch(torch_string_length(handle, &size), "length of a string");
    checkTorch(torch_string_c_str(handle, &data), "text of a string");
    return {data, size};
  }

private:
  StringHandle handle = nullptr;
};

} // namespace lacis::ops

#endif
