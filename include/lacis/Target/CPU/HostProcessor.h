// SPDX-License-Identifier: Apache-2.0
/// \file
/// The processor that runs this process, in LLVM's words.
#ifndef LACIS_TARGET_CPU_HOSTPROCESSOR_H
#define LACIS_TARGET_CPU_HOSTPROCESSOR_H

#include <string>

namespace lacis {

/// znver4, sapphirerapids, …
const std::string &hostName();

/// "+avx2,-avx512f,…", sorted.
const std::string &hostFeatures();

} // namespace lacis

#endif // LACIS_TARGET_CPU_HOSTPROCESSOR_H
