// SPDX-License-Identifier: Apache-2.0
/// \file
/// Code of one artifact that is ready to run on one device, and the table of those who can make it ready.
#ifndef LACIS_RUNTIME_MODULE_H
#define LACIS_RUNTIME_MODULE_H

#include "lacis/Runtime/LaunchPlan.h"
#include <functional>
#include <memory>

namespace lacis::runtime {

class Module {
public:
  virtual ~Module();

  /// Starts launch number `launch` with the values of all arguments; `values` may be extended by the callee.
  virtual llvm::Error run(size_t launch, const LaunchExtent &extent, ArgumentValues &values, void *stream,
                          lacis_parallel_for parallelFor) const = 0;

  /// Starts the launches that have units, in their order; each sees what those before it have written.
  virtual llvm::Error runAll(llvm::ArrayRef<LaunchExtent> extents, ArgumentValues &values, void *stream,
                             lacis_parallel_for parallelFor) const;

  /// Writes a word of the device's memory, in the order of `stream`, if what it will hold can be fetched there.
  virtual llvm::Error fill(uint64_t address, uint64_t word, void *stream) const = 0;
  /// Reads a word of the device's memory, once all before it on `stream` is done.
  virtual llvm::Expected<uint64_t> fetch(uint64_t address, void *stream) const = 0;
};

using ModuleLoader =
    std::function<llvm::Expected<std::unique_ptr<Module>>(const Artifact &artifact, int32_t device)>;

/// Declares who loads code of one kind ("object", "ptx", "cubin"); one static object per kind.
struct ModuleLoaderRegistration {
  ModuleLoaderRegistration(llvm::StringRef kind, ModuleLoader loader);
};

/// Loads the artifact's code on `device` through the loader of its kind.
llvm::Expected<std::unique_ptr<Module>> loadModule(const Artifact &artifact, int32_t device);

} // namespace lacis::runtime

#endif
