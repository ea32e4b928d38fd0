// SPDX-License-Identifier: Apache-2.0
/// \file
/// The compile half of the C ABI.
#include "lacis-c/lacis.h"
#include "lacis/Compiler/Compiler.h"
#include "lacis/Target/CPU/HostProcessor.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <exception>
#include <string>

using namespace lacis;

struct lacis_buffer {
  std::string bytes;
};

const char *lacis_buffer_data(const lacis_buffer *buffer) { return buffer ? buffer->bytes.c_str() : nullptr; }

size_t lacis_buffer_size(const lacis_buffer *buffer) { return buffer ? buffer->bytes.size() : 0; }

lacis_buffer *lacis_buffer_create(const void *data, size_t size) {
  try {
    return new lacis_buffer{std::string(static_cast<const char *>(data), size)};
  } catch (const std::exception &) {
    return nullptr;
  }
}

void lacis_buffer_free(lacis_buffer *buffer) { delete buffer; }

static void give(lacis_buffer **place, std::string bytes) {
  if (place)
    *place = new lacis_buffer{std::move(bytes)};
}

static std::string stagesToJson(const CompileResult &result) {
  llvm::json::Object object;
  for (const auto &[stage, text] : result.stages)
    object[stage] = llvm::json::fixUTF8(text);
  std::string json;
  llvm::raw_string_ostream(json) << llvm::json::Value(std::move(object));
  return json;
}

static int compileText(const char *text, const char *target, const char *json, lacis_buffer **artifact,
                       lacis_buffer **stages, lacis_buffer **diagnostics) {
  if (!text || !target) {
    give(diagnostics, "error: no text or no target\n");
    return LACIS_REFUSED;
  }
  llvm::Expected<CompileOptions> options = parseCompileOptions(json ? json : "");
  if (!options) {
    give(diagnostics, "error: " + llvm::toString(options.takeError()) + "\n");
    return LACIS_REFUSED;
  }
  CompileResult result = compile(text, target, *options);
  if (!result.diagnostics.empty())
    give(diagnostics, std::move(result.diagnostics));
  if (!result.stages.empty())
    give(stages, stagesToJson(result));
  if (result.artifact)
    give(artifact, result.artifact->serialise());
  return static_cast<int>(result.status);
}

int lacis_compile(const char *text, const char *target, const char *options, lacis_buffer **artifact,
                  lacis_buffer **stages, lacis_buffer **diagnostics) {
  for (lacis_buffer **place : {artifact, stages, diagnostics})
    if (place)
      *place = nullptr;
  try {
    return compileText(text, target, options, artifact, stages, diagnostics);
  } catch (const std::exception &) { // out of memory: nothing can be said
    return LACIS_FAILED;
  }
}

const char *lacis_version(void) { return LACIS_VERSION; }

const char *lacis_compiler_fingerprint(void) { return compilerFingerprint().c_str(); }

const char *lacis_host_cpu(void) {
  static const std::string text = hostName() + ":" + hostFeatures();
  return text.c_str();
}

const char *lacis_targets(void) {
  static const std::string text = Target::families();
  return text.c_str();
}
