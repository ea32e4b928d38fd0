// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sizes as JSON: a number, or an object whose one key says what its value is: `{"ceildiv": [{"arg": 0}, 64]}`.
#ifndef LACIS_LIB_TARGET_ARTIFACTSIZE_H
#define LACIS_LIB_TARGET_ARTIFACTSIZE_H

#include "lacis/Target/Size.h"

#include "llvm/Support/JSON.h"

namespace lacis {

llvm::json::Value sizeToJson(const Size &size);

/// What `value`, called `place` in messages, says; the first problem goes to `error`.
Size sizeFromJson(const llvm::json::Value &value, const std::string &place, std::string &error);

} // namespace lacis

#endif // LACIS_LIB_TARGET_ARTIFACTSIZE_H
