// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a parser must not see: the parsers of MLIR and LLVM recurse once a bracket, and trust some attributes.
#ifndef LACIS_COMPILER_TEXTCHECK_H
#define LACIS_COMPILER_TEXTCHECK_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace lacis {

enum class TextKind { MLIR, LLVM };

/// The diagnostic `file:line:1: error: ...` of a text that would end the process while it is parsed; empty where none
/// does. Every door that takes text asks first.
std::string objectionToText(llvm::StringRef text, llvm::StringRef file, TextKind kind = TextKind::MLIR);

} // namespace lacis

#endif // LACIS_COMPILER_TEXTCHECK_H
