// SPDX-License-Identifier: Apache-2.0
/// \file
/// Finds saved kernels. What is found is still unchecked bytes: parsing the artifact verifies its digest.
#include "lacis/Runtime/KernelFile.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <algorithm>

using llvm::Expected;
using llvm::StringRef;

/// A key is 64 hexadecimal digits; anything else names no file.
static bool isKey(StringRef key) {
  return key.size() == 64 && std::all_of(key.begin(), key.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

Expected<std::string> lacis::runtime::findKernelFile(StringRef path, StringRef key) {
  llvm::SmallVector<StringRef> places;
  if (isKey(key))
    path.split(places, ':', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  std::string fileName = (key + ".lacis").str();
  for (StringRef place : places) {
    llvm::SmallString<256> file(place);
    if (llvm::sys::fs::is_directory(place))
      llvm::sys::path::append(file, fileName);
    else if (llvm::sys::path::filename(place) != fileName)
      continue;
    if (auto buffer = llvm::MemoryBuffer::getFile(file))
      return (*buffer)->getBuffer().str();
  }
  return llvm::createStringError("no kernel '" + key +
                                 "' is loaded: build the model first, or name the folder that "
                                 "lacis.save_kernels wrote in LACIS_KERNEL_PATH");
}
