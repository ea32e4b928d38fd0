// SPDX-License-Identifier: Apache-2.0
/// \file
/// The words of the grammar: attributes by mnemonic, and aliases of extent and coordinate pairs.
#ifndef LACIS_DIALECT_LACIS_IR_KINDREGISTRY_H
#define LACIS_DIALECT_LACIS_IR_KINDREGISTRY_H

#include "lacis/Dialect/Lacis/IR/KindArguments.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

namespace lacis {

class ExtentInterface;
class CoordinateInterface;
class LacisDialect;

/// What a mnemonic of the dialect means.
struct Kind {
  mlir::Attribute (*parse)(mlir::AsmParser &parser, mlir::Type type) = nullptr;
  void (*print)(mlir::Attribute attr, mlir::AsmPrinter &printer) = nullptr;
  /// Null for attributes that are no level kind.
  KindFactory fromArguments = nullptr;
  bool isExtent = false;
  bool isCoordinate = false;
};

/// An alias such as `compressed = var*crd`.
struct KindAlias {
  llvm::StringRef name, extent, coordinate;
};

/// Filled while the dialect loads, read afterwards.
class KindRegistry {
public:
  template <typename Attr> void add();
  void addAlias(llvm::StringRef name, llvm::StringRef extent, llvm::StringRef coordinate) {
    aliases.push_back({name, extent, coordinate});
  }

  const Kind *find(llvm::StringRef mnemonic) const;
  const KindAlias *findAlias(llvm::StringRef name) const;
  const KindAlias *findAlias(llvm::StringRef extent, llvm::StringRef coordinate) const;
  llvm::StringRef getMnemonic(mlir::Attribute attr) const { return mnemonics.lookup(attr.getTypeID()); }
  /// Up to three words closest to `word`, among the aliases and extents (or coordinates), quoted.
  std::string nearest(llvm::StringRef word, bool coordinates) const;

private:
  llvm::StringMap<Kind> kinds;
  llvm::DenseMap<mlir::TypeID, llvm::StringRef> mnemonics;
  llvm::SmallVector<KindAlias> aliases;
};

/// A folder's part of the dialect: a static object whose function runs when the dialect loads.
///
///   static lacis::Room room([](lacis::LacisDialect &dialect) { dialect.addKinds<MyExtentAttr>(); });
class Room {
public:
  using Function = void (*)(LacisDialect &dialect);
  explicit Room(Function function);
  static void addAll(LacisDialect &dialect);

private:
  Function function;
  Room *next;
};

namespace detail {
template <typename T> using HasParse = decltype(T::parse(std::declval<mlir::AsmParser &>(), mlir::Type()));
template <typename T> using HasFromArguments = decltype(&T::fromArguments);
} // namespace detail

template <typename Attr> void KindRegistry::add() {
  Kind kind;
  kind.parse = [](mlir::AsmParser &parser, mlir::Type type) -> mlir::Attribute {
    if constexpr (llvm::is_detected<detail::HasParse, Attr>::value)
      return Attr::parse(parser, type);
    else
      return Attr::get(parser.getContext());
  };
  kind.print = [](mlir::Attribute attr, mlir::AsmPrinter &printer) {
    if constexpr (llvm::is_detected<detail::HasParse, Attr>::value)
      llvm::cast<Attr>(attr).print(printer);
  };
  if constexpr (llvm::is_detected<detail::HasFromArguments, Attr>::value)
    kind.fromArguments = &Attr::fromArguments;
  kind.isExtent = std::is_base_of_v<ExtentInterface::Trait<Attr>, Attr>;
  kind.isCoordinate = std::is_base_of_v<CoordinateInterface::Trait<Attr>, Attr>;
  kinds[Attr::getMnemonic()] = kind;
  mnemonics[mlir::TypeID::get<Attr>()] = Attr::getMnemonic();
}

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_KINDREGISTRY_H
