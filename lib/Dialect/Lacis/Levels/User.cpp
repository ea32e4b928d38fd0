// SPDX-License-Identifier: Apache-2.0
/// \file
/// A kind that the user defines, `@k`: its facts and its code come with the operation that defines it.
#include "lacis/Dialect/Lacis/Levels/Levels.h"

using namespace mlir;
using namespace lacis;

Attribute UserKindAttr::fromArguments(MLIRContext *context, KindArguments &arguments, EmitError emitError) {
  if (FlatSymbolRefAttr symbol = arguments.takeSymbol())
    return get(context, symbol, DictionaryAttr());
  emitError() << "level kind 'kind' needs a symbol: write '@name'";
  return {};
}

void UserKindAttr::printArguments(KindArguments &arguments) const { arguments.addSymbol(getSymbol()); }

FlatSymbolRefAttr UserKindAttr::getDefinition() const { return getSymbol(); }

Attribute UserKindAttr::withFacts(DictionaryAttr facts) const { return get(getContext(), getSymbol(), facts); }

/// Until its operation is looked up a kind is known to have nothing.
static bool says(UserKindAttr kind, StringRef fact) {
  auto flag = kind.getFacts() ? kind.getFacts().getAs<BoolAttr>(fact) : nullptr;
  return flag && flag.getValue();
}

static bool hasMethod(UserKindAttr kind, StringRef name) {
  return kind.getFacts() && llvm::is_contained(kind.getFacts().getAs<ArrayAttr>("methods").getAsValueRange<StringAttr>(), name);
}

static BufferSpec::Length lengthOf(StringRef per, int64_t plus) {
  if (per == "parent")
    return plus ? BufferSpec::Boundaries : BufferSpec::Parents;
  return per == "position" ? BufferSpec::Positions : BufferSpec::Unknown;
}

SmallVector<BufferSpec> UserKindAttr::getBuffers() const {
  SmallVector<BufferSpec> buffers;
  if (!getFacts())
    return buffers;
  for (auto array : getFacts().getAs<ArrayAttr>("arrays").getAsRange<DictionaryAttr>()) {
    auto type = cast<IntegerType>(array.getAs<TypeAttr>("type").getValue());
    buffers.push_back({array.getAs<StringAttr>("name").getValue(), IntegerType::get(getContext(), type.getWidth()),
                       lengthOf(array.getAs<StringAttr>("per").getValue(), array.getAs<IntegerAttr>("plus").getInt()),
                       type.isUnsigned()});
  }
  return buffers;
}

bool UserKindAttr::hasCode() const { return static_cast<bool>(getFacts()); }

bool UserKindAttr::isPadded() const { return says(*this, "padded"); }

/// A position may have a coordinate and hold no entry, as with an implicit one: the array `valid` says it.
bool UserKindAttr::isImplicit() const { return says(*this, "fills"); }

bool UserKindAttr::isOrdered() const { return says(*this, "ordered"); }

bool UserKindAttr::isUnique() const { return says(*this, "unique"); }

bool UserKindAttr::isStateless() const { return !hasMethod(*this, "open"); }

std::optional<int64_t> UserKindAttr::getTrip() const {
  auto count = getFacts() ? getFacts().getAs<IntegerAttr>("fixed") : nullptr;
  return count ? std::optional<int64_t>(count.getInt()) : std::nullopt;
}

/// The kind of levels with as many positions under each parent, where it is one.
static FixedExtentAttr fixedOf(UserKindAttr kind) {
  std::optional<int64_t> trip = kind.getTrip();
  return trip ? FixedExtentAttr::get(kind.getContext(), *trip) : FixedExtentAttr();
}

std::pair<Value, Value> UserKindAttr::emitBounds(LevelBuilder &level, Value parent) const {
  if (FixedExtentAttr fixed = fixedOf(*this))
    return fixed.emitBounds(level, parent);
  SmallVector<Value> ends = level.call(getSymbol(), "bounds", parent);
  return {ends[0], ends[1]};
}

Value UserKindAttr::emitSlots(LevelBuilder &level, Value parents) const {
  FixedExtentAttr fixed = fixedOf(*this);
  return fixed ? fixed.emitSlots(level, parents) : Value();
}

bool UserKindAttr::hasOwner() const { return getTrip() || hasMethod(*this, "owner"); }

Value UserKindAttr::emitOwner(LevelBuilder &level, Value position, Value parents) const {
  if (!hasMethod(*this, "owner"))
    return fixedOf(*this).emitOwner(level, position, parents);
  return level.call(getSymbol(), "owner", {position, parents})[0];
}

SmallVector<Value> UserKindAttr::emitOpen(LevelBuilder &level, Value parent, Value lo) const {
  return isStateless() ? SmallVector<Value>() : level.call(getSymbol(), "open", {parent, lo});
}

Coordinate UserKindAttr::emitCoordinate(LevelBuilder &level, Value lo, Value pos) const {
  return emitNext(level, lo, pos, {});
}

Coordinate UserKindAttr::emitNext(LevelBuilder &level, Value lo, Value pos, ValueRange state) const {
  SmallVector<Value> arguments{lo, pos};
  llvm::append_range(arguments, state);
  SmallVector<Value> found = level.call(getSymbol(), "coordinate", arguments);
  return {found[0], isPadded() ? found[1] : Value(), SmallVector<Value>(ArrayRef(found).take_back(state.size()))};
}

bool UserKindAttr::canSeek() const { return hasMethod(*this, "seek"); }

Value UserKindAttr::emitSeek(LevelBuilder &level, Value lo, Value hi, Value crd) const {
  return canSeek() ? level.call(getSymbol(), "seek", {lo, hi, crd})[0] : Value();
}

bool UserKindAttr::canFind() const { return hasMethod(*this, "find"); }

std::pair<Value, Value> UserKindAttr::emitFind(LevelBuilder &level, Value parent, Value crd) const {
  SmallVector<Value> found = level.call(getSymbol(), "find", {parent, crd});
  return {found[0], found[1]};
}
