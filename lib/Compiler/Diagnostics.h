// SPDX-License-Identifier: Apache-2.0
/// \file
/// Collects MLIR's diagnostics as lines that begin with the user's file and line.
#ifndef LACIS_LIB_COMPILER_DIAGNOSTICS_H
#define LACIS_LIB_COMPILER_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"

#include <string>

namespace lacis {

class DiagnosticCollector : public mlir::ScopedDiagnosticHandler {
public:
  explicit DiagnosticCollector(mlir::MLIRContext *context);

  bool hasErrors() const { return errors > 0; }
  const std::string &text() const { return lines; }

private:
  std::string lines;
  unsigned errors = 0;
};

} // namespace lacis

#endif // LACIS_LIB_COMPILER_DIAGNOSTICS_H
