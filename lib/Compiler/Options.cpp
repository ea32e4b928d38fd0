// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads the options of a compilation from JSON.
#include "lacis/Compiler/Compiler.h"

#include "llvm/Support/JSON.h"

using namespace lacis;
using llvm::Error;
using llvm::StringRef;
namespace json = llvm::json;

/// Stores `value` where the key belongs; says whether key and type are right.
static bool store(CompileOptions &options, StringRef key, const json::Value &value) {
  auto text = [&](std::string &place) {
    std::optional<StringRef> read = value.getAsString();
    if (read)
      place = read->str();
    return read.has_value();
  };
  auto flag = [&](bool &place) {
    std::optional<bool> read = value.getAsBoolean();
    place = read.value_or(false);
    return read.has_value();
  };
  if (key == "stages")
    return flag(options.stages);
  if (key == "locations")
    return flag(options.locations);
  if (key == "check_ptxas")
    return flag(options.code.checkPtxas);
  if (key == "from")
    return text(options.from);
  if (key == "to")
    return text(options.to);
  if (key == "file")
    return text(options.file);
  if (key == "dump_dir")
    return text(options.dumpDir);
  if (key == "cpu")
    return text(options.code.cpu);
  if (key == "features")
    return text(options.code.features);
  if (key == "ptxas")
    return text(options.code.ptxas);
  if (key == "ptxas_options")
    return text(options.code.ptxasOptions);
  if (key != "opt_level")
    return false;
  std::optional<int64_t> level = value.getAsInteger();
  options.code.optLevel = unsigned(level.value_or(0));
  return level && *level >= 0 && *level <= 3;
}

llvm::Expected<CompileOptions> lacis::parseCompileOptions(StringRef text) {
  CompileOptions options;
  if (text.empty())
    return options;
  llvm::Expected<json::Value> value = json::parse(text);
  if (!value)
    return value.takeError();
  const json::Object *object = value->getAsObject();
  if (!object)
    return llvm::createStringError("the options are no JSON object");
  for (const auto &[key, entry] : *object) {
    std::string shown;
    llvm::raw_string_ostream(shown) << entry;
    if (!store(options, key, entry))
      return llvm::createStringError("no option '" + key.str() + "' with value '" + shown + "'");
  }
  return options;
}
