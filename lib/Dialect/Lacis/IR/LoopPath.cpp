// SPDX-License-Identifier: Apache-2.0
/// \file
/// What loops are called: letters, and the path of what they belong to.
#include "lacis/Dialect/Lacis/IR/LacisOps.h"

using namespace mlir;
using namespace lacis;

//===- The attribute ------------------------------------------------------===//

LogicalResult PathAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<PathKind> kinds,
                               ArrayRef<StringAttr> names) {
  if (kinds.empty() || kinds.size() != names.size())
    return emitError() << "a path has a name for each step, at least one";
  for (auto [kind, name] : llvm::zip(kinds, names))
    if (name.empty() || name.getValue().contains('.'))
      return emitError() << stringifyPathKind(kind) << " '" << name.getValue()
                         << "': a step of a path has a name without dots; what it belongs to is a step before it";
  if (kinds.back() == PathKind::Rows)
    return emitError() << "rows '" << names.back().getValue() << "': a step behind says whose entries are walked in shares";
  return success();
}

FailureOr<PathAttr> PathAttr::parseOptional(AsmParser &parser) {
  SmallVector<PathKind> kinds;
  SmallVector<StringAttr> names;
  SMLoc location = parser.getCurrentLocation();
  auto parseStep = [&]() -> ParseResult {
    StringRef word;
    SMLoc at = parser.getCurrentLocation();
    if (parser.parseKeyword(&word))
      return failure();
    std::optional<PathKind> kind = symbolizePathKind(word);
    if (!kind)
      return parser.emitError(at) << "'" << word << "' is no kind of a step of a path; there are 'case', 'part', 'copy', "
                                  << "'rows', 'nest', 'statement' and 'phase'";
    kinds.push_back(*kind);
    return parser.parseAttribute(names.emplace_back());
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::OptionalLessGreater, parseStep))
    return failure();
  if (kinds.empty())
    return PathAttr();
  auto refuse = [&] { return parser.emitError(location); };
  if (failed(verify(refuse, kinds, names)))
    return failure();
  return get(parser.getContext(), kinds, names);
}

Attribute PathAttr::parse(AsmParser &parser, Type) {
  FailureOr<PathAttr> path = parseOptional(parser);
  if (failed(path) || *path)
    return succeeded(path) ? *path : PathAttr();
  parser.emitError(parser.getCurrentLocation(), "a path has at least one step, as in '<part \"ell\">'");
  return {};
}

void PathAttr::print(AsmPrinter &p) const {
  p << '<';
  llvm::interleaveComma(llvm::zip(getKinds(), getNames()), p,
                        [&](auto step) { p << stringifyPathKind(std::get<0>(step)) << ' ' << std::get<1>(step); });
  p << '>';
}

PathAttr PathAttr::dropFirst() const {
  return getKinds().size() == 1 ? PathAttr() : get(getContext(), getKinds().drop_front(), getNames().drop_front());
}

PathAttr PathAttr::dropLast() const {
  return getKinds().size() == 1 ? PathAttr() : get(getContext(), getKinds().drop_back(), getNames().drop_back());
}

/// What stands behind a step's name.
static StringRef signOf(PathKind kind) { return kind == PathKind::Rows ? "_" : "."; }

std::string PathAttr::spell() const {
  std::string spelled;
  for (auto [kind, name] : llvm::zip(getKinds(), getNames()))
    spelled += (name.getValue() + signOf(kind)).str();
  return spelled;
}

bool lacis::isSpelled(StringRef name, StringRef letters, PathAttr path) {
  if (path)
    for (auto [kind, step] : llvm::zip(path.getKinds(), path.getNames()))
      if (!name.consume_front(step.getValue()) || !name.consume_front(signOf(kind)))
        return false;
  return name == letters;
}

//===- Names of loops -----------------------------------------------------===//

static StringRef spelled(MLIRContext *context, StringRef letters, PathAttr path) {
  return path ? StringAttr::get(context, path.spell() + letters).getValue() : letters;
}

StringRef LoopOp::getName() { return spelled(getContext(), getLetters(), getPathAttr()); }

StringRef LevelLoopOp::getName() { return spelled(getContext(), getLetters(), getPathAttr()); }

PathAttr lacis::pathOf(MLIRContext *context, PathKind kind, StringRef name) {
  return PathAttr::get(context, kind, StringAttr::get(context, name));
}

PathAttr lacis::join(PathAttr outer, PathAttr inner) {
  if (!outer || !inner)
    return outer ? outer : inner;
  SmallVector<PathKind> kinds(outer.getKinds());
  SmallVector<StringAttr> names(outer.getNames());
  llvm::append_range(kinds, inner.getKinds());
  llvm::append_range(names, inner.getNames());
  return PathAttr::get(outer.getContext(), kinds, names);
}

PathAttr lacis::nestOf(MLIRContext *context, const LoopName &loop) {
  return join(loop.path, pathOf(context, PathKind::Nest, loop.letters));
}

LoopName lacis::joined(MLIRContext *context, const LoopName &rows, const LoopName &entries) {
  if (!entries.path)
    return {rows.letters + "_" + entries.letters, rows.path};
  SmallVector<PathKind> kinds{PathKind::Rows};
  SmallVector<StringAttr> names{StringAttr::get(context, rows.letters)};
  llvm::append_range(kinds, entries.path.getKinds());
  llvm::append_range(names, entries.path.getNames());
  return {entries.letters, join(rows.path, PathAttr::get(context, kinds, names))};
}

//===- Names as steps spell them ------------------------------------------===//

std::string lacis::prefixOf(StringRef nest) { return (nest + ".").str(); }

std::pair<StringRef, StringRef> lacis::splitName(StringRef name) {
  return name.contains('.') ? name.rsplit('.') : std::pair(StringRef(), name);
}

std::string lacis::caseName(int64_t most) { return "upto" + std::to_string(most); }

StringRef lacis::letterOf(StringRef loop) { return splitName(loop).second.rtrim("0123456789"); }

SmallVector<std::pair<StringRef, StringRef>> lacis::joinedIn(StringRef name) {
  SmallVector<std::pair<StringRef, StringRef>> found{name.rsplit('_')};
  for (size_t at = name.find('_'); name.contains('.') && at != StringRef::npos; at = name.find('_', at + 1))
    found.push_back({name.take_front(at), name.drop_front(at + 1)});
  return found;
}
