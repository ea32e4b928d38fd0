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

/// Threads take pieces of a launch as they come, and begin the next one when all pieces are done.
///
/// A thread waits for pieces that others already run, never for one to come, so that any number of threads will do:
/// one that comes late finds nothing left.
class HostRelay {
public:
  HostRelay(size_t launches, const ArgumentValues &values) : legs(new Leg[launches]), values(values) {}

  void add(HostFunction function, const LaunchExtent &extent);
  llvm::Error run(lacis_parallel_for parallelFor);

private:
  struct Leg {
    HostFunction function = nullptr;
    int64_t units = 0, piece = 1;
    alignas(64) std::atomic<int64_t> taken{0};
    alignas(64) std::atomic<int64_t> done{0};
  };

  void work();

  std::unique_ptr<Leg[]> legs;
  size_t count = 0;
  int64_t threads = 1; // that are of use
  const ArgumentValues &values;
};

} // namespace lacis::runtime

#endif
