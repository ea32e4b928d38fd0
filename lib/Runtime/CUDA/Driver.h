// SPDX-License-Identifier: Apache-2.0
/// \file
/// The few functions of the CUDA driver that loading and launching need, found at run time in libcuda.so.1.
#ifndef LACIS_LIB_RUNTIME_CUDA_DRIVER_H
#define LACIS_LIB_RUNTIME_CUDA_DRIVER_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <cstddef>
#include <cstdint>

namespace lacis::runtime::cuda {

using Result = int;
using Device = int;
using Context = struct ContextOpaque *;
using ModuleHandle = struct ModuleOpaque *;
using Function = struct FunctionOpaque *;
using Stream = struct StreamOpaque *;

// Values of the driver's stable C interface.
enum JitOption : int { InfoLogBuffer = 3, InfoLogSize = 4, ErrorLogBuffer = 5, ErrorLogSize = 6 };
enum FunctionAttribute : int { LocalBytes = 3, Registers = 4, MaxDynamicShared = 8 };
enum DeviceAttribute : int { MaxSharedOptin = 97, CapabilityMajor = 75, CapabilityMinor = 76 };

/// How a kernel is launched, and what else is said of it, as the driver's C interface lays them out.
struct LaunchAttribute {
  enum : int { StartsEarly = 6 }; // "programmatic stream serialization"
  int kind;
  int padding;
  int value[16];
};
struct LaunchConfig {
  unsigned grid[3], block[3], shared;
  Stream stream;
  const LaunchAttribute *attributes;
  unsigned count;
};

struct Driver {
  /// The driver, initialised; an error where the machine has none.
  static llvm::Expected<const Driver *> get();

  /// Turns a result into an error that says what was attempted.
  llvm::Error check(Result result, const llvm::Twine &attempt) const;

  Result (*init)(unsigned) = nullptr;
  Result (*deviceGet)(Device *, int) = nullptr;
  Result (*deviceGetAttribute)(int *, int, Device) = nullptr;
  Result (*primaryRetain)(Context *, Device) = nullptr;
  Result (*contextGetCurrent)(Context *) = nullptr;
  Result (*contextPush)(Context) = nullptr;
  Result (*contextPop)(Context *) = nullptr;
  Result (*moduleLoad)(ModuleHandle *, const void *, unsigned, int *, void **) = nullptr;
  Result (*moduleGetFunction)(Function *, ModuleHandle, const char *) = nullptr;
  Result (*functionSetAttribute)(Function, int, int) = nullptr;
  Result (*functionGetAttribute)(int *, int, Function) = nullptr;
  Result (*functionLoad)(Function) = nullptr; // absent before CUDA 12.4
  Result (*launchKernel)(const LaunchConfig *, Function, void **, void **) = nullptr;
  Result (*memset32)(uint64_t, unsigned, size_t, Stream) = nullptr;
  Result (*copyToHost)(void *, uint64_t, size_t, Stream) = nullptr;
  Result (*streamSynchronize)(Stream) = nullptr;
  Result (*streamIsCapturing)(Stream, int *) = nullptr; // 0 says no
  Result (*tensorMapEncode)(void *, int, unsigned, void *, const uint64_t *, const uint64_t *, const unsigned *,
                            const unsigned *, int, int, int, int) = nullptr; // absent before CUDA 12.0
  Result (*errorName)(Result, const char **) = nullptr;
  Result (*errorString)(Result, const char **) = nullptr;

  bool startsEarly = false; // kernels, while the one before them ends, in graphs too: from CUDA 12.3 on

private:
  llvm::Error open();
};

/// Makes a context current for a scope, where it is not already.
class ContextScope {
public:
  ContextScope(const Driver &driver, Context context);
  ~ContextScope();
  ContextScope(const ContextScope &) = delete;
  ContextScope &operator=(const ContextScope &) = delete;
  Result result() const { return status; }

private:
  const Driver &driver;
  Result status = 0;
  bool pushed = false;
};

} // namespace lacis::runtime::cuda

#endif
