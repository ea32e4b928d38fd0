// SPDX-License-Identifier: Apache-2.0
/// \file
/// The file of one saved kernel: a magic word, the SHA-256 of what follows, the artifact.
#ifndef LACIS_RUNTIME_KERNELFILE_H
#define LACIS_RUNTIME_KERNELFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace lacis::runtime {

/// The artifact inside the bytes of a kernel file; an error when the digest does not agree.
llvm::Expected<std::string> readKernelFile(llvm::StringRef bytes, llvm::StringRef name);

/// Looks for `<key>.lacis` among the folders and files of `path` (separated by ':').
llvm::Expected<std::string> findKernelFile(llvm::StringRef path, llvm::StringRef key);

} // namespace lacis::runtime

#endif
