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
  return json::Object{{"product", std::move(parts)}};
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
    if (const json::Array *factors = object->getArray("product")) {
      Size product = Size::product({});
      for (size_t n = 0; n < factors->size(); ++n)
        product.of.push_back(read((*factors)[n], place + ".product[" + std::to_string(n) + "]"));
      return product;
    }
    for (const auto &known : kKinds)
      if (const json::Array *parts = object->getArray(known.key))
        return part(*parts, known.kind, known.numbers, place + "." + known.key);
    return fail(place);
  }

  Size part(const json::Array &parts, Size::Kind kind, size_t numbers, const std::string &place) {
    if (parts.size() != 1 + numbers)
      return fail(place);
    for (size_t n = 1; n < parts.size(); ++n)
      if (!parts[n].getAsInteger())
        return fail(place + "[" + std::to_string(n) + "]");
    Size whole = read(parts[0], place + "[0]");
    return {kind, *parts[1].getAsInteger(), numbers == 2 ? *parts[2].getAsInteger() : -1, {std::move(whole)}};
  }
};

} // namespace

Size lacis::sizeFromJson(const json::Value &value, const std::string &place, std::string &error) {
  return SizeReader{error}.read(value, place);
}
