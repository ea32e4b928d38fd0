// SPDX-License-Identifier: Apache-2.0
/// \file
/// MLIR contexts that this process has used: loading the dialects into a new one is an eighth of a short compilation.
#include "KeptContext.h"

#include "lacis/Dialect/Lacis/IR/Lacis.h"

#include <mutex>

using namespace lacis;

namespace {

struct Kept {
  static constexpr size_t most = 4;        // contexts, 3 MB each; more threads than that seldom compile at once
  static constexpr unsigned mostUses = 64; // a context never forgets an attribute: some 30 KB of each text
  std::mutex mutex;
  std::vector<KeptContext> contexts;
};

} // namespace

/// Never destroyed: other threads may still compile when the process ends.
static Kept &kept() {
  static Kept &contexts = *new Kept;
  return contexts;
}

KeptContext lacis::takeContext(const Target &target) {
  {
    std::lock_guard<std::mutex> lock(kept().mutex);
    auto &contexts = kept().contexts;
    auto found = llvm::find_if(contexts, [&](const KeptContext &entry) { return entry.target == target.getName(); });
    if (found != contexts.end()) {
      KeptContext taken = std::move(*found);
      contexts.erase(found);
      return taken;
    }
  }
  mlir::DialectRegistry registry;
  registerDialects(registry);
  target.registerDialects(registry);
  auto made = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  made->printOpOnDiagnostic(false);
  return {target.getName().str(), std::move(made)};
}

void lacis::keepContext(KeptContext used) {
  if (++used.uses == Kept::mostUses)
    return;
  KeptContext oldest; // destroyed behind the lock
  std::lock_guard<std::mutex> lock(kept().mutex);
  auto &contexts = kept().contexts;
  if (contexts.size() == Kept::most) {
    oldest = std::move(contexts.front());
    contexts.erase(contexts.begin());
  }
  contexts.push_back(std::move(used));
}
