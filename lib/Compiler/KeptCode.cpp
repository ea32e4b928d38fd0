// SPDX-License-Identifier: Apache-2.0
/// \file
/// Code of functions that this process has made: a kernel with one step changed makes only those that the step reaches.
#include "KeptCode.h"

#include "llvm/ADT/StringMap.h"

#include <mutex>

using namespace lacis;

namespace {

struct KeptCode {
  static constexpr size_t most = 1024; // functions; some 10 KB each with their texts, on tensor cores up to 100 KB
  std::mutex mutex;
  llvm::StringMap<Code> codes;
};

} // namespace

static KeptCode &kept() {
  static KeptCode code;
  return code;
}

std::string lacis::keyOfCode(mlir::ModuleOp piece, llvm::StringRef target, const CodeOptions &options) {
  std::string key;
  llvm::raw_string_ostream stream(key);
  for (const std::string &word : {target.str(), std::to_string(options.optLevel), options.cpu, options.features})
    stream << word << '\0';
  piece->print(stream);
  return key;
}

std::optional<Code> lacis::findCode(const std::string &key) {
  std::lock_guard<std::mutex> lock(kept().mutex);
  auto found = kept().codes.find(key);
  return found == kept().codes.end() ? std::nullopt : std::optional(found->second);
}

void lacis::keepCode(const std::string &key, const Code &code) {
  std::lock_guard<std::mutex> lock(kept().mutex);
  if (kept().codes.size() == KeptCode::most)
    kept().codes.clear();
  kept().codes[key] = code;
}
