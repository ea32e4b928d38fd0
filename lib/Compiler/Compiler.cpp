// SPDX-License-Identifier: Apache-2.0
/// \file
/// Text in, artifact out, one stage after the other.
#include "lacis/Compiler/Compiler.h"
#include "ArtifactFromModule.h"
#include "Diagnostics.h"
#include "FatalErrors.h"
#include "KeptCode.h"
#include "KeptContext.h"
#include "StageLog.h"
#include "TakeApart.h"
#include "lacis/Compiler/TextCheck.h"
#include "lacis/Transforms/Pipeline.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/SourceMgr.h"

using namespace lacis;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

/// The stages that are MLIR text, in order, and the passes that end in each.
static const struct MlirStage {
  StringRef name;
  void (*build)(mlir::OpPassManager &pm, StringRef target);
} mlirStages[] = {
    {"lacis", nullptr},
    {"loops", buildToLoops},
    {"tiles", buildToTiles},
    {"buffers", buildToBuffers},
    {"target", buildToTarget},
};
static constexpr StringRef llvmStage = "llvm";

namespace {

/// A function on its way from MLIR to code, or a whole module.
struct Piece {
  std::string key;                      // of code that is kept; empty where none is
  std::unique_ptr<llvm::Module> module; // null where the code is known already
  std::optional<Code> code;
};

/// One run of the compiler. Each step returns whether the next one may start.
class Compilation {
public:
  Compilation(StringRef text, StringRef targetName, const CompileOptions &options, CompileResult &result)
      : text(text), targetName(targetName), options(options), result(result), log(text, targetName, options, result) {}

  void run();

private:
  bool isLLVM() const { return options.from == llvmStage || (options.from.empty() && text.starts_with("; ModuleID")); }
  bool knowsStage(StringRef name) const;
  bool start();
  void runFromMLIR();
  void giveContextBack();
  void runFromLLVM();
  bool parse();
  bool advance();
  bool isApart() const;
  bool translate();
  std::unique_ptr<llvm::Module> toLLVM(mlir::ModuleOp piece);
  bool optimise();
  void finish(const Artifact &record);
  Expected<Code> emit(bool assembly);
  bool refuse(const llvm::Twine &message);
  bool refuse(Error error) { return refuse(llvm::toString(std::move(error))); }
  bool refuseReported(StringRef step);
  bool fail(Error error);

  StringRef text;
  StringRef targetName;
  const CompileOptions &options;
  CompileResult &result;
  StageLog log;
  std::unique_ptr<Target> target;
  KeptContext used;
  std::unique_ptr<DiagnosticCollector> diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  llvm::LLVMContext llvmContext;
  std::vector<Piece> pieces;
};

} // namespace

bool Compilation::refuse(const llvm::Twine &message) {
  result.status = CompileStatus::Refused;
  std::string lines = message.str();
  if (!StringRef(lines).contains("error: "))
    lines = "error: " + lines;
  result.diagnostics += lines;
  if (lines.back() != '\n')
    result.diagnostics += '\n';
  return false;
}

/// Refuses with what the step reported.
bool Compilation::refuseReported(StringRef step) {
  return refuse(diagnostics->hasErrors() ? diagnostics->text() : "the step '" + step.str() + "' failed without a word");
}

bool Compilation::fail(Error error) {
  refuse(std::move(error));
  result.status = CompileStatus::Failed;
  return false;
}

bool Compilation::knowsStage(StringRef name) const {
  return name.empty() || name == llvmStage || name == target->getAssemblyStage() ||
         llvm::any_of(mlirStages, [&](const MlirStage &stage) { return stage.name == name; });
}

bool Compilation::start() {
  Expected<std::unique_ptr<Target>> created = Target::create(targetName, options.code);
  if (!created)
    return refuse(created.takeError());
  target = std::move(*created);
  for (StringRef stage : {StringRef(options.from), StringRef(options.to)})
    if (!knowsStage(stage))
      return refuse("no stage '" + stage + "' for target '" + targetName + "'; stages here are 'lacis', 'loops', " +
                    "'tiles', 'buffers', 'target', 'llvm', '" + target->getAssemblyStage() + "'");
  return true;
}

void Compilation::run() {
  if (!start())
    return;
  if (std::string why = objectionToText(text, options.file, isLLVM() ? TextKind::LLVM : TextKind::MLIR); !why.empty()) {
    refuse(why);
    return;
  }
  if (isLLVM()) {
    runFromLLVM();
    return;
  }
  runFromMLIR();
  giveContextBack();
}

//===- MLIR ---------------------------------------------------------------===//

bool Compilation::parse() {
  used = takeContext(*target);
  diagnostics = std::make_unique<DiagnosticCollector>(used.context.get());
  mlir::ParserConfig config(used.context.get());
  module = mlir::parseSourceString<mlir::ModuleOp>(text, config, options.file);
  if (module)
    return true;
  return refuseReported("parse");
}

/// Runs the passes of every stage after the text's own, up to the target stage or the one asked for.
bool Compilation::advance() {
  auto recorded = (*module)->getAttrOfType<mlir::StringAttr>("lacis.stage");
  StringRef stage = !options.from.empty() ? StringRef(options.from) : recorded ? recorded.getValue() : "lacis";
  const MlirStage *current = llvm::find_if(mlirStages, [&](const MlirStage &entry) { return entry.name == stage; });
  if (current == std::end(mlirStages))
    return refuse("no stage '" + stage + "', which the module's 'lacis.stage' names");
  log.record(current->name, *module);
  while (current->name != options.to && ++current != std::end(mlirStages)) {
    mlir::PassManager pm(used.context.get());
    current->build(pm, targetName);
    if (mlir::failed(pm.run(*module)))
      return refuseReported(current->name);
    log.record(current->name, *module);
  }
  return true;
}

