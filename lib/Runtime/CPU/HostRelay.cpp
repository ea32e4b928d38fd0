// SPDX-License-Identifier: Apache-2.0
/// \file
/// One parallel loop for a whole kernel: entering one costs as much as the copies of a few tokens.
#include "HostRelay.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <thread>

using namespace lacis::runtime;

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
  leg.pieces = int64_t(llvm::divideCeil(uint64_t(leg.units), uint64_t(leg.piece)));
  threads = std::max(threads, leg.pieces);
}

/// Runs the pieces that nobody has taken, from the thread's own share on; answers how many.
int64_t HostRelay::runFree(Leg &leg, int64_t thread) const {
  HostRange range(leg.function, values);
  int64_t mine = 0, piece = thread * leg.pieces / threads;
  for (int64_t seen = 0; seen < leg.pieces; ++seen, piece = piece + 1 == leg.pieces ? 0 : piece + 1) {
    std::atomic<bool> &taken = leg.taken[piece];
    if (taken.load(std::memory_order_relaxed) || taken.exchange(true, std::memory_order_relaxed))
      continue;
    range.call(piece * leg.piece, std::min((piece + 1) * leg.piece, leg.units));
    ++mine;
  }
  return mine;
}

void HostRelay::work(int64_t thread) {
  for (size_t number = 0; number < count; ++number) {
    Leg &leg = legs[number];
    if (int64_t mine = runFree(leg, thread))
      leg.done.fetch_add(mine, std::memory_order_release);
    for (int looks = 0; leg.done.load(std::memory_order_acquire) < leg.pieces; ++looks)
      looks < patience ? breathe() : std::this_thread::yield();
  }
}

llvm::Error HostRelay::run(lacis_parallel_for parallelFor) {
  if (!parallelFor || threads == 1) {
    work(0);
    return llvm::Error::success();
  }
  auto body = [](int64_t begin, int64_t, void *context) { static_cast<HostRelay *>(context)->work(begin); };
  if (parallelFor(0, threads, 1, body, this) != 0)
    return llvm::createStringError("the parallel loop over the units of the kernel failed");
  return llvm::Error::success();
}
