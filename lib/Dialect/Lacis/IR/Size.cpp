// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sizes that a launch computes: how they are put together, and their text.
#include "lacis/Dialect/Lacis/IR/Lacis.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lacis;

SizeAttr SizeAttr::argument(MLIRContext *context, int64_t number) {
  return get(context, SizeKind::Argument, number, -1, ArrayRef<SizeAttr>());
}

SizeAttr SizeAttr::product(MLIRContext *context, ArrayRef<SizeAttr> factors) {
  SmallVector<SizeAttr> kept;
  for (bool conditions : {true, false})
    for (SizeAttr size : factors)
      for (SizeAttr factor : size.getFactors())
        if ((factor.getKind() == SizeKind::Within) == conditions && factor.getConstant() != 1)
          kept.push_back(factor);
  if (kept.empty())
    return get(context, 1);
  return kept.size() == 1 ? kept[0] : get(context, SizeKind::Product, 1, -1, kept);
}

SizeAttr SizeAttr::plus(int64_t more) const {
  if (auto number = getConstant())
    return get(getContext(), *number + more);
  if (getKind() == SizeKind::Sum)
    return getNumber() + more == 0 && getOf().size() == 1
               ? getOf()[0]
               : get(getContext(), SizeKind::Sum, getNumber() + more, -1, getOf());
  return more == 0 ? *this : get(getContext(), SizeKind::Sum, more, -1, *this);
}

SizeAttr SizeAttr::plus(SizeAttr other) const {
  if (auto number = other.getConstant())
    return plus(*number);
  if (auto number = getConstant())
    return other.plus(*number);
  SmallVector<SizeAttr> parts;
  int64_t more = 0;
  for (SizeAttr size : {*this, other}) {
    bool isSum = size.getKind() == SizeKind::Sum;
    more += isSum ? size.getNumber() : 0;
    llvm::append_range(parts, isSum ? size.getOf() : ArrayRef(size));
  }
  return get(getContext(), SizeKind::Sum, more, -1, parts);
}

SizeAttr SizeAttr::min(SizeAttr other) const {
  auto number = getConstant(), another = other.getConstant();
  if (number && another)
    return get(getContext(), std::min(*number, *another));
  return *this == other ? other : get(getContext(), SizeKind::Min, 1, -1, {*this, other});
}

SizeAttr SizeAttr::ceilDiv(int64_t by) const {
  if (auto number = getConstant())
    return get(getContext(), llvm::divideCeil(*number, by));
  if (getKind() == SizeKind::CeilDiv)
    return get(getContext(), SizeKind::CeilDiv, getNumber() * by, -1, getOf());
  return by == 1 ? *this : get(getContext(), SizeKind::CeilDiv, by, -1, *this);
}

SizeAttr SizeAttr::within(int64_t above, int64_t upto) const {
  if (auto number = getConstant())
    return get(getContext(), *number > above && (upto < 0 || *number <= upto));
  return get(getContext(), SizeKind::Within, above, upto, *this);
}

std::optional<int64_t> SizeAttr::getConstant() const {
  return getKind() == SizeKind::Constant ? std::optional(getNumber()) : std::nullopt;
}

std::optional<int64_t> SizeAttr::getArgument() const {
  return getKind() == SizeKind::Argument ? std::optional(getNumber()) : std::nullopt;
}

SmallVector<SizeAttr, 4> SizeAttr::getFactors() const {
  return getKind() == SizeKind::Product ? SmallVector<SizeAttr, 4>(getOf()) : SmallVector<SizeAttr, 4>{*this};
}

void SizeAttr::walkArguments(function_ref<void(int64_t)> visit) const {
  if (auto number = getArgument())
    visit(*number);
  for (SizeAttr part : getOf())
    part.walkArguments(visit);
}

SizeAttr SizeAttr::replaceArguments(function_ref<SizeAttr(int64_t)> renumber) const {
  return replaceParts([&](SizeAttr part) { return part.getArgument() ? renumber(part.getNumber()) : SizeAttr(); });
}

SizeAttr SizeAttr::replaceParts(function_ref<SizeAttr(SizeAttr)> replace) const {
  if (SizeAttr other = replace(*this))
    return other;
  auto parts = llvm::map_to_vector(getOf(), [&](SizeAttr part) { return part.replaceParts(replace); });
  switch (getKind()) {
  case SizeKind::Constant:
  case SizeKind::Argument:
    return *this;
  case SizeKind::Product:
    return product(getContext(), parts);
  case SizeKind::Sum: {
    SizeAttr sum = parts[0];
    for (SizeAttr part : ArrayRef(parts).drop_front())
      sum = sum.plus(part);
    return sum.plus(getNumber());
  }
  case SizeKind::Min:
    return parts[0].min(parts[1]);
  case SizeKind::CeilDiv:
    return parts[0].ceilDiv(getNumber());
  case SizeKind::Within:
    return parts[0].within(getNumber(), getUpto());
  }
  llvm_unreachable("every kind is above");
}

