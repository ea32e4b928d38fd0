// SPDX-License-Identifier: Apache-2.0
/// \file
/// Loads PTX or a cubin through the CUDA driver and launches its kernels on the caller's stream.
#include "Driver.h"
#include "TensorMaps.h"
#include "lacis/Runtime/Module.h"
#include "lacis/Target/Artifact.h"
#include <array>
#include <limits>

using namespace lacis;
using namespace lacis::runtime;
using namespace lacis::runtime::cuda;
using llvm::Error;
using llvm::Expected;
using llvm::Twine;

namespace {

struct Entry {
  Function function = nullptr;
  std::array<unsigned, 3> block = {1, 1, 1};
  unsigned shared = 0;
  bool waits = false;
};

class DriverModule final : public runtime::Module {
public:
  static Expected<std::unique_ptr<runtime::Module>> load(const Artifact &artifact, int32_t device);

  Error run(size_t launch, const LaunchExtent &extent, ArgumentValues &values, void *stream,
            lacis_parallel_for) const override;
  Error fill(uint64_t address, uint64_t word, void *stream) const override;
  Expected<uint64_t> fetch(uint64_t address, void *stream) const override;

private:
  DriverModule(const Driver &driver, Context context, int32_t device)
      : driver(driver), context(context), device(device) {}
  Error loadCode(const Artifact &artifact);
  Error addEntry(const Artifact::Launch &launch, int sharedLimit);
  std::string mismatch(const Artifact &artifact) const;

  const Driver &driver;
  Context context;
  int32_t device;
  ModuleHandle module = nullptr;
  std::vector<Entry> entries;
};

} // namespace

/// What the compiled architecture and the device's own have to do with a failure to load.
std::string DriverModule::mismatch(const Artifact &artifact) const {
  int major = 0, minor = 0;
  driver.deviceGetAttribute(&major, CapabilityMajor, device);
  driver.deviceGetAttribute(&minor, CapabilityMinor, device);
  return "kernel for " + artifact.target + " on device " + std::to_string(device) + ", which is sm_" +
         std::to_string(major) + std::to_string(minor);
}

Error DriverModule::loadCode(const Artifact &artifact) {
  std::array<char, 8192> log = {};
  int options[] = {ErrorLogBuffer, ErrorLogSize};
  void *optionValues[] = {log.data(), reinterpret_cast<void *>(log.size() - 1)};
  // PTX must end in a zero; std::string ends in one, and a cubin carries its own length.
  Result result = driver.moduleLoad(&module, artifact.code.c_str(), 2, options, optionValues);
  if (result == 0)
    return Error::success();
  std::string text = log[0] ? std::string("\n") + log.data() : std::string();
  return driver.check(result, mismatch(artifact) + text);
}

Error DriverModule::addEntry(const Artifact::Launch &launch, int sharedLimit) {
  constexpr int64_t sharedWithoutOptin = 48 * 1024;
  Entry entry;
  std::string name = launch.entry;
  if (Error error = driver.check(driver.moduleGetFunction(&entry.function, module, name.c_str()), name))
    return error;
  for (size_t axis = 0; axis < launch.block.size() && axis < 3; ++axis)
    entry.block[axis] = unsigned(launch.block[axis]);
  entry.shared = unsigned(launch.shared);
  entry.waits = launch.waits && driver.startsEarly;
  if (launch.shared > sharedLimit)
    return llvm::createStringError(name + ": needs " + Twine(launch.shared) + " bytes of shared memory; device " +
                                   Twine(device) + " has " + Twine(sharedLimit));
  if (launch.shared > sharedWithoutOptin)
    if (Error error = driver.check(driver.functionSetAttribute(entry.function, MaxDynamicShared, int(launch.shared)),
                                   name + ": shared memory"))
      return error;
  // A function that is loaded lazily would be loaded inside a captured graph, which is not allowed.
  if (driver.functionLoad)
    if (Error error = driver.check(driver.functionLoad(entry.function), name + ": load"))
      return error;
  entries.push_back(entry);
  return Error::success();
}

