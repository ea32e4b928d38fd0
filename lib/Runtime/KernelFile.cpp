// SPDX-License-Identifier: Apache-2.0
/// \file
/// Finds saved kernels, and refuses files that another user could have written and those of another kernel.
#include "lacis/Runtime/KernelFile.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include <algorithm>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

static constexpr StringRef magic("LACISK01", 8); // python/lacis/runtime/kernels.py writes it
static constexpr size_t digestSize = 32;

/// A key is 64 hexadecimal digits; anything else names no file.
static bool isKey(StringRef key) {
  return key.size() == 64 && std::all_of(key.begin(), key.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

static Error refuse(StringRef path, const llvm::Twine &why) {
  return llvm::createStringError("'" + path + "' " + why);
}

/// Code runs as this user, so only this user and root may have put it there.
static bool isTrusted(uid_t owner) { return owner == geteuid() || owner == 0; }

static Error checkOwner(StringRef path, const struct stat &status) {
  if (!isTrusted(status.st_uid))
    return refuse(path, "belongs to another user; kernels are loaded from files of your own and of root");
  if (status.st_mode & (S_IWGRP | S_IWOTH))
    return refuse(path, "can be written by other users; take that away (chmod go-w), or save the kernels elsewhere");
  return Error::success();
}

/// A link is followed if the user or root made it.
static Error checkLink(const std::string &path) {
  struct stat status;
  if (lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode) && !isTrusted(status.st_uid))
    return refuse(path, "is a link that another user made");
  return Error::success();
}

static Error checkFolder(const std::string &folder) {
  if (Error error = checkLink(folder))
    return error;
  struct stat status;
  return stat(folder.c_str(), &status) == 0 ? checkOwner(folder, status) : Error::success();
}

/// The bytes of a file that may be trusted; none where there is no file.
static Expected<std::optional<std::string>> read(const std::string &path) {
  if (Error error = checkLink(path))
    return error;
  int handle = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); // a pipe must not block
  if (handle < 0 && errno == ENOENT)
    return std::nullopt;
  if (handle < 0)
    return refuse(path, "cannot be read: " + llvm::StringRef(strerror(errno)));
  llvm::scope_exit close([&] { ::close(handle); });
  struct stat status;
  if (fstat(handle, &status) != 0 || !S_ISREG(status.st_mode))
    return refuse(path, "is no regular file");
  if (Error error = checkOwner(path, status))
    return error;
  auto buffer = llvm::MemoryBuffer::getOpenFile(handle, path, status.st_size, /*RequiresNullTerminator=*/false,
                                                /*IsVolatile=*/true);
  if (!buffer)
    return refuse(path, "cannot be read: " + llvm::Twine(buffer.getError().message()));
  return (*buffer)->getBuffer().str();
}

/// The artifact in a saved file, whose digest is that of the key and the artifact.
static Expected<std::string> unseal(StringRef path, StringRef key, StringRef bytes) {
  if (!bytes.consume_front(magic) || bytes.size() <= digestSize)
    return refuse(path, "is no kernel that this version saved; save it again with lacis.save_kernels");
  llvm::SHA256 hash;
  hash.update(key);
  StringRef digest = bytes.take_front(digestSize), artifact = bytes.drop_front(digestSize);
  hash.update(artifact);
  auto expected = hash.final();
  if (digest != llvm::toStringRef(expected))
    return refuse(path, "is damaged, or was saved under another name; save it again with lacis.save_kernels");
  return artifact.str();
}

Expected<std::string> lacis::runtime::findKernelFile(StringRef path, StringRef key) {
  llvm::SmallVector<StringRef> places;
  if (isKey(key))
    path.split(places, ':', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  std::string fileName = (key + ".lacis").str();
  for (StringRef place : places) {
    llvm::SmallString<256> file(place), folder(place);
    if (llvm::sys::fs::is_directory(place))
      llvm::sys::path::append(file, fileName);
    else if (llvm::sys::path::filename(place) == fileName)
      llvm::sys::path::remove_filename(folder);
    else
      continue;
    Expected<std::optional<std::string>> bytes = read(file.str().str());
    if (!bytes)
      return bytes.takeError();
    if (!*bytes)
      continue;
    if (Error error = checkFolder(folder.empty() ? "." : folder.str().str()))
      return error;
    return unseal(file, key, **bytes);
  }
  return llvm::createStringError("no kernel '" + key +
                                 "' is loaded: build the model first, or name the folder that "
                                 "lacis.save_kernels wrote in LACIS_KERNEL_PATH");
}
