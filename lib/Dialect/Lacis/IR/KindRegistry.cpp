// SPDX-License-Identifier: Apache-2.0
/// \file
/// The words of the grammar, and the rooms that bring them.
#include "lacis/Dialect/Lacis/IR/LacisDialect.h"

#include "lacis/Dialect/Lacis/IR/CoordinateInterface.cpp.inc"
#include "lacis/Dialect/Lacis/IR/ExtentInterface.cpp.inc"
#include "lacis/Dialect/Lacis/IR/BindingInterface.cpp.inc"

#include "lacis/Dialect/Lacis/IR/DerivedInterface.cpp.inc"

using namespace mlir;
using namespace lacis;

LevelBuilder::~LevelBuilder() = default;

const Kind *KindRegistry::find(StringRef mnemonic) const {
  auto found = kinds.find(mnemonic);
  return found == kinds.end() ? nullptr : &found->second;
}

const KindAlias *KindRegistry::findAlias(StringRef name) const {
  for (const KindAlias &alias : aliases)
    if (alias.name == name)
      return &alias;
  return nullptr;
}

const KindAlias *KindRegistry::findAlias(StringRef extent, StringRef coordinate) const {
  for (const KindAlias &alias : aliases)
    if (alias.extent == extent && alias.coordinate == coordinate)
      return &alias;
  return nullptr;
}

std::string KindRegistry::nearest(StringRef word, bool coordinates) const {
  SmallVector<std::pair<unsigned, StringRef>> candidates;
  for (const auto &[name, kind] : kinds)
    if (coordinates ? kind.isCoordinate : kind.isExtent)
      candidates.push_back({word.edit_distance(name), name});
  if (!coordinates)
    for (const KindAlias &alias : aliases)
      candidates.push_back({word.edit_distance(alias.name), alias.name});
  llvm::sort(candidates);
  candidates.erase(llvm::unique(candidates), candidates.end());
  std::string text;
  for (auto [distance, name] : ArrayRef(candidates).take_front(3))
    text += (text.empty() ? "'" : ", '") + name.str() + "'";
  return text;
}

static Room *&firstRoom() {
  static Room *first = nullptr;
  return first;
}

Room::Room(Function function) : function(function), next(firstRoom()) { firstRoom() = this; }

void Room::addAll(LacisDialect &dialect) {
  for (Room *room = firstRoom(); room; room = room->next)
    room->function(dialect);
}
