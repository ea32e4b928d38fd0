// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a backend promises: from the target stage to code.
#ifndef LACIS_TARGET_TARGET_H
#define LACIS_TARGET_TARGET_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace llvm {
class Module;
} // namespace llvm
namespace mlir {
class DialectRegistry;
class OpPassManager;
} // namespace mlir

namespace lacis {

/// Choices that reach only the making of code. A backend reads what concerns it.
struct CodeOptions {
  unsigned optLevel = 3;
  std::string cpu = "host";
  std::string features;
  std::string ptxas;
  std::string ptxasOptions;
  bool checkPtxas = false;
};

/// `assembly` is set only where it was asked for, or where it is the code; `log` is what an assembler had to say.
struct Code {
  std::string kind;
  std::string bytes;
  std::string assembly;
  std::string log;
};

/// Which functions of a module become code apart from the others.
enum class Apart { None, Uncalled, All };

class Target {
public:
  /// `name` is the whole name: cpu, cuda:sm_90a.
  Target(llvm::StringRef name, const CodeOptions &options) : name(name), options(options) {}
  virtual ~Target();

  llvm::StringRef getName() const { return name; }

  /// The name of the last stage that has a text: "asm", "ptx".
  virtual llvm::StringRef getAssemblyStage() const = 0;

  /// The dialects that its target stage may use, and their translations to LLVM IR.
  virtual void registerDialects(mlir::DialectRegistry &registry) const = 0;

  /// From the target stage to the LLVM dialect.
  virtual void addPasses(mlir::OpPassManager &pm) const = 0;

  /// Gives fresh LLVM IR its triple and data layout, and optimises it.
  virtual llvm::Error optimise(llvm::Module &module) const = 0;

  /// Optimised LLVM IR to code.
  virtual llvm::Expected<Code> emit(llvm::Module &module, bool assembly) const = 0;

  /// Where pieces are called by others, `join` links them.
  virtual Apart makesApart() const { return Apart::None; }
  /// One code of those of the pieces, one at least.
  virtual llvm::Expected<Code> join(std::vector<Code> pieces) const { return std::move(pieces.front()); }

  /// Finds the backend by the word before ':'; the error lists those that exist.
  static llvm::Expected<std::unique_ptr<Target>> create(llvm::StringRef name, const CodeOptions &options);

  /// The words that `create` knows, with commas.
  static std::string families();

protected:
  const std::string name;
  const CodeOptions options;
};

/// A backend makes one of these at namespace scope in its own file.
struct TargetRegistration {
  /// `arch` is the word after ':', or empty.
  using Create = std::function<llvm::Expected<std::unique_ptr<Target>>(llvm::StringRef name, llvm::StringRef arch,
                                                                       const CodeOptions &options)>;
  TargetRegistration(llvm::StringRef family, Create create);
};

} // namespace lacis

#endif // LACIS_TARGET_TARGET_H