Expected<std::unique_ptr<runtime::Module>> DriverModule::load(const Artifact &artifact, int32_t ordinal) {
  if (ordinal == LACIS_DEVICE_HOST)
    return llvm::createStringError("a kernel made for " + artifact.target + " got tensors of the CPU");
  Expected<const Driver *> driver = Driver::get();
  if (!driver)
    return driver.takeError();
  Device device = 0;
  Context context = nullptr;
  if (Error error = (*driver)->check((*driver)->deviceGet(&device, ordinal), "device " + Twine(ordinal)))
    return error;
  if (Error error = (*driver)->check((*driver)->primaryRetain(&context, device), "context of device " + Twine(ordinal)))
    return error;
  ContextScope scope(**driver, context);
  if (Error error = (*driver)->check(scope.result(), "context of device " + Twine(ordinal)))
    return error;
  std::unique_ptr<DriverModule> result(new DriverModule(**driver, context, device));
  if (Error error = result->loadCode(artifact))
    return error;
  int sharedLimit = 0;
  (*driver)->deviceGetAttribute(&sharedLimit, MaxSharedOptin, device);
  for (const Artifact::Launch &launch : artifact.launches)
    if (Error error = result->addEntry(launch, sharedLimit))
      return error;
  return result;
}

Error DriverModule::run(size_t launch, const LaunchExtent &extent, ArgumentValues &values, void *stream,
                        lacis_parallel_for) const {
  constexpr int64_t limits[] = {std::numeric_limits<int32_t>::max(), 65535, 65535};
  const Entry &entry = entries[launch];
  for (int axis = 0; axis < 3; ++axis)
    if (extent.grid[axis] > limits[axis])
      return llvm::make_error<DataRefusal>("a grid of " + Twine(extent.grid[0]) + " x " + Twine(extent.grid[1]) +
                                           " x " + Twine(extent.grid[2]) + " blocks is more than the device takes");
  ContextScope scope(driver, context);
  if (Error error = driver.check(scope.result(), "context of device " + Twine(device)))
    return error;
  llvm::SmallVector<void *, 48> pointers;
  for (uint64_t &value : values)
    pointers.push_back(&value);
  llvm::SmallVector<TensorMapBytes, 4> maps(extent.tensorMaps.size());
  for (size_t n = 0; n < maps.size(); ++n) {
    if (Error error = encodeTensorMap(driver, extent.tensorMaps[n], maps[n]))
      return error;
    pointers[extent.tensorMaps[n].argument] = &maps[n];
  }
  static constexpr LaunchAttribute early = {LaunchAttribute::StartsEarly, 0, {1}};
  LaunchConfig config = {{unsigned(extent.grid[0]), unsigned(extent.grid[1]), unsigned(extent.grid[2])},
                         {entry.block[0], entry.block[1], entry.block[2]},
                         entry.shared,
                         static_cast<Stream>(stream),
                         &early,
                         entry.waits ? 1u : 0u};
  return driver.check(driver.launchKernel(&config, entry.function, pointers.data(), nullptr), "launch");
}

Error DriverModule::fill(uint64_t address, uint64_t word, void *stream) const {
  ContextScope scope(driver, context);
  if (Error error = driver.check(scope.result(), "context of device " + Twine(device)))
    return error;
  int capturing = 0;
  if (Error error = driver.check(driver.streamIsCapturing(static_cast<Stream>(stream), &capturing), "stream"))
    return error;
  if (capturing)
    return llvm::createStringError("a checked kernel (LACIS_DEBUG) waits for the device, which a CUDA graph cannot "
                                   "record; capture without LACIS_DEBUG");
  auto half = [&](uint64_t at, uint64_t bits) { return driver.memset32(at, unsigned(bits), 1, static_cast<Stream>(stream)); };
  Result result = half(address, word);
  return driver.check(result ? result : half(address + 4, word >> 32), "fault word");
}

Expected<uint64_t> DriverModule::fetch(uint64_t address, void *stream) const {
  ContextScope scope(driver, context);
  if (Error error = driver.check(scope.result(), "context of device " + Twine(device)))
    return error;
  uint64_t word = 0;
  Result result = driver.copyToHost(&word, address, sizeof(word), static_cast<Stream>(stream));
  if (result == 0)
    result = driver.streamSynchronize(static_cast<Stream>(stream));
  if (Error error = driver.check(result, "a checked kernel (LACIS_DEBUG) waits for the device"))
    return error;
  return word;
}

static const ModuleLoaderRegistration registerPtx("ptx", DriverModule::load);
static const ModuleLoaderRegistration registerCubin("cubin", DriverModule::load);
