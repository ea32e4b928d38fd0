// SPDX-License-Identifier: Apache-2.0
/// \file
/// The table of module loaders, one per kind of code.
#include "lacis/Runtime/Module.h"
#include "lacis/Target/Artifact.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace lacis;
using namespace lacis::runtime;

Module::~Module() = default;

llvm::Error Module::runAll(llvm::ArrayRef<LaunchExtent> extents, ArgumentValues &values, void *stream,
                           lacis_parallel_for parallelFor) const {
  for (auto [launch, extent] : llvm::enumerate(extents))
    if (!extent.empty())
      if (llvm::Error error = run(launch, extent, values, stream, parallelFor))
        return error;
  return llvm::Error::success();
}

static llvm::StringMap<ModuleLoader> &loaders() {
  static llvm::StringMap<ModuleLoader> table;
  return table;
}

ModuleLoaderRegistration::ModuleLoaderRegistration(llvm::StringRef kind, ModuleLoader loader) {
  loaders()[kind] = std::move(loader);
}

llvm::Expected<std::unique_ptr<Module>> lacis::runtime::loadModule(const Artifact &artifact, int32_t device) {
  auto loader = loaders().find(artifact.kind);
  if (loader == loaders().end())
    return llvm::createStringError("code of kind '" + artifact.kind + "' cannot be loaded by this build");
  return loader->second(artifact, device);
}
