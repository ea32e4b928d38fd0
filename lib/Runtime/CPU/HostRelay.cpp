// SPDX-License-Identifier: Apache-2.0
/// \file
/// One parallel loop for a whole kernel: entering one costs as much as the copies of a few tokens.
#include "HostRelay.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <chrono>
#include <thread>

using namespace lacis::runtime;

/// Looks at what others have done before a thread lets one of them have its processor.
static constexpr int patience = 2000;
/// A call that takes less than this could as well run twice as many pieces.
static constexpr std::chrono::nanoseconds shortCall(1000);
/// A thread takes this part of what is left of its share, at most.
static constexpr int64_t sharePart = 2;

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

bool HostRelay::Leg::take(int64_t piece) {
  std::atomic<bool> &mark = taken[piece * (marks / pieces)];
  return !mark.load(std::memory_order_relaxed) && !mark.exchange(true, std::memory_order_relaxed);
}

/// Runs the pieces that nobody has taken, from the own share on, which goes from `first` to `end` of `threads`; answers
/// how many. Of its own share a thread takes twice as many after a short call, for a call costs as much as a small
/// piece, and rows may be uneven; of other shares it takes one piece at a time, and all at once where it is alone.
int64_t HostRelay::runFree(Leg &leg, int64_t first, int64_t end) const {
  using Clock = std::chrono::steady_clock;
  HostRange range(leg.function, values);
  bool alone = first == 0 && end == threads;
  int64_t start = first * leg.pieces / threads, own = end * leg.pieces / threads - start, mine = 0, most = 1;
  Clock::time_point before = Clock::now();
  for (int64_t seen = 0, count; seen < leg.pieces; seen += std::max<int64_t>(count, 1)) {
    int64_t piece = (start + seen) % leg.pieces;
    int64_t allowed = alone ? own : std::clamp<int64_t>((own - seen) / sharePart, 1, most);
    for (count = 0; count < allowed && leg.take(piece + count);)
      ++count;
    if (count == 0)
      continue;
    range.call(piece * leg.piece, std::min((piece + count) * leg.piece, leg.units));
    Clock::time_point after = Clock::now();
    most = after - before < shortCall ? 2 * most : std::max<int64_t>(most / 2, 1);
    before = after;
    mine += count;
  }
  return mine;
}

void HostRelay::work(int64_t first, int64_t end) {
  for (size_t number = 0; number < count; ++number) {
    Leg &leg = legs[number];
    if (int64_t mine = runFree(leg, first, end))
      leg.done.fetch_add(mine, std::memory_order_release);
    for (int looks = 0; leg.done.load(std::memory_order_acquire) < leg.pieces; ++looks)
      looks < patience ? breathe() : std::this_thread::yield();
  }
}

llvm::Error HostRelay::run(lacis_parallel_for parallelFor) {
  if (!parallelFor || threads == 1) {
    work(0, threads);
    return llvm::Error::success();
  }
  auto body = [](int64_t first, int64_t end, void *context) { static_cast<HostRelay *>(context)->work(first, end); };
  if (parallelFor(0, threads, 1, body, this) != 0)
    return llvm::createStringError("the parallel loop over the units of the kernel failed");
  return llvm::Error::success();
}
