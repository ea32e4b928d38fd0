// SPDX-License-Identifier: Apache-2.0
/// \file
/// lacis-opt: MLIR's opt driver with the dialect, every pass and the upstream passes that tests use.
#include "TestPasses.h"

#include "lacis-c/tools.h"
#include "lacis/Conversion/ConversionPasses.h"
#include "lacis/Dialect/Lacis/IR/Lacis.h"
#include "lacis/Transforms/Passes.h"
#include "lacis/Transforms/Pipeline.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int lacis_opt_main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  lacis::registerDialects(registry);
  lacis::registerLacisPasses();
  lacis::registerLacisConversionPasses();
  lacis::registerPipelines();
  lacis::registerTestPasses();
  mlir::registerTransformsPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Lacis optimizer driver\n", registry));
}
