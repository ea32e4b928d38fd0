// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads the fields of JSON objects; whoever wrote them may have written anything.
#ifndef LACIS_LIB_TARGET_JSONREADER_H
#define LACIS_LIB_TARGET_JSONREADER_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"

#include <string>

namespace lacis {

/// Reads the fields of one object; the first problem stays in `error`.
class JsonReader {
public:
  JsonReader(const llvm::json::Value &value, std::string place, std::string &error) : place(std::move(place)), error(error) {
    object = value.getAsObject();
    if (!object)
      fail(" is no object");
  }

  ~JsonReader() {
    if (!object)
      return;
    for (const auto &entry : *object)
      if (!llvm::is_contained(known, llvm::StringRef(entry.first)))
        fail(" has an unknown key '" + entry.first.str() + "'");
  }

  std::string text(llvm::StringRef key, bool required = false) {
    const llvm::json::Value *value = find(key, required);
    if (!value)
      return "";
    if (std::optional<llvm::StringRef> result = value->getAsString())
      return result->str();
    fail("." + key.str() + " is no string");
    return "";
  }

  int64_t integer(llvm::StringRef key, int64_t fallback, bool required = false) {
    const llvm::json::Value *value = find(key, required);
    if (!value)
      return fallback;
    if (std::optional<int64_t> result = value->getAsInteger())
      return *result;
    fail("." + key.str() + " is no integer");
    return fallback;
  }

  bool boolean(llvm::StringRef key, bool fallback) {
    const llvm::json::Value *value = find(key, false);
    if (!value)
      return fallback;
    if (std::optional<bool> result = value->getAsBoolean())
      return *result;
    fail("." + key.str() + " is no boolean");
    return fallback;
  }

  /// Calls `visit(element, place of the element)`.
  template <typename Visit> void list(llvm::StringRef key, bool required, Visit visit) {
    const llvm::json::Value *value = find(key, required);
    if (!value)
      return;
    std::string name = place + "." + key.str();
    const llvm::json::Array *array = value->getAsArray();
    if (!array)
      return fail("." + key.str() + " is no list");
    for (size_t i = 0; i < array->size(); ++i)
      visit((*array)[i], name + "[" + std::to_string(i) + "]");
  }

  const llvm::json::Value *find(llvm::StringRef key, bool required) {
    known.push_back(key);
    const llvm::json::Value *value = object ? object->get(key) : nullptr;
    if (!value && required)
      fail(" has no key '" + key.str() + "'");
    return value;
  }

private:
  void fail(const std::string &what) {
    if (error.empty())
      error = place + what;
  }

  std::string place;
  std::string &error;
  const llvm::json::Object *object = nullptr;
  llvm::SmallVector<llvm::StringRef> known;
};

} // namespace lacis

#endif // LACIS_LIB_TARGET_JSONREADER_H
