// SPDX-License-Identifier: Apache-2.0
/// \file
/// Runs NVIDIA's assembler, a program of its own.
#ifndef LACIS_LIB_TARGET_CUDA_PTXAS_H
#define LACIS_LIB_TARGET_CUDA_PTXAS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace lacis {

struct PtxasRequest {
  std::string program;
  std::string chip;
  std::string words; // further ones for its command line
  unsigned optLevel = 3;
  bool check = false; // refuse what `findPtxasProblem` finds
};

struct PtxasResult {
  std::string cubin;
  std::string log; // registers, memory, warnings
};

/// The cubin of PTX text; where there is none, what ptxas says is in the error.
llvm::Expected<PtxasResult> assemblePtx(llvm::StringRef ptx, const PtxasRequest &request);

/// The first line of a log that tells of serialised tensor-core code (C75xx) or spilled registers; else empty.
std::string findPtxasProblem(llvm::StringRef log);

} // namespace lacis

#endif // LACIS_LIB_TARGET_CUDA_PTXAS_H
