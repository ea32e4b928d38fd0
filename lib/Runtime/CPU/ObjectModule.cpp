// SPDX-License-Identifier: Apache-2.0
/// \file
/// Links a CPU object into the process with JITLink and runs its functions over ranges of units.
#include "HostRelay.h"
#include "HostSymbols.h"
#include "lacis/Runtime/Module.h"
#include "lacis/Target/Artifact.h"
#include "llvm/BinaryFormat/Magic.h"
#include "llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/Core.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h"
#include "llvm/Object/Archive.h"
#include "llvm/Support/MemoryBuffer.h"
#include <mutex>

using namespace lacis;
using namespace lacis::runtime;
using llvm::Error;
using llvm::Expected;

namespace {

/// One linker session; every kernel gets a library of its own in it, so names never meet.
class HostLinker {
public:
  static Expected<HostLinker *> get();
  Expected<std::vector<HostFunction>> link(const Artifact &artifact);

private:
  explicit HostLinker(std::unique_ptr<llvm::orc::ExecutorProcessControl> control)
      : session(std::move(control)), layer(session, session.getExecutorProcessControl().getMemMgr()) {}
  static Expected<HostLinker *> create();

  Expected<std::vector<HostFunction>> linkLocked(const Artifact &artifact);
  Error add(llvm::orc::JITDylib &library, llvm::StringRef code);

  llvm::orc::ExecutionSession session;
  llvm::orc::ObjectLinkingLayer layer;
  std::mutex mutex; // one at a time, so that what the session reports belongs to the artifact at hand
  std::string reported;
  unsigned counter = 0;
};

class ObjectModule final : public Module {
public:
  explicit ObjectModule(std::vector<HostFunction> entries) : entries(std::move(entries)) {}

  Error run(size_t launch, const LaunchExtent &extent, ArgumentValues &values, void *,
            lacis_parallel_for parallelFor) const override {
    HostRelay relay(1, values);
    relay.add(entries[launch], extent);
    return relay.run(parallelFor);
  }

  Error runAll(llvm::ArrayRef<LaunchExtent> extents, ArgumentValues &values, void *,
               lacis_parallel_for parallelFor) const override {
    HostRelay relay(extents.size(), values);
    for (auto [entry, extent] : llvm::zip(entries, extents))
      if (!extent.empty())
        relay.add(entry, extent);
    return relay.run(parallelFor);
  }

  Error fill(uint64_t address, uint64_t word, void *) const override {
    *reinterpret_cast<uint64_t *>(address) = word;
    return Error::success();
  }
  Expected<uint64_t> fetch(uint64_t address, void *) const override { return *reinterpret_cast<uint64_t *>(address); }

private:
  std::vector<HostFunction> entries;
};

} // namespace

Expected<HostLinker *> HostLinker::create() {
  // In place: the linker starts no thread.
  auto control = llvm::orc::SelfExecutorProcessControl::Create(
      std::make_shared<llvm::orc::SymbolStringPool>(), std::make_unique<llvm::orc::InPlaceTaskDispatcher>());
  if (!control)
    return control.takeError();
  auto *linker = new HostLinker(std::move(*control));
  linker->session.setErrorReporter(
      [linker](Error error) { linker->reported += llvm::toString(std::move(error)) + "; "; });
  return linker;
}

Expected<HostLinker *> HostLinker::get() {
  static std::mutex mutex;
  static HostLinker *linker = nullptr; // never destroyed: its code may run until the process ends
  std::lock_guard<std::mutex> lock(mutex);
  if (linker)
    return linker;
  Expected<HostLinker *> created = create();
  if (!created)
    return created.takeError();
  return linker = *created;
}

Expected<std::vector<HostFunction>> HostLinker::link(const Artifact &artifact) {
  std::lock_guard<std::mutex> lock(mutex);
  reported.clear();
  Expected<std::vector<HostFunction>> entries = linkLocked(artifact);
  if (entries)
    return entries;
  return llvm::createStringError("compiled code cannot be linked: " + reported + llvm::toString(entries.takeError()));
}

/// An object, or an archive of objects.
Error HostLinker::add(llvm::orc::JITDylib &library, llvm::StringRef code) {
  if (llvm::identify_magic(code) != llvm::file_magic::archive)
    return layer.add(library, llvm::MemoryBuffer::getMemBufferCopy(code, "kernel"));
  auto archive = llvm::object::Archive::create(llvm::MemoryBufferRef(code, "kernel"));
  if (!archive)
    return archive.takeError();
  Error problem = Error::success();
  for (const llvm::object::Archive::Child &member : (*archive)->children(problem)) {
    Expected<llvm::StringRef> object = member.getBuffer();
    Error error = object ? add(library, *object) : object.takeError();
    if (error)
      return llvm::joinErrors(std::move(error), std::move(problem));
  }
  return problem;
}

Expected<std::vector<HostFunction>> HostLinker::linkLocked(const Artifact &artifact) {
  llvm::orc::JITDylib &library = session.createBareJITDylib("kernel" + std::to_string(counter++));
  llvm::orc::SymbolMap known;
  for (const HostSymbol &symbol : hostSymbols())
    known[session.intern(symbol.name)] = {llvm::orc::ExecutorAddr::fromPtr(symbol.address),
                                          llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  if (Error error = library.define(llvm::orc::absoluteSymbols(std::move(known))))
    return error;
  if (Error error = add(library, artifact.code))
    return error;
  std::vector<HostFunction> entries;
  for (const Artifact::Launch &launch : artifact.launches) {
    auto symbol = session.lookup({&library}, session.intern(launch.entry));
    if (!symbol)
      return symbol.takeError();
    entries.push_back(symbol->getAddress().toPtr<HostFunction>());
  }
  return entries;
}

static Expected<std::unique_ptr<Module>> loadObject(const Artifact &artifact, int32_t device) {
  if (device != LACIS_DEVICE_HOST)
    return llvm::createStringError("a kernel made for the CPU got tensors of device " + llvm::Twine(device));
  if (artifact.args.size() > maxHostArguments)
    return llvm::createStringError("a kernel with " + llvm::Twine(artifact.args.size()) +
                                   " arguments; the launcher passes at most " + llvm::Twine(maxHostArguments));
  Expected<HostLinker *> linker = HostLinker::get();
  if (!linker)
    return linker.takeError();
  Expected<std::vector<HostFunction>> entries = (*linker)->link(artifact);
  if (!entries)
    return entries.takeError();
  return std::make_unique<ObjectModule>(std::move(*entries));
}

static const ModuleLoaderRegistration registration("object", loadObject);
