// SPDX-License-Identifier: Apache-2.0
/// \file
/// The backends that exist, by name.
#include "lacis/Target/Target.h"

#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace lacis;
using llvm::StringRef;

static std::map<std::string, TargetRegistration::Create> &registry() {
  static std::map<std::string, TargetRegistration::Create> map;
  return map;
}

Target::~Target() = default;

TargetRegistration::TargetRegistration(StringRef family, Create create) {
  registry().emplace(family.str(), std::move(create));
}

std::string Target::families() {
  return llvm::join(llvm::map_range(registry(), [](const auto &entry) { return entry.first; }), ",");
}

llvm::Expected<std::unique_ptr<Target>> Target::create(StringRef name, const CodeOptions &options) {
  auto [family, arch] = name.split(':');
  auto backend = registry().find(family.str());
  if (backend == registry().end())
    return llvm::createStringError("no target '" + name + "'; targets here are '" + families() + "'");
  return backend->second(name, arch, options);
}
