// SPDX-License-Identifier: Apache-2.0
/// \file
/// A call that is bound costs torch two arguments to convert, not a list of tensors, a list of sizes and a key.
#include "bound.h"
#include "launch.h"
#include <algorithm>
#include <map>
#include <mutex>
#include <random>
#include <shared_mutex>

using namespace lacis::ops;

namespace {

struct BoundCall {
  FoundKernel found;
  std::vector<OwnedTensor> owned;
  std::vector<AtenTensorHandle> tensors; // the same
  std::vector<int64_t> packedShape;
  std::vector<int64_t> tail;
  size_t dropped = 0;

  explicit BoundCall(std::string_view key) : found(key) {}
  OwnedTensor run(AtenTensorHandle operand) const;
};

/// All bound calls of the process. Numbers begin anywhere, so that one of another process means nothing here.
class BoundCalls {
public:
  static BoundCalls &get() {
    static BoundCalls *calls = new BoundCalls; // outlives every static of the process
    return *calls;
  }

  int64_t add(std::shared_ptr<const BoundCall> call) {
    std::unique_lock<std::shared_mutex> lock(mutex);
    calls.emplace(++last, std::move(call));
    return last;
  }

  std::shared_ptr<const BoundCall> find(int64_t number) {
    std::shared_lock<std::shared_mutex> lock(mutex);
    auto found = calls.find(number);
    if (found == calls.end())
      refuseData("call " + std::to_string(number) + " is not bound in this process");
    return found->second;
  }

  /// The call, for the caller to let go of.
  std::shared_ptr<const BoundCall> remove(int64_t number) {
    std::unique_lock<std::shared_mutex> lock(mutex);
    auto found = calls.find(number);
    std::shared_ptr<const BoundCall> call = found == calls.end() ? nullptr : std::move(found->second);
    if (call)
      calls.erase(found);
    return call;
  }

private:
  std::shared_mutex mutex;
  std::map<int64_t, std::shared_ptr<const BoundCall>> calls;
  int64_t last = int64_t(std::random_device{}()) << 24;
};

} // namespace

OwnedTensor BoundCall::run(AtenTensorHandle operand) const {
  lacis_tensor_view seen = view(operand);
  if (size_t(seen.ndim) < dropped || size_t(seen.ndim) - dropped + tail.size() > size_t(kMaxRank))
    refuseData("the first operand has " + std::to_string(seen.ndim) + " dimensions; expected at least " +
               std::to_string(dropped) + ", at most " + std::to_string(kMaxRank));
  std::array<int64_t, kMaxRank> shape;
  size_t kept = size_t(seen.ndim) - dropped;
  std::copy(seen.sizes, seen.sizes + kept, shape.begin());
  std::copy(tail.begin(), tail.end(), shape.begin() + kept);
  Call call;
  call.first = operand;
  call.others = tensors.data();
  call.numOthers = tensors.size();
  call.mayLackLeading = true;
  call.numOperands = found.signature->num_operands;
  call.shape = shape.data();
  call.rank = kept + tail.size();
  call.packedShape = packedShape.data();
  call.packedRank = packedShape.size();
  return launch(found, call);
}

void lacis::ops::bind(StableIValue *stack, uint64_t, uint64_t) {
  TextArgument key(stack[1]);
  auto call = std::make_shared<BoundCall>(key.get());
  takeTensors(stack[0], call->owned);
  takeNumbers(stack[2], call->packedShape);
  auto dropped = torch::stable::detail::to<int64_t>(stack[3]);
  takeNumbers(stack[4], call->tail);
  size_t operands = call->found.signature->num_operands;
  if (dropped < 0 || operands == 0 || call->owned.size() + 1 < operands)
    refuseData("a bound call needs " + std::to_string(operands) + " dense operands, of which the first comes later; " +
               "got " + std::to_string(call->owned.size()) + " tensors");
  call->dropped = size_t(dropped);
  for (const OwnedTensor &tensor : call->owned)
    call->tensors.push_back(tensor.get());
  stack[0] = torch::stable::detail::from(BoundCalls::get().add(std::move(call)));
}

void lacis::ops::einsumBound(StableIValue *stack, uint64_t, uint64_t) {
  OwnedTensor operand(torch::stable::detail::to<AtenTensorHandle>(stack[0]));
  std::shared_ptr<const BoundCall> call = BoundCalls::get().find(torch::stable::detail::to<int64_t>(stack[1]));
  refuseGradMode("einsum.bound");
  stack[0] = torch::stable::detail::from(call->run(operand.get()).release());
}

void lacis::ops::unbind(StableIValue *stack, uint64_t, uint64_t) {
  BoundCalls::get().remove(torch::stable::detail::to<int64_t>(stack[0]));
}
