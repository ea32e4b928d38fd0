// SPDX-License-Identifier: Apache-2.0
/// \file
/// The bytes of an artifact: magic word, length of the header, header, code, SHA-256.
#include "lacis/Target/Artifact.h"
#include "ArtifactJson.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/SHA256.h"

using namespace lacis;
using llvm::StringRef;

static constexpr StringRef magic("LACISART", 8);
static constexpr size_t digestSize = 32;
static constexpr size_t prefixSize = 8 + 8; // magic, length of the header

/// A header of today has about 10 brackets within each other. The parser calls itself once for each.
static constexpr size_t deepest = 64;

/// Do the brackets of a text, strings apart, lie within each other deeper than `deepest`?
static bool isTooDeep(StringRef json) {
  size_t depth = 0;
  bool inString = false;
  for (size_t i = 0; i < json.size(); ++i) {
    char c = json[i];
    if (inString && c == '\\')
      ++i;
    else if (c == '"')
      inString = !inString;
    else if (!inString && (c == '[' || c == '{') && ++depth > deepest)
      return true;
    else if (!inString && (c == ']' || c == '}') && depth > 0)
      --depth;
  }
  return false;
}

static std::string digest(StringRef bytes) {
  std::array<uint8_t, digestSize> hash = llvm::SHA256::hash(llvm::arrayRefFromStringRef(bytes));
  return std::string(reinterpret_cast<const char *>(hash.data()), hash.size());
}

std::string lacis::sha256Hex(StringRef bytes) { return llvm::toHex(digest(bytes), /*LowerCase=*/true); }

std::string Artifact::header() const {
  std::string text;
  llvm::raw_string_ostream(text) << headerToJson(*this);
  return text;
}

std::string Artifact::serialise() const {
  std::string json = header();
  std::string bytes = magic.str();
  char length[8];
  llvm::support::endian::write64le(length, json.size());
  bytes.append(length, sizeof(length));
  bytes += json;
  bytes += code;
  bytes += digest(bytes);
  return bytes;
}

llvm::Expected<Artifact> Artifact::parse(StringRef bytes) {
  if (!bytes.starts_with(magic))
    return llvm::createStringError("not an artifact");
  if (bytes.size() < prefixSize + digestSize)
    return llvm::createStringError("artifact cut short at " + llvm::Twine(bytes.size()) + " bytes");
  StringRef content = bytes.drop_back(digestSize);
  if (digest(content) != bytes.take_back(digestSize))
    return llvm::createStringError("damaged artifact: the digest does not agree with the content");
  uint64_t length = llvm::support::endian::read64le(bytes.data() + magic.size());
  content = content.drop_front(prefixSize);
  if (length > content.size())
    return llvm::createStringError("artifact with a header longer than itself");
  llvm::Expected<Artifact> artifact = parseHeader(content.take_front(length));
  if (!artifact)
    return artifact.takeError();
  artifact->code = content.drop_front(length).str();
  if (artifact->code.empty())
    return llvm::createStringError("artifact without code");
  return artifact;
}

llvm::Expected<Artifact> Artifact::parseHeader(StringRef json) {
  if (isTooDeep(json))
    return llvm::createStringError("the artifact's header has more than " + llvm::Twine(deepest) +
                                   " lists and objects within each other");
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(json);
  if (!value)
    return value.takeError();
  llvm::Expected<Artifact> artifact = headerFromJson(*value);
  if (!artifact)
    return artifact.takeError();
  if (llvm::Error error = artifact->verify())
    return error;
  return artifact;
}
