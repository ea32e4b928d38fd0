// SPDX-License-Identifier: Apache-2.0
/// \file
/// Opens libcuda.so.1 once.
#include "Driver.h"
#include <dlfcn.h>
#include <mutex>

using namespace lacis::runtime::cuda;
using llvm::Error;
using llvm::Expected;

static Error missing(const llvm::Twine &what) {
  return llvm::createStringError("no CUDA driver on this machine: " + what);
}

template <typename Function> static bool find(void *library, const char *name, Function &function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

Error Driver::open() {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return missing(dlerror());
  bool complete =
      find(library, "cuInit", init) && find(library, "cuDeviceGet", deviceGet) &&
      find(library, "cuDeviceGetAttribute", deviceGetAttribute) &&
      find(library, "cuDevicePrimaryCtxRetain", primaryRetain) && find(library, "cuCtxGetCurrent", contextGetCurrent) &&
      find(library, "cuCtxPushCurrent_v2", contextPush) && find(library, "cuCtxPopCurrent_v2", contextPop) &&
      find(library, "cuModuleLoadDataEx", moduleLoad) && find(library, "cuModuleGetFunction", moduleGetFunction) &&
      find(library, "cuFuncSetAttribute", functionSetAttribute) &&
      find(library, "cuFuncGetAttribute", functionGetAttribute) && find(library, "cuLaunchKernelEx", launchKernel) &&
      find(library, "cuMemsetD32Async", memset32) && find(library, "cuMemcpyDtoHAsync_v2", copyToHost) &&
      find(library, "cuStreamSynchronize", streamSynchronize) &&
      find(library, "cuStreamIsCapturing", streamIsCapturing) && find(library, "cuGetErrorName", errorName) &&
      find(library, "cuGetErrorString", errorString);
  if (!complete)
    return missing("libcuda.so.1 lacks a function of CUDA 11.8");
  find(library, "cuFuncLoad", functionLoad);
  find(library, "cuTensorMapEncodeTiled", tensorMapEncode);
  Result (*getVersion)(int *) = nullptr;
  constexpr int firstThatCapturesIt = 12030;
  int version = 0;
  if (find(library, "cuDriverGetVersion", getVersion) && getVersion(&version) == 0)
    startsEarly = version >= firstThatCapturesIt;
  return check(init(0), "cuInit");
}

Expected<const Driver *> Driver::get() {
  static std::mutex mutex;
  static const Driver *opened = nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  if (opened)
    return opened;
  auto driver = std::make_unique<Driver>();
  if (Error error = driver->open())
    return error;
  return opened = driver.release();
}

Error Driver::check(Result result, const llvm::Twine &attempt) const {
  if (result == 0)
    return Error::success();
  const char *name = nullptr, *text = nullptr;
  errorName(result, &name);
  errorString(result, &text);
  return llvm::createStringError(attempt + ": " + (name ? name : "unknown CUDA error") + ": " +
                                 (text ? text : "no description"));
}

ContextScope::ContextScope(const Driver &driver, Context context) : driver(driver) {
  Context current = nullptr;
  status = driver.contextGetCurrent(&current);
  if (status != 0 || current == context)
    return;
  status = driver.contextPush(context);
  pushed = status == 0;
}

ContextScope::~ContextScope() {
  Context popped = nullptr;
  if (pushed)
    driver.contextPop(&popped);
}
