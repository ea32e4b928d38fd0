// SPDX-License-Identifier: Apache-2.0
/// \file
/// The launch half of the C ABI over the kernel registry.
#include "lacis-c/lacis_runtime.h"
#include "lacis/Runtime/Kernel.h"
#include "llvm/Support/JSON.h"
#include <cstdlib>
#include <cstring>

using namespace lacis;
using namespace lacis::runtime;
using llvm::Error;
using llvm::StringRef;

static Kernel *unwrap(lacis_kernel *kernel) { return reinterpret_cast<Kernel *>(kernel); }
static const Kernel *unwrap(const lacis_kernel *kernel) { return reinterpret_cast<const Kernel *>(kernel); }

static int report(Error failure, char **error) {
  if (!failure)
    return LACIS_DONE;
  int status = failure.isA<DataRefusal>() ? LACIS_REFUSED : LACIS_FAILED;
  std::string text = llvm::json::fixUTF8(llvm::toString(std::move(failure))); // it may quote damaged code
  if (error)
    *error = strdup(text.c_str());
  return status;
}

/// No exception crosses the C ABI, whatever the body throws.
template <typename Body> static int guarded(char **error, Body body) {
  try {
    return report(body(), error);
  } catch (const std::exception &exception) {
    return report(llvm::createStringError(exception.what()), error);
  } catch (...) {
    return report(llvm::createStringError("unknown exception"), error);
  }
}

int lacis_kernel_load(const char *key, const void *artifact, size_t size, int32_t device, char **error) {
  return guarded(error, [&] {
    return KernelRegistry::get().load(key, StringRef(static_cast<const char *>(artifact), size), device);
  });
}

int lacis_kernel_find(const char *key, size_t keySize, lacis_kernel **kernel, char **error) {
  return guarded(error, [&]() -> Error {
    auto found = KernelRegistry::get().find(StringRef(key, keySize));
    if (!found)
      return found.takeError();
    *kernel = reinterpret_cast<lacis_kernel *>(*found);
    return Error::success();
  });
}

void lacis_kernel_set_path(const char *path) { KernelRegistry::get().setPath(path ? path : ""); }

const lacis_signature *lacis_kernel_signature(const lacis_kernel *kernel) { return &unwrap(kernel)->signature(); }

int lacis_kernel_launch(lacis_kernel *kernel, const lacis_launch_args *args, void *stream,
                        lacis_parallel_for parallelFor, lacis_allocate allocate, void *context, char **error) {
  return guarded(error, [&] { return unwrap(kernel)->launch(*args, stream, parallelFor, {allocate, context}); });
}

/// Parses an artifact and hands out one text of it.
template <typename Select>
static int extract(const void *artifact, size_t size, lacis_buffer **result, char **error, Select select) {
  return guarded(error, [&]() -> Error {
    auto parsed = Artifact::parse(StringRef(static_cast<const char *>(artifact), size));
    if (!parsed)
      return parsed.takeError();
    std::string text = select(*parsed);
    *result = lacis_buffer_create(text.data(), text.size());
    return Error::success();
  });
}

int lacis_artifact_describe(const void *artifact, size_t size, lacis_buffer **json, char **error) {
  return extract(artifact, size, json, error, [](const Artifact &parsed) { return parsed.header(); });
}

int lacis_artifact_code(const void *artifact, size_t size, lacis_buffer **code, char **error) {
  return extract(artifact, size, code, error, [](const Artifact &parsed) { return parsed.code; });
}

void lacis_string_free(char *text) { std::free(text); }
