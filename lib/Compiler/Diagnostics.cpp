// SPDX-License-Identifier: Apache-2.0
/// \file
/// Collects MLIR's diagnostics as lines that begin with the user's file and line.
#include "Diagnostics.h"

#include "mlir/IR/Location.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

static FileLineColLoc findFile(Location location) {
  FileLineColLoc found;
  location->walk([&](Location inner) {
    found = dyn_cast<FileLineColLoc>(inner);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

static StringRef severityName(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return "note";
  case DiagnosticSeverity::Warning:
    return "warning";
  case DiagnosticSeverity::Error:
    return "error";
  case DiagnosticSeverity::Remark:
    return "remark";
  }
  return "error";
}

static void print(const Diagnostic &diagnostic, llvm::raw_ostream &stream) {
  if (FileLineColLoc file = findFile(diagnostic.getLocation()))
    stream << file.getFilename().getValue() << ':' << file.getLine() << ':' << file.getColumn() << ": ";
  stream << severityName(diagnostic.getSeverity()) << ": " << diagnostic.str() << '\n';
}

lacis::DiagnosticCollector::DiagnosticCollector(MLIRContext *context) : ScopedDiagnosticHandler(context) {
  setHandler([this](Diagnostic &diagnostic) {
    errors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
    llvm::raw_string_ostream stream(lines);
    print(diagnostic, stream);
    for (const Diagnostic &note : diagnostic.getNotes())
      print(note, stream);
    return success();
  });
}
