// SPDX-License-Identifier: Apache-2.0
/// \file
/// The arguments of a level kind, as written between `<` and `>`.
#ifndef LACIS_DIALECT_LACIS_IR_KINDARGUMENTS_H
#define LACIS_DIALECT_LACIS_IR_KINDARGUMENTS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OpImplementation.h"

namespace lacis {

using EmitError = llvm::function_ref<mlir::InFlightDiagnostic()>;

/// Integers (or `?`, as `ShapedType::kDynamic`) by place, flags and widths by name. A kind takes those it knows;
/// what nobody took is an error.
class KindArguments {
public:
  explicit KindArguments(mlir::MLIRContext *context) : context(context) {}

  /// Parses `<` arg,+ `>` when it is there.
  mlir::ParseResult parse(mlir::AsmParser &parser);
  void print(mlir::AsmPrinter &printer) const;

  /// The next integer, or nothing when there is none left.
  std::optional<int64_t> takeInteger();
  bool takeFlag(llvm::StringRef name, bool otherwise);
  /// An integer type; i32 when absent.
  mlir::IntegerType takeWidth(llvm::StringRef name);
  /// The symbol of a kind that the user defines, `@k`, or null.
  mlir::FlatSymbolRefAttr takeSymbol();
  /// True when `name` is written, taken or not.
  bool has(llvm::StringRef name) const;
  /// Refuses what no one took.
  mlir::LogicalResult verifyAllTaken(llvm::StringRef kind, EmitError emitError) const;

  void addSymbol(mlir::FlatSymbolRefAttr symbol) { this->symbol = symbol; }
  void addInteger(int64_t value);
  void addFlag(llvm::StringRef name, bool value, bool otherwise);
  void addWidth(llvm::StringRef name, mlir::IntegerType type);

  /// Set by the extent before its coordinate is read: the coordinate's padding when the text does not say.
  bool padByDefault = false;

private:
  struct Argument {
    std::string name;
    mlir::Attribute value;
    bool taken = false;
  };
  mlir::ParseResult parseOne(mlir::AsmParser &parser);
  Argument *find(llvm::StringRef name);

  mlir::MLIRContext *context;
  mlir::FlatSymbolRefAttr symbol;
  llvm::SmallVector<Argument> arguments;
};

using KindFactory = mlir::Attribute (*)(mlir::MLIRContext *context, KindArguments &arguments, EmitError emitError);

/// The stand-alone form of a kind, `#lacis.var<pos=i64>`.
mlir::Attribute parseKindAttribute(mlir::AsmParser &parser, llvm::StringRef kind, KindFactory factory);

/// Refuses an index width that is not i8, i16, i32 or i64.
mlir::LogicalResult verifyWidth(llvm::StringRef name, mlir::IntegerType type, EmitError emitError);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_KINDARGUMENTS_H
