// SPDX-License-Identifier: Apache-2.0
/// \file
/// The launches of a kernel one after another, in one parallel loop of the host.
#ifndef LACIS_LIB_RUNTIME_CPU_HOSTRELAY_H
#define LACIS_LIB_RUNTIME_CPU_HOSTRELAY_H

#include "HostCall.h"
#include "llvm/Support/Error.h"
#include <atomic>
#include <memory>

namespace lacis::runtime {

/// Each thread begins at its own share of the pieces of a launch, several at once where they are small; it goes on to
/// what others have left, and begins the next launch when all pieces are done. Shares of all launches, and of the next
/// call, begin at the same place, so that a thread finds in its caches what it wrote and read before.
///
/// A thread waits for pieces that others already run, never for one to come, so that any number of threads will do:
/// one that comes late finds nothing left.
class HostRelay {
public:
  HostRelay(size_t launches, const ArgumentValues &values) : legs(new Leg[launches]), values(values) {}

  void add(HostFunction function, const LaunchExtent &extent);
  llvm::Error run(lacis_parallel_for parallelFor);

private:
  /// Pieces of a launch at most: enough for any number of threads to end together.
  static constexpr int64_t mostPieces = 256;
  /// Marks of one launch, among which its pieces lie far apart: shares have cache lines of their own.
  static constexpr int64_t marks = 1024;

  struct Leg {
    HostFunction function = nullptr;
    int64_t units = 0, piece = 1, pieces = 0;
    alignas(64) std::atomic<bool> taken[marks] = {};
    alignas(64) std::atomic<int64_t> done{0};

    bool take(int64_t piece);
  };

  void work(int64_t first, int64_t end);
  int64_t runFree(Leg &leg, int64_t first, int64_t end) const;

  std::unique_ptr<Leg[]> legs;
  size_t count = 0;
  int64_t threads = 1; // that are of use
  const ArgumentValues &values;
};

} // namespace lacis::runtime

#endif
