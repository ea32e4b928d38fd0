// SPDX-License-Identifier: Apache-2.0
/// \file
/// A bound call costs torch two or three arguments to convert, not a list of tensors, a list of sizes and a key.
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
  size_t later; // dense operands that come with each call, none, one or two
  std::vector<OwnedTensor> owned;
  std::vector<AtenTensorHandle> tensors; // the same, behind room for an operand where two come later
  std::vector<int64_t> packedShape;
  std::vector<int64_t> tail;
  size_t dropped = 0;
  OwnedTensor into; // the output, where it is that of all calls
  std::vector<std::shared_ptr<const BoundCall>> fills; // what each call fills before

  BoundCall(std::string_view key, size_t later) : found(key), later(later) {}
  void take(StableIValue list);
  OwnedTensor run(AtenTensorHandle operand) const;
  OwnedTensor run(AtenTensorHandle first, AtenTensorHandle second) const;
  void fill() const;

private:
  Call begin(AtenTensorHandle first) const;
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

void BoundCall::take(StableIValue list) {
  takeTensors(list, owned);
  size_t operands = found.signature->num_operands;
  if (operands < std::max<size_t>(later, 1) || owned.size() + later < operands)
    refuseData("a bound call needs " + std::to_string(operands) + " dense operands, of which " + std::to_string(later) +
               " come later; got " + std::to_string(owned.size()) + " tensors");
  tensors.resize(later == 2 ? 1 : 0);
  for (const OwnedTensor &tensor : owned)
    tensors.push_back(tensor.get());
}

Call BoundCall::begin(AtenTensorHandle first) const {
  Call call;
  call.first = first;
  call.others = tensors.data();
  call.numOthers = tensors.size();
  call.mayLackLeading = later;
  call.numOperands = found.signature->num_operands;
  call.packedShape = packedShape.data();
  call.packedRank = packedShape.size();
  return call;
}

OwnedTensor BoundCall::run(AtenTensorHandle operand) const {
  if (later != 1)
    refuseData("this call takes two operands");
  for (const std::shared_ptr<const BoundCall> &each : fills)
    each->fill();
  lacis_tensor_view seen = view(operand);
  if (size_t(seen.ndim) < dropped || size_t(seen.ndim) - dropped + tail.size() > size_t(kMaxRank))
    refuseData("the first operand has " + std::to_string(seen.ndim) + " dimensions; expected at least " +
               std::to_string(dropped) + ", at most " + std::to_string(kMaxRank));
  std::array<int64_t, kMaxRank> shape;
  size_t kept = size_t(seen.ndim) - dropped;
  std::copy(seen.sizes, seen.sizes + kept, shape.begin());
  std::copy(tail.begin(), tail.end(), shape.begin() + kept);
  Call call = begin(operand);
  call.shape = shape.data();
  call.rank = kept + tail.size();
  call.outputMayLackLeading = true;
  return launch(found, call);
}

OwnedTensor BoundCall::run(AtenTensorHandle first, AtenTensorHandle second) const {
  if (later != 2)
    refuseData("this call takes one operand");
  std::vector<AtenTensorHandle> others = tensors;
  others[0] = second;
  Call call = begin(first);
  call.others = others.data();
  call.shape = tail.data();
  call.rank = tail.size();
  return launch(found, call);
}

void BoundCall::fill() const {
  if (!into.get())
    refuseData("this call fills nothing");
  Call call = begin(tensors[0]);
  call.others = tensors.data() + 1;
  call.numOthers = tensors.size() - 1;
  call.into = into.get();
  launch(found, call);
}

void lacis::ops::bind(StableIValue *stack, uint64_t, uint64_t) {
  TextArgument key(stack[1]);
  auto call = std::make_shared<BoundCall>(key.get(), /*later=*/1);
  takeNumbers(stack[2], call->packedShape);
  auto dropped = torch::stable::detail::to<int64_t>(stack[3]);
  takeNumbers(stack[4], call->tail);
  std::vector<int64_t> fills;
  takeNumbers(stack[5], fills);
  call->take(stack[0]);
  for (int64_t number : fills)
    call->fills.push_back(BoundCalls::get().find(number));
  if (dropped < 0)
    refuseData("a bound call drops " + std::to_string(dropped) + " sizes; expected none or more");
  call->dropped = size_t(dropped);
  stack[0] = torch::stable::detail::from(BoundCalls::get().add(std::move(call)));
}

void lacis::ops::bindPair(StableIValue *stack, uint64_t, uint64_t) {
  TextArgument key(stack[1]);
  auto call = std::make_shared<BoundCall>(key.get(), /*later=*/2);
  takeNumbers(stack[2], call->packedShape);
  takeNumbers(stack[3], call->tail);
  call->take(stack[0]);
  stack[0] = torch::stable::detail::from(BoundCalls::get().add(std::move(call)));
}

void lacis::ops::bindFill(StableIValue *stack, uint64_t, uint64_t) {
  TextArgument key(stack[1]);
  auto call = std::make_shared<BoundCall>(key.get(), /*later=*/0);
  call->into = OwnedTensor(torch::stable::detail::to<AtenTensorHandle>(stack[2]));
  call->take(stack[0]);
  stack[0] = torch::stable::detail::from(BoundCalls::get().add(std::move(call)));
}

void lacis::ops::fill(StableIValue *stack, uint64_t, uint64_t) {
  BoundCalls::get().find(torch::stable::detail::to<int64_t>(stack[0]))->fill();
}

void lacis::ops::einsumBound(StableIValue *stack, uint64_t, uint64_t) {
  OwnedTensor operand(torch::stable::detail::to<AtenTensorHandle>(stack[0]));
  std::shared_ptr<const BoundCall> call = BoundCalls::get().find(torch::stable::detail::to<int64_t>(stack[1]));
  refuseGradMode("einsum.bound");
  stack[0] = torch::stable::detail::from(call->run(operand.get()).release());
}

void lacis::ops::einsumBoundPair(StableIValue *stack, uint64_t, uint64_t) {
  OwnedTensor first(torch::stable::detail::to<AtenTensorHandle>(stack[0]));
  OwnedTensor second(torch::stable::detail::to<AtenTensorHandle>(stack[1]));
  std::shared_ptr<const BoundCall> call = BoundCalls::get().find(torch::stable::detail::to<int64_t>(stack[2]));
  refuseGradMode("einsum.bound_pair");
  stack[0] = torch::stable::detail::from(call->run(first.get(), second.get()).release());
}

void lacis::ops::unbind(StableIValue *stack, uint64_t, uint64_t) {
  BoundCalls::get().remove(torch::stable::detail::to<int64_t>(stack[0]));
}
