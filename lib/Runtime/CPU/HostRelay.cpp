// SPDX-License-Identifier: Apache-2.0
/// \file
/// One parallel loop for a whole kernel: entering one costs as much as the copies of a few tokens.
#include "HostRelay.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <thread>

using namespace lacis::runtime;

/// Pieces of a launch at most: enough for any number of threads to end together.
static constexpr int64_t mostPieces = 256;
/// Looks at what others have done before a thread lets one of them have its processor.
static constexpr int patience = 2000;

static void breathe() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void HostRelay::add(HostFunction function, const LaunchExtent &extent) {
  Leg &leg = legs[count++];
  leg.function = function;
  leg.units = extent.units;
  leg.piece = std::max(extent.grain, int64_t(llvm::divideCeil(uint64_t(extent.units), uint64_t(mostPieces))));
  threads = std::max(threads, int64_t(llvm::divideCeil(uint64_t(leg.units), uint64_t(leg.piece))));
}

void HostRelay::work() {
  for (size_t number = 0; number < count; ++number) {
    Leg &leg = legs[number];
    HostRange range(leg.function, values);
    for (;;) {
      int64_t begin = leg.taken.fetch_add(leg.piece, std::memory_order_relaxed);
      if (begin >= leg.units)
        break;
      int64_t end = std::min(begin + leg.piece, leg.units);
      range.call(begin, end);
      leg.done.fetch_add(end - begin, std::memory_order_release);
    }
    for (int looks = 0; leg.done.load(std::memory_order_acquire) < leg.units; ++looks)
      looks < patience ? breathe() : std::this_thread::yield();
  }
}

llvm::Error HostRelay::run(lacis_parallel_for parallelFor) {
  if (!parallelFor || threads == 1) {
    work();
    return llvm::Error::success();
  }
  auto body = [](int64_t, int64_t, void *context) { static_cast<HostRelay *>(context)->work(); };
  if (parallelFor(0, threads, 1, body, this) != 0)
    return llvm::createStringError("the parallel loop over the units of the kernel failed");
  return llvm::Error::success();
}
