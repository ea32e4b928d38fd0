// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sizes as JSON.
#include "ArtifactSize.h"

using namespace lacis;
namespace json = llvm::json;

static constexpr struct {
  const char *key;
  Size::Kind kind;
  size_t numbers; // behind the part of that kind
} kKinds[] = {{"sum", Size::Kind::Sum, 1}, {"ceildiv", Size::Kind::CeilDiv, 1}, {"within", Size::Kind::Within, 2}};

json::Value lacis::sizeToJson(const Size &size) {
  if (size.kind == Size::Kind::Constant)
    return size.number;
  if (size.kind == Size::Kind::Argument)
    return json::Object{{"arg", size.number}};
  json::Array parts;
  for (const Size &part : size.of)
    parts.push_back(sizeToJson(part));
  for (const auto &known : kKinds) {
    if (size.kind != known.kind)
      continue;
    parts.push_back(size.number);
    if (known.numbers == 2)
      parts.push_back(size.upto);
    return json::Object{{known.key, std::move(parts)}};
  }
  return json::Object{{size.kind == Size::Kind::Min ? "min" : "product", std::move(parts)}};
}

namespace {

struct SizeReader {
  std::string &error;

  Size fail(const std::string &place) {
    if (error.empty())
      error = place + " is no size";
    return {};
  }

  Size read(const json::Value &value, const std::string &place) {
    if (std::optional<int64_t> number = value.getAsInteger())
      return Size::constant(*number);
    const json::Object *object = value.getAsObject();
    if (!object || object->size() != 1)
      return fail(place);
    if (std::optional<int64_t> number = object->getInteger("arg"))
      return Size::argument(*number);
    if (const json::Array *factors = object->getArray("product"))
      return Size::product(readAll(*factors, factors->size(), place + ".product"));
    if (const json::Array *parts = object->getArray("min"))
      return parts->empty() ? fail(place) : Size::min(readAll(*parts, parts->size(), place + ".min"));
    for (const auto &known : kKinds)
      if (const json::Array *parts = object->getArray(known.key))
        return part(*parts, known.kind, known.numbers, place + "." + known.key);
    return fail(place);
  }

  std::vector<Size> readAll(const json::Array &parts, size_t count, const std::string &place) {
    std::vector<Size> found;
    for (size_t n = 0; n < count; ++n)
      found.push_back(read(parts[n], place + "[" + std::to_string(n) + "]"));
    return found;
  }

  /// What is added up, divided or looked at, and behind it so many numbers.
  Size part(const json::Array &parts, Size::Kind kind, size_t numbers, const std::string &place) {
    if (parts.size() < 1 + numbers || (kind != Size::Kind::Sum && parts.size() > 1 + numbers))
      return fail(place);
    size_t count = parts.size() - numbers;
    for (size_t n = count; n < parts.size(); ++n)
      if (!parts[n].getAsInteger())
        return fail(place + "[" + std::to_string(n) + "]");
    int64_t upto = numbers == 2 ? *parts[count + 1].getAsInteger() : -1;
    return {kind, *parts[count].getAsInteger(), upto, readAll(parts, count, place)};
  }
};

} // namespace

Size lacis::sizeFromJson(const json::Value &value, const std::string &place, std::string &error) {
  return SizeReader{error}.read(value, place);
}
