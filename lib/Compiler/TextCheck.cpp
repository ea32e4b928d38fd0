// SPDX-License-Identifier: Apache-2.0
/// \file
/// Counts how deep brackets nest, aliases included, before a parser recurses into them.
#include "lacis/Compiler/TextCheck.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace lacis;
using llvm::StringRef;

/// Brackets inside one another. Parsers, printers and walks take up to 2 KB of the stack for each, and threads have
/// 1 MB of it or more; the deepest kernel of the tests has 30.
static constexpr size_t kMostDepth = 256;

static constexpr char kProperties = 'P';

namespace {

class Scanner {
public:
  Scanner(StringRef text, StringRef file, TextKind kind)
      : rest(text), file(file), isMLIR(kind == TextKind::MLIR), comment(isMLIR ? "//" : ";") {}

  std::string run();

private:
  void skipLine() { rest = rest.drop_until([](char c) { return c == '\n'; }); }
  StringRef takeString();
  StringRef takeName();
  bool open(char bracket, size_t deeper = 0);
  void close(char bracket);
  bool nameAlias(StringRef name);
  bool checkIterators(StringRef key);
  bool checkArray(StringRef name);
  bool scanToken();
  bool refuse(const llvm::Twine &message) {
    problem = (file + ":" + llvm::Twine(line) + ":1: error: " + message + "\n").str();
    return false;
  }

  StringRef rest, file;
  bool isMLIR;
  StringRef comment;
  size_t line = 1;
  std::string problem;
  llvm::SmallVector<char> brackets; // the open ones; kProperties for that of `<{ ... }>`
  bool expectsValue = false;     // an attribute cannot end here
  char before = 0;               // the first character of the last token
  size_t signs = 0;              // one behind the other, each of which negates an affine expression
  StringRef defined;             // the alias whose value this is
  llvm::StringMap<size_t> depth; // of what aliases stand for
};

} // namespace

StringRef Scanner::takeString() {
  size_t end = 1;
  while (end < rest.size() && rest[end] != '"' && !(isMLIR && rest[end] == '\n'))
    end += isMLIR && rest[end] == '\\' ? 2 : 1;
  StringRef inside = rest.slice(1, end);
  line += inside.count('\n');
  rest = rest.drop_front(std::min(end + 1, rest.size()));
  return inside;
}

StringRef Scanner::takeName() {
  StringRef name = rest.take_while([](char c) { return llvm::isAlnum(c) || StringRef("_$.-").contains(c); });
  rest = rest.drop_front(name.size());
  return name;
}

bool Scanner::open(char bracket, size_t deeper) {
  if (bracket)
    brackets.push_back(bracket);
  size_t depthHere = brackets.size() + deeper;
  if (!defined.empty())
    depth[defined] = std::max(depth[defined], depthHere);
  return depthHere <= kMostDepth ||
         refuse("the text is nested " + llvm::Twine(depthHere) + " deep here, what aliases stand for included; " +
                llvm::Twine(kMostDepth) + " brackets inside one another are the most");
}

/// A comparison has no second bracket, so what is open inside of others closes with them.
void Scanner::close(char bracket) {
  char opening = bracket == ')' ? '(' : bracket == ']' ? '[' : bracket == '}' ? '{' : '<';
  if (opening == '<') {
    if (!brackets.empty() && brackets.back() == '<')
      brackets.pop_back();
    return;
  }
  size_t place = brackets.size();
  auto isOpening = [&](char c) { return c == opening || (opening == '{' && c == kProperties); };
  while (place > 0 && !isOpening(brackets[place - 1]))
    --place;
  if (place > 0)
    brackets.truncate(place - 1);
}

/// `#name = value` stands outside of all brackets; elsewhere the name is as deep as what it stands for.
bool Scanner::nameAlias(StringRef name) {
  StringRef after = rest.ltrim(" \t");
  if (after.starts_with("=") && !after.starts_with("==")) {
    brackets.clear();
    defined = name;
    depth[defined] = 0;
    return true;
  }
  auto known = depth.find(name);
  return open(0, known == depth.end() ? 0 : known->second);
}

/// The parser of 'linalg.generic' takes each of them for text. Properties are read by a parser that looks.
bool Scanner::checkIterators(StringRef key) {
  StringRef after = rest.ltrim();
  bool isLooked = !brackets.empty() && brackets.back() == kProperties;
  if (key != "iterator_types" || isLooked || !after.consume_front("="))
    return true;
  after = after.ltrim();
  bool fits = after.consume_front("[");
  for (after = after.ltrim(); fits && !after.consume_front("]"); after = after.ltrim()) {
    fits = after.consume_front("\"");
    after = after.drop_until([](char c) { return c == '"' || c == '\n'; });
    fits &= after.consume_front("\"");
    after = after.ltrim();
    fits &= after.consume_front(",") || after.starts_with("]");
  }
  return fits || refuse("'iterator_types' is a list of names in quotes, \"parallel\" or \"reduction\"");
}

/// The parser of `array<type: ...>` takes an index for a number with a width.
bool Scanner::checkArray(StringRef name) {
  StringRef after = rest.ltrim();
  if (!isMLIR || name != "array" || !after.consume_front("<"))
    return true;
  after = after.ltrim();
  bool isIndex = after.consume_front("index") && (after.empty() || !llvm::isAlnum(after.front()));
  return !isIndex || refuse("'array' is of numbers with a width: i1, i8, i16, i32, i64, f32 or f64; got index");
}

/// One token; false where it is refused.
bool Scanner::scanToken() {
  char first = rest.front();
  if (first == '\n')
    ++line;
  if (llvm::isSpace(first)) {
    rest = rest.drop_front();
    return true;
  }
  if (rest.starts_with(comment)) {
    skipLine();
    return true;
  }
  bool wasExpected = expectsValue, isWord = llvm::isAlpha(first) || first == '"' || first == '%' || first == '_';
  expectsValue = false;
  if (isWord && brackets.empty() && !wasExpected)
    defined = {}; // the value of an alias has ended
  char previous = std::exchange(before, first);
  if (first == '"')
    return checkIterators(takeString());
  if (llvm::isAlpha(first) || first == '_') {
    StringRef name = takeName();
    return checkIterators(name) && checkArray(name);
  }
  rest = rest.drop_front();
  if (isMLIR && (first == '#' || first == '!'))
    return nameAlias(takeName());
  if (first == '-' && rest.consume_front(">")) {
    expectsValue = true;
    before = 0;
    return true;
  }
  expectsValue = StringRef("=:,").contains(first);
  signs = first == '-' ? signs + 1 : 0;
  if (StringRef("([{<").contains(first))
    return open(first == '{' && previous == '<' ? kProperties : first);
  if (StringRef(")]}>").contains(first))
    close(first);
  return signs <= kMostDepth || open(0, signs);
}

std::string Scanner::run() {
  while (!rest.empty() && scanToken()) {
  }
  return problem;
}

std::string lacis::objectionToText(StringRef text, StringRef file, TextKind kind) {
  return Scanner(text, file, kind).run();
}
