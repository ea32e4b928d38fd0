// SPDX-License-Identifier: Apache-2.0
/// \file
/// Text in, artifact out.
#ifndef LACIS_COMPILER_COMPILER_H
#define LACIS_COMPILER_COMPILER_H

#include "lacis/Target/Artifact.h"
#include "lacis/Target/Target.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lacis {

struct CompileOptions {
  std::string from;            // the stage of the text; empty: found in the text
  std::string to;              // the last stage to make; empty: all, and the artifact
  std::string file = "<text>"; // the name of the text in messages
  bool stages = false;         // return the text of every stage
  bool locations = false;      // ... with locations
  std::string dumpDir;         // write every stage there, with locations
  bool whole = false;          // one piece of code; so it is too where the text of LLVM IR or of assembly is asked for
  CodeOptions code;
};

enum class CompileStatus { Done = 0, Refused = 1, Failed = 2 };

struct CompileResult {
  CompileStatus status = CompileStatus::Done;
  std::string diagnostics;
  std::vector<std::pair<std::string, std::string>> stages; // name and text, in order
  std::optional<Artifact> artifact;

  /// The text of a stage, or null.
  const std::string *stage(llvm::StringRef name) const;
};

/// Never ends the process and never throws, whatever the text.
CompileResult compile(llvm::StringRef text, llvm::StringRef target, const CompileOptions &options);

/// Reads options from a JSON object; refuses keys that it does not know.
llvm::Expected<CompileOptions> parseCompileOptions(llvm::StringRef json);

/// Changes with anything in this library that may change the code it makes.
const std::string &compilerFingerprint();

} // namespace lacis

#endif // LACIS_COMPILER_COMPILER_H
