// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a nest asks the bindings of a format.
#include "lacis/Dialect/Lacis/IR/BindingOps.h"

#include "lacis/Dialect/Lacis/IR/BindingCode.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace lacis;

LogicalResult LookupOp::verify() {
  FormatAttr format = formatOf(getTensor());
  if (!format || getBinding() >= format.getBindings().size() || bindingArray(format, getBinding()).empty())
    return emitOpError("needs a tensor with a format whose binding ") << getBinding() << " stores an array";
  return success();
}

LogicalResult SolveOp::verify() {
  FormatAttr format = formatOf(getTensor());
  if (!format || getBinding() >= format.getBindings().size())
    return emitOpError("needs a tensor with a format that has a binding ") << getBinding();
  auto binding = cast<BindingInterface>(format.getBindings()[getBinding()]);
  if (!binding.getDefinition() || !llvm::is_contained(binding.getOperands(), getName()))
    return emitOpError("binding ") << getBinding() << " is no user's own of axis " << getName();
  return success();
}

bool lacis::isArithmetic(Operation *op) {
  return isa_and_nonnull<arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
         isa<scf::IfOp, scf::ForOp, scf::WhileOp, scf::YieldOp, scf::ConditionOp>(op);
}

DictionaryAttr BindingOp::getFacts() {
  Builder b(getContext());
  SmallVector<NamedAttribute> facts;
  if (getSameAttr())
    facts.push_back(b.getNamedAttr("same", getSameAttr()));
  return b.getDictionaryAttr(facts);
}

ParseResult BindingOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  OpAsmParser::Argument own;
  if (parser.parseSymbolName(name, "sym_name", result.attributes))
    return failure();
  if (int64_t same = 0; succeeded(parser.parseOptionalKeyword("same"))) {
    if (parser.parseInteger(same))
      return failure();
    result.addAttribute("same", parser.getBuilder().getI64IntegerAttr(same));
  }
  own.type = parser.getBuilder().getIndexType();
  return failure(parser.parseKeyword("inverse") || parser.parseLParen() || parser.parseArgument(own) ||
                 parser.parseRParen() || parser.parseRegion(*result.addRegion(), own));
}

void BindingOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printSymbolName(getSymName());
  if (std::optional<uint64_t> same = getSame())
    p << " same " << *same;
  p << " inverse(" << getInverse().getArgument(0) << ") ";
  p.printRegion(getInverse(), /*printEntryBlockArgs=*/false);
}

LogicalResult BindingOp::verifyRegions() {
  auto answer = dyn_cast<AnswerOp>(getInverse().front().back());
  if (!answer || answer.getNumOperands() == 0 || !llvm::all_of(answer.getOperandTypes(), llvm::IsaPred<IndexType>) ||
      !llvm::equal(getInverse().getArgumentTypes(), ArrayRef<Type>{IndexType::get(getContext())}))
    return emitOpError("takes one index, and ends with 'lacis.answer' of an index for each axis");
  if (getSame() && *getSame() >= getNumAxes())
    return emitOpError("has as many coordinates as axis ") << *getSame() << ", of " << getNumAxes();
  WalkResult pure = getInverse().walk([&](Operation *op) -> WalkResult {
    auto isNumber = [](Type type) { return type.isIntOrIndex(); };
    if ((isa<AnswerOp>(op) || isArithmetic(op)) && llvm::all_of(op->getResultTypes(), isNumber))
      return success();
    return op->emitError("'") << op->getName() << "' has no place in a binding: it is integer arithmetic and 'scf' loops";
  });
  return failure(pure.wasInterrupted());
}

#define GET_OP_CLASSES
#include "lacis/Dialect/Lacis/IR/BindingOps.cpp.inc"
