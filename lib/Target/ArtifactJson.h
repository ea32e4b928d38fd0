// SPDX-License-Identifier: Apache-2.0
/// \file
/// An artifact's record to JSON and back.
#ifndef LACIS_LIB_TARGET_ARTIFACTJSON_H
#define LACIS_LIB_TARGET_ARTIFACTJSON_H

#include "lacis/Target/Artifact.h"
#include "llvm/Support/JSON.h"

namespace lacis {

/// These kinds of arguments have a number and no operand.
inline bool isNumbered(const Artifact::Argument &arg) {
  return arg.kind == "workspace" || arg.kind == "tensor_map" || arg.kind == "bytes";
}

llvm::json::Value headerToJson(const Artifact &artifact);

/// Refuses keys that it does not know, values of another type, and keys that are missing.
llvm::Expected<Artifact> headerFromJson(const llvm::json::Value &value);

} // namespace lacis

#endif // LACIS_LIB_TARGET_ARTIFACTJSON_H