LogicalResult SizeAttr::verify(function_ref<InFlightDiagnostic()> emitError, SizeKind kind, int64_t number,
                               int64_t upto, ArrayRef<SizeAttr> of) {
  if ((kind == SizeKind::Constant || kind == SizeKind::Argument) && number < 0)
    return emitError() << "size: a number from 0 on, not " << number;
  if (kind == SizeKind::CeilDiv && number < 1)
    return emitError() << "size: divided by " << number << "; divide by a number from 1 on";
  assert(kind != SizeKind::Min || of.size() == 2);
  return success();
}

//===- text ---------------------------------------------------------------===//

static void printSum(AsmPrinter &printer, SizeAttr size);

static void printAtom(AsmPrinter &printer, SizeAttr size) {
  switch (size.getKind()) {
  case SizeKind::Constant:
    printer << size.getNumber();
    return;
  case SizeKind::Argument:
    printer << "arg " << size.getNumber();
    return;
  case SizeKind::Min:
    printer << "min(";
    printSum(printer, size.getOf()[0]);
    printer << ", ";
    printSum(printer, size.getOf()[1]);
    printer << ')';
    return;
  case SizeKind::CeilDiv:
    printer << "ceildiv(";
    printSum(printer, size.getOf()[0]);
    printer << ", " << size.getNumber() << ')';
    return;
  default:
    printer << '(';
    printSum(printer, size);
    printer << ')';
  }
}

static void printProduct(AsmPrinter &printer, SizeAttr size) {
  llvm::interleave(size.getFactors(), [&](SizeAttr factor) { printAtom(printer, factor); }, [&] { printer << " * "; });
}

/// A sum or a condition binds the least.
static void printSum(AsmPrinter &printer, SizeAttr size) {
  if (size.getKind() == SizeKind::Sum) {
    llvm::interleave(size.getOf(), [&](SizeAttr part) { printProduct(printer, part); }, [&] { printer << " + "; });
    if (size.getNumber() != 0)
      printer << " + " << size.getNumber();
  } else if (size.getKind() == SizeKind::Within) {
    printProduct(printer, size.getOf()[0]);
    printer << " in [" << size.getNumber() + 1 << ", ";
    if (size.getUpto() < 0)
      printer << '?';
    else
      printer << size.getUpto();
    printer << ']';
  } else {
    printProduct(printer, size);
  }
}

void SizeAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printSum(printer, *this);
  printer << '>';
}

namespace {

/// Reads the text; a part that is none is a null attribute, and the parser has said so.
struct SizeParser {
  AsmParser &parser;

  SizeAttr make(SizeKind kind, int64_t number, int64_t upto = -1, ArrayRef<SizeAttr> of = {}) {
    SMLoc loc = parser.getCurrentLocation();
    return SizeAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(), kind, number, upto, of);
  }

  SizeAttr atom() {
    int64_t number;
    if (OptionalParseResult found = parser.parseOptionalInteger(number); found.has_value())
      return succeeded(*found) ? make(SizeKind::Constant, number) : SizeAttr();
    if (succeeded(parser.parseOptionalKeyword("arg")))
      return succeeded(parser.parseInteger(number)) ? make(SizeKind::Argument, number) : SizeAttr();
    bool isLeast = succeeded(parser.parseOptionalKeyword("min"));
    bool divides = !isLeast && succeeded(parser.parseOptionalKeyword("ceildiv"));
    if (parser.parseLParen())
      return {};
    SizeAttr inner = sum();
    if (isLeast) {
      SizeAttr other = inner && succeeded(parser.parseComma()) ? sum() : SizeAttr();
      return other && succeeded(parser.parseRParen()) ? inner.min(other) : SizeAttr();
    }
    if (!inner || (divides && (parser.parseComma() || parser.parseInteger(number))) || parser.parseRParen())
      return {};
    return divides ? make(SizeKind::CeilDiv, number, -1, inner) : inner;
  }

  /// `first` is a factor that was read before.
  SizeAttr product(SizeAttr first = {}) {
    SmallVector<SizeAttr> factors;
    if (first)
      factors.push_back(first);
    do {
      factors.push_back(atom());
      if (!factors.back())
        return {};
    } while (succeeded(parser.parseOptionalStar()));
    return SizeAttr::product(parser.getContext(), factors);
  }

  SizeAttr sum() {
    SizeAttr whole = product();
    int64_t number, upto = -1;
    while (whole && succeeded(parser.parseOptionalPlus())) {
      if (OptionalParseResult found = parser.parseOptionalInteger(number); !found.has_value()) {
        SizeAttr part = product();
        whole = part ? whole.plus(part) : part;
      } else if (failed(*found)) {
        return {};
      } else if (failed(parser.parseOptionalStar())) {
        whole = whole.plus(number);
      } else {
        SizeAttr factor = make(SizeKind::Constant, number), part = factor ? product(factor) : factor;
        whole = part ? whole.plus(part) : part;
      }
    }
    if (!whole || failed(parser.parseOptionalKeyword("in")))
      return whole;
    if (parser.parseLSquare() || parser.parseInteger(number) || parser.parseComma() ||
        (failed(parser.parseOptionalQuestion()) && parser.parseInteger(upto)) || parser.parseRSquare())
      return {};
    return make(SizeKind::Within, number - 1, upto, whole);
  }
};

} // namespace

Attribute SizeAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  SizeAttr size = SizeParser{parser}.sum();
  return size && succeeded(parser.parseGreater()) ? size : SizeAttr();
}
