// SPDX-License-Identifier: Apache-2.0
/// \file
/// Kernels saved on disk: one artifact a file, named by the key of a call and sealed with it.
#ifndef LACIS_RUNTIME_KERNELFILE_H
#define LACIS_RUNTIME_KERNELFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace lacis::runtime {

/// The artifact in `<key>.lacis`, looked for among the folders and files of `path` (separated by ':').
llvm::Expected<std::string> findKernelFile(llvm::StringRef path, llvm::StringRef key);

} // namespace lacis::runtime

#endif
