// SPDX-License-Identifier: Apache-2.0
/// \file
/// Calls a compiled function whose number of arguments is known only at run time.
#ifndef LACIS_LIB_RUNTIME_CPU_HOSTCALL_H
#define LACIS_LIB_RUNTIME_CPU_HOSTCALL_H

#include "lacis/Runtime/LaunchPlan.h"

namespace lacis::runtime {

/// A kernel's C function; its arguments are pointers and 64-bit integers only, then `lo` and `hi`.
using HostFunction = void (*)();

/// The most arguments an artifact may list.
inline constexpr size_t maxHostArguments = 254;

/// One launch of one function: the same arguments for every piece of the range.
class HostRange {
public:
  HostRange(HostFunction function, const ArgumentValues &values);

  void call(int64_t begin, int64_t end) const;

private:
  HostFunction function;
  const ArgumentValues &values;
};

} // namespace lacis::runtime

#endif
