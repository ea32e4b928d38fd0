// SPDX-License-Identifier: Apache-2.0
/// \file
/// Loads, finds and launches kernels.
#include "lacis/Runtime/Kernel.h"
#include "lacis/Runtime/KernelFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

using namespace lacis;
using namespace lacis::runtime;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

Kernel::Kernel(Artifact artifact, LaunchPlan plan) : artifact(std::move(artifact)), launchPlan(std::move(plan)) {
  for (size_t i = 0; i < launchPlan.numOperands(); ++i) {
    operandRanks.push_back(launchPlan.operandRank(i));
    operandStrided.push_back(launchPlan.isStrided(i));
  }
  callSignature = {launchPlan.outputDtype(), launchPlan.outputRank(),  launchPlan.zerosOutput(),
                   operandRanks.data(),      operandRanks.size(), operandStrided.data()};
}

Expected<std::unique_ptr<Kernel>> Kernel::create(Artifact artifact) {
  Expected<LaunchPlan> plan = LaunchPlan::create(artifact);
  if (!plan)
    return plan.takeError();
  return std::unique_ptr<Kernel>(new Kernel(std::move(artifact), std::move(*plan)));
}

Expected<const Module *> Kernel::moduleOn(int32_t device) {
  size_t place = size_t(device) + 1; // the host is -1
  if (place < known.size())
    if (const Module *module = known[place].load(std::memory_order_acquire))
      return module;
  return loadOn(device);
}

Expected<const Module *> Kernel::loadOn(int32_t device) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = modules.find(device);
  if (found != modules.end())
    return found->second.get();
  Expected<std::unique_ptr<Module>> loaded = loadModule(artifact, device);
  if (!loaded)
    return loaded.takeError();
  const Module *module = modules.emplace(device, std::move(*loaded)).first->second.get();
  if (size_t place = size_t(device) + 1; place < known.size())
    known[place].store(module, std::memory_order_release);
  return module;
}

Error Kernel::load(int32_t device) { return moduleOn(device).takeError(); }

Error Kernel::placeWorkspaces(const Allocator &allocator, ArgumentValues &values) const {
  WorkspaceLayout layout = launchPlan.workspaceLayout(values);
  if (layout.bytes == 0)
    return Error::success();
  void *memory = allocator.allocate ? allocator.allocate(layout.bytes, allocator.context) : nullptr;
  if (!memory)
    return llvm::createStringError("no workspace of " + llvm::Twine(layout.bytes) + " bytes could be allocated");
  launchPlan.placeWorkspaces(memory, layout, values);
  return Error::success();
}

Error Kernel::launch(const lacis_launch_args &args, void *stream, lacis_parallel_for parallelFor,
                     const Allocator &allocator) {
  if (Error error = launchPlan.check(args))
    return error;
  ArgumentValues values;
  launchPlan.evaluate(args, values);
  if (Error error = launchPlan.checkValues(args, values))
    return error;
  if (Error error = placeWorkspaces(allocator, values))
    return error;
  Expected<const Module *> module = moduleOn(args.output->device);
  if (!module)
    return module.takeError();
  std::optional<uint64_t> fault = launchPlan.faultAddress(values);
  if (fault)
    if (Error error = (*module)->fill(*fault, LaunchPlan::noFault, stream))
      return error;
  auto maps = launchPlan.tensorMaps(args, values);
  llvm::SmallVector<LaunchExtent, 8> extents;
  int64_t steps = launchPlan.steps(args);
  for (size_t launch = 0; launch < launchPlan.numLaunches(); ++launch) {
    extents.push_back(launchPlan.extent(launch, steps, values));
    extents.back().tensorMaps = maps;
  }
  if (Error error = (*module)->runAll(extents, values, stream, parallelFor))
    return error;
  if (!fault)
    return Error::success();
  Expected<uint64_t> word = (*module)->fetch(*fault, stream);
  return word ? launchPlan.explainFault(*word, args, values) : word.takeError();
}

KernelRegistry &KernelRegistry::get() {
  static KernelRegistry *registry = new KernelRegistry; // outlives every static of the process
  return *registry;
}

Kernel *KernelRegistry::lookup(StringRef key) {
  std::shared_lock<std::shared_mutex> lock(mutex);
  auto found = kernels.find(key);
  return found == kernels.end() ? nullptr : found->second;
}

Expected<Kernel *> KernelRegistry::insert(StringRef key, StringRef bytes) {
  auto digest = llvm::SHA256::hash(llvm::arrayRefFromStringRef(bytes));
  {
    std::unique_lock<std::shared_mutex> lock(mutex);
    if (auto found = byDigest.find(digest); found != byDigest.end())
      return kernels.try_emplace(key, found->second.get()).first->second;
  }
  Expected<Artifact> artifact = Artifact::parse(bytes);
  if (!artifact)
    return artifact.takeError();
  Expected<std::unique_ptr<Kernel>> kernel = Kernel::create(std::move(*artifact));
  if (!kernel)
    return kernel.takeError();
  std::unique_lock<std::shared_mutex> lock(mutex);
  Kernel *only = byDigest.try_emplace(digest, std::move(*kernel)).first->second.get();
  return kernels.try_emplace(key, only).first->second;
}

Error KernelRegistry::load(StringRef key, StringRef bytes, int32_t device) {
  Kernel *known = lookup(key);
  Expected<Kernel *> kernel = known ? Expected<Kernel *>(known) : insert(key, bytes);
  if (!kernel)
    return kernel.takeError();
  return (*kernel)->load(device);
}

Expected<Kernel *> KernelRegistry::find(StringRef key) {
  if (Kernel *known = lookup(key))
    return known;
  std::string path;
  {
    std::shared_lock<std::shared_mutex> lock(mutex);
    path = searchPath;
  }
  Expected<std::string> artifact = findKernelFile(path, key);
  if (!artifact)
    return artifact.takeError();
  return insert(key, *artifact);
}

void KernelRegistry::setPath(StringRef path) {
  std::unique_lock<std::shared_mutex> lock(mutex);
  searchPath = path.str();
}
