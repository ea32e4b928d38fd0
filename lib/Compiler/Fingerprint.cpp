// SPDX-License-Identifier: Apache-2.0
/// \file
/// Identifies this very build of the core: the linker's build id, or else a digest of the file.
#include "lacis/Compiler/Compiler.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/MemoryBuffer.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

using llvm::StringRef;

namespace {
struct Search {
  uintptr_t address;
  std::string id;
};
} // namespace

/// Takes the GNU build id out of a segment of notes.
static std::string readBuildId(const char *notes, size_t size) {
  auto round = [](size_t length) { return (length + 3) & ~size_t(3); };
  for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= size;) {
    const auto *note = reinterpret_cast<const ElfW(Nhdr) *>(notes + at);
    const char *name = notes + at + sizeof(*note);
    const char *content = name + round(note->n_namesz);
    if (note->n_type == NT_GNU_BUILD_ID && StringRef(name, note->n_namesz) == StringRef("GNU", 4))
      return llvm::toHex(StringRef(content, note->n_descsz), /*LowerCase=*/true);
    at += sizeof(*note) + round(note->n_namesz) + round(note->n_descsz);
  }
  return "";
}

static int visitObject(dl_phdr_info *info, size_t, void *data) {
  auto *search = static_cast<Search *>(data);
  bool contains = false;
  for (const auto &header : llvm::ArrayRef(info->dlpi_phdr, info->dlpi_phnum))
    contains |= header.p_type == PT_LOAD && search->address - info->dlpi_addr - header.p_vaddr < header.p_memsz;
  if (!contains)
    return 0;
  for (const auto &header : llvm::ArrayRef(info->dlpi_phdr, info->dlpi_phnum))
    if (header.p_type == PT_NOTE && search->id.empty())
      search->id = readBuildId(reinterpret_cast<const char *>(info->dlpi_addr + header.p_vaddr), header.p_memsz);
  return 1;
}

static std::string identify() {
  Search search{reinterpret_cast<uintptr_t>(&identify), ""};
  dl_iterate_phdr(visitObject, &search);
  if (!search.id.empty())
    return search.id;
  Dl_info info;
  if (dladdr(reinterpret_cast<void *>(&identify), &info) && info.dli_fname)
    if (auto file = llvm::MemoryBuffer::getFile(info.dli_fname))
      return lacis::sha256Hex((*file)->getBuffer());
  return "unknown";
}

const std::string &lacis::compilerFingerprint() {
  static const std::string fingerprint = "lacis-" + identify() + "-llvm-" LLVM_VERSION_STRING;
  return fingerprint;
}
