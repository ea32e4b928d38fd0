// SPDX-License-Identifier: Apache-2.0
/// \file
/// Finds and verifies saved kernels.
#include "lacis/Runtime/KernelFile.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"

using namespace lacis;
using llvm::Expected;
using llvm::StringRef;

static constexpr StringRef magic("LACISK01", 8);
static constexpr size_t digestSize = 32;

Expected<std::string> runtime::readKernelFile(StringRef bytes, StringRef name) {
  StringRef rest = bytes;
  if (!rest.consume_front(magic) || rest.size() < digestSize)
    return llvm::createStringError(name + ": not a kernel file of this version");
  StringRef stored = rest.take_front(digestSize);
  StringRef payload = rest.drop_front(digestSize);
  std::array<uint8_t, 32> digest = llvm::SHA256::hash(llvm::arrayRefFromStringRef(payload));
  if (llvm::toStringRef(llvm::ArrayRef(digest)) != stored)
    return llvm::createStringError(name + ": damaged: the digest does not agree with the content");
  return payload.str();
}

Expected<std::string> runtime::findKernelFile(StringRef path, StringRef key) {
  llvm::SmallVector<StringRef> places;
  path.split(places, ':', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  std::string fileName = (key + ".lacis").str();
  for (StringRef place : places) {
    llvm::SmallString<256> file(place);
    if (llvm::sys::fs::is_directory(place))
      llvm::sys::path::append(file, fileName);
    else if (llvm::sys::path::filename(place) != fileName)
      continue;
    llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> buffer = llvm::MemoryBuffer::getFile(file);
    if (buffer)
      return readKernelFile((*buffer)->getBuffer(), file);
  }
  return llvm::createStringError("no kernel '" + key +
                                 "' is loaded: build the model first, or name the folder that "
                                 "lacis.save_kernels wrote in LACIS_KERNEL_PATH");
}
