// SPDX-License-Identifier: Apache-2.0
/// \file
/// The functions that compiled CPU code may call; it can reach nothing else in the process.
#ifndef LACIS_LIB_RUNTIME_CPU_HOSTSYMBOLS_H
#define LACIS_LIB_RUNTIME_CPU_HOSTSYMBOLS_H

#include "llvm/ADT/ArrayRef.h"

namespace lacis::runtime {

struct HostSymbol {
  const char *name;
  void *address;
};

llvm::ArrayRef<HostSymbol> hostSymbols();

} // namespace lacis::runtime

#endif
