// SPDX-License-Identifier: Apache-2.0
/// \file
/// A kernel that can be launched on every device it was loaded on, and the registry that finds it by key.
#ifndef LACIS_RUNTIME_KERNEL_H
#define LACIS_RUNTIME_KERNEL_H

#include "lacis/Runtime/Module.h"
#include "lacis/Target/Artifact.h"
#include "llvm/ADT/StringMap.h"
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace lacis::runtime {

/// Who lends memory for the time of a launch.
struct Allocator {
  lacis_allocate allocate = nullptr;
  void *context = nullptr;
};

class Kernel {
public:
  static llvm::Expected<std::unique_ptr<Kernel>> create(Artifact artifact);

  const lacis_signature &signature() const { return callSignature; }

  /// Loads the code on `device` unless it is there.
  llvm::Error load(int32_t device);

  llvm::Error launch(const lacis_launch_args &args, void *stream, lacis_parallel_for parallelFor,
                     const Allocator &allocator);

private:
  Kernel(Artifact artifact, LaunchPlan plan);
  llvm::Error placeWorkspaces(const Allocator &allocator, ArgumentValues &values) const;
  llvm::Expected<const Module *> moduleOn(int32_t device);
  llvm::Expected<const Module *> loadOn(int32_t device);

  Artifact artifact;
  LaunchPlan launchPlan;
  std::vector<int32_t> operandRanks, operandStrided;
  lacis_signature callSignature = {};
  std::mutex mutex;
  std::map<int32_t, std::unique_ptr<Module>> modules;
  /// The same for the host and the first devices, for launches, which wait for nobody.
  std::array<std::atomic<const Module *>, 17> known = {};
};

/// All kernels of the process. Kernels are never removed: a launch may be under way, a graph may hold the code.
class KernelRegistry {
public:
  static KernelRegistry &get();

  llvm::Error load(llvm::StringRef key, llvm::StringRef artifact, int32_t device);
  llvm::Expected<Kernel *> find(llvm::StringRef key);
  void setPath(llvm::StringRef path);

private:
  Kernel *lookup(llvm::StringRef key);
  llvm::Expected<Kernel *> insert(llvm::StringRef key, llvm::StringRef artifact);

  std::shared_mutex mutex;
  llvm::StringMap<Kernel *> kernels;
  /// By the digest of the artifact: a kernel with several keys is loaded once.
  std::map<std::array<uint8_t, 32>, std::unique_ptr<Kernel>> byDigest;
  std::string searchPath;
};

} // namespace lacis::runtime

#endif
