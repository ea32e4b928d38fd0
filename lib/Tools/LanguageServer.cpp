// SPDX-License-Identifier: Apache-2.0
/// \file
/// lacis-lsp-server: MLIR's language server with the dialect.
#include "lacis-c/tools.h"
#include "lacis/Dialect/Lacis/IR/Lacis.h"

#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int lacis_lsp_main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  lacis::registerDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
