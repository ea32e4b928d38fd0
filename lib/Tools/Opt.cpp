// SPDX-License-Identifier: Apache-2.0
/// \file
/// lacis-opt: MLIR's opt driver with the dialect, every pass and the upstream passes that tests use.
#include "TestPasses.h"

#include "lacis-c/tools.h"
#include "lacis/Compiler/TextCheck.h"
#include "lacis/Conversion/ConversionPasses.h"
#include "lacis/Dialect/Lacis/IR/Lacis.h"
#include "lacis/Transforms/Passes.h"
#include "lacis/Transforms/Pipeline.h"

#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

#include <cstdlib>

/// What LLVM gives up on is refused, as everything else is.
static void refuse(void *, const char *reason, bool) {
  llvm::errs() << "error: the compiler failed: " << reason << "\n";
  std::_Exit(EXIT_FAILURE); // nothing of LLVM can be destroyed
}

/// MLIR's driver, on texts that its parser survives.
static llvm::LogicalResult run(llvm::StringRef input, llvm::StringRef output, mlir::DialectRegistry &registry) {
  std::string problem;
  std::unique_ptr<llvm::MemoryBuffer> text = mlir::openInputFile(input, &problem);
  if (text)
    problem = lacis::objectionToText(text->getBuffer(), text->getBufferIdentifier());
  std::unique_ptr<llvm::ToolOutputFile> file = problem.empty() ? mlir::openOutputFile(output, &problem) : nullptr;
  if (!file) {
    llvm::errs() << problem << (llvm::StringRef(problem).ends_with("\n") ? "" : "\n");
    return llvm::failure();
  }
  mlir::MlirOptMainConfig config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (llvm::failed(mlir::MlirOptMain(file->os(), std::move(text), registry, config)))
    return llvm::failure();
  file->keep();
  return llvm::success();
}

int lacis_opt_main(int argc, char **argv) {
  llvm::install_fatal_error_handler(refuse);
  mlir::DialectRegistry registry;
  lacis::registerDialects(registry);
  lacis::registerLacisPasses();
  lacis::registerLacisConversionPasses();
  lacis::registerPipelines();
  lacis::registerTestPasses();
  mlir::registerTransformsPasses();
  auto [input, output] = mlir::registerAndParseCLIOptions(argc, argv, "Lacis optimizer driver\n", registry);
  mlir::MlirOptMainConfig config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldListPasses() || config.shouldShowDialects()) // no text is read
    return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, input, output, registry));
  return mlir::asMainReturnCode(run(input, output, registry));
}