std::unique_ptr<llvm::Module> Compilation::toLLVM(mlir::ModuleOp piece) {
  mlir::PassManager pm(used.context.get());
  target->addPasses(pm);
  if (mlir::failed(pm.run(piece))) {
    refuseReported("convert");
    return nullptr;
  }
  std::unique_ptr<llvm::Module> translated = mlir::translateModuleToLLVMIR(piece, llvmContext, nameOf(piece));
  if (!translated)
    refuseReported("translate");
  return translated;
}

bool Compilation::isApart() const {
  return target->makesApart() != Apart::None && !options.whole && !log.wants(llvmStage) &&
         !log.wants(target->getAssemblyStage());
}

/// The module as LLVM IR: function by function, but for those whose code is known, or as a whole.
bool Compilation::translate() {
  if (!isApart()) {
    pieces.emplace_back().module = toLLVM(*module);
    return pieces.back().module != nullptr;
  }
  for (mlir::OwningOpRef<mlir::ModuleOp> &part : takeApart(std::move(module), target->makesApart())) {
    Piece &piece = pieces.emplace_back();
    piece.key = keyOfCode(*part, targetName, options.code);
    piece.code = findCode(piece.key);
    if (!piece.code && !(piece.module = toLLVM(*part)))
      return false;
  }
  return true;
}

void Compilation::runFromMLIR() {
  if (!parse() || !advance())
    return;
  result.diagnostics = diagnostics->text(); // warnings
  bool stopsHere = llvm::any_of(mlirStages, [&](const MlirStage &stage) { return stage.name == options.to; });
  if (stopsHere && !result.stage(options.to))
    refuse("the text is past stage '" + options.to + "'");
  if (stopsHere)
    return;
  Expected<Artifact> record = artifactFromModule(*module, targetName);
  if (!record)
    refuse(record.takeError());
  else if (translate() && optimise())
    finish(*record);
}

/// Keeps the context for others; one in which a text was refused is dropped, for its passes have stopped anywhere.
void Compilation::giveContextBack() {
  if (result.status != CompileStatus::Done)
    return;
  module = {};
  diagnostics.reset();
  keepContext(std::move(used));
}

//===- LLVM ---------------------------------------------------------------===//

void Compilation::runFromLLVM() {
  llvm::SMDiagnostic problem;
  std::unique_ptr<llvm::Module> whole = llvm::parseAssemblyString(text, problem, llvmContext);
  if (!whole) {
    refuse(options.file + ":" + llvm::Twine(problem.getLineNo()) + ":" + llvm::Twine(problem.getColumnNo()) +
           ": error: " + problem.getMessage());
    return;
  }
  Expected<Artifact> record = artifactFromLLVM(*whole, targetName);
  if (!record) {
    refuse(record.takeError());
    return;
  }
  pieces.emplace_back().module = std::move(whole);
  finish(*record);
}

bool Compilation::optimise() {
  for (Piece &piece : pieces)
    if (piece.module)
      if (Error error = target->optimise(*piece.module))
        return fail(std::move(error));
  return true;
}

void Compilation::finish(const Artifact &record) {
  if (log.wants(llvmStage)) {
    attachArtifact(*pieces.front().module, record);
    log.record(llvmStage, *pieces.front().module);
  }
  if (options.to == llvmStage)
    return;
  StringRef stage = target->getAssemblyStage();
  Expected<Code> code = emit(log.wants(stage));
  if (!code) {
    fail(code.takeError());
    return;
  }
  log.record(stage, code->assembly);
  if (!code->log.empty())
    log.record("log", code->log);
  Artifact artifact = record;
  artifact.kind = std::move(code->kind);
  artifact.code = std::move(code->bytes);
  log.recordArtifact(artifact);
  result.artifact = std::move(artifact);
}

Expected<Code> Compilation::emit(bool assembly) {
  std::vector<Code> codes;
  for (Piece &piece : pieces) {
    if (!piece.code) {
      Expected<Code> code = target->emit(*piece.module, assembly);
      if (!code)
        return code;
      piece.code = std::move(*code);
      if (!piece.key.empty())
        keepCode(piece.key, *piece.code);
    }
    codes.push_back(std::move(*piece.code));
  }
  return target->join(std::move(codes));
}

//===- the door -----------------------------------------------------------===//

const std::string *CompileResult::stage(StringRef name) const {
  for (const auto &entry : stages)
    if (entry.first == name)
      return &entry.second;
  return nullptr;
}

CompileResult lacis::compile(StringRef text, StringRef target, const CompileOptions &options) {
  CompileResult result;
  std::string problem;
  try {
    problem = runApart([&] { Compilation(text, target, options, result).run(); });
  } catch (const std::exception &error) {
    problem = error.what();
  }
  if (!problem.empty()) {
    result.artifact.reset();
    result.status = CompileStatus::Failed;
    result.diagnostics += "error: the compiler failed: " + problem + "\n";
  }
  if (result.status == CompileStatus::Failed)
    result.diagnostics += repeatCommand(target, options);
  return result;
}
