// SPDX-License-Identifier: Apache-2.0
/// \file
/// Turns a product whose loops are marked into roles: one producer loads tiles into a ring, consumers multiply them.
///
/// for i: for b: for i1, b1: y = sum over j  -->  for (i, b) in the worker's list: producer: for j: load; consumers:
/// for j: multiply; store. Both roles run the loops of one nest.
#include "DistributeTiles.h"
#include "LayoutNest.h"
#include "ShareNest.h"
#include "StatementRoles.h"
#include "lacis/Dialect/Lacis/IR/NestFacts.h"
#include "lacis/Transforms/Passes.h"

namespace lacis {
#define GEN_PASS_DEF_LACISFORMTILES
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

//===- The pass -----------------------------------------------------------===//

/// Marks that only tiles make something of, in a function without any.
static LogicalResult refuseMarks(func::FuncOp function) {
  constexpr StringLiteral noTiles = ", and no loop is tensorized; tensorize the loops of a tile, or leave the step out";
  for (unsigned number = 0; number < function.getNumArguments(); ++number)
    if (function.getArgAttr(number, "lacis.regroup"))
      return function.emitError("regroup: only tiles walk another layout of ")
             << function.getArgAttrOfType<StringAttr>(number, "lacis.name") << noTiles;
  LogicalResult result = success();
  function.walk([&](LoopOp loop) {
    if (loop.getBalance())
      result = loop.emitError("balance: only tiles are handed out in lists, as those of loop '")
               << loop.getName() << "' would be" << noTiles;
    else if (loop.getBind() == ParallelUnit::Warpgroup)
      result = loop.emitError("bind: only tiles are multiplied by a 'warpgroup', which loop '")
               << loop.getName() << "' is bound to" << noTiles;
    return succeeded(result) ? WalkResult::advance() : WalkResult::interrupt();
  });
  return result;
}

/// Are there no work lists, nor another layout of an operand? Then the nest itself is what runs.
static bool walksOwnLevels(func::FuncOp function) {
  for (unsigned number = 0; number < function.getNumArguments(); ++number)
    if (function.getArgAttr(number, "lacis.regroup"))
      return false;
  return !function.walk([](LoopOp loop) { return loop.getBalance() ? WalkResult::interrupt() : WalkResult::advance(); })
              .wasInterrupted();
}

/// The nests of a product: over the levels of its own format, or over an execution layout.
static FailureOr<SmallVector<Operation *>> nestsOf(func::FuncOp function) {
  if (walksOwnLevels(function))
    return SmallVector<Operation *>{function};
  FailureOr<TileNest> nest = readTileNest(function);
  if (failed(nest))
    return failure();
  return nest->product.isSampled() ? walkShares(*nest) : walkLayout(*nest);
}

/// Nests of statements become roles, one after another.
static LogicalResult formNests(func::FuncOp function, ArrayRef<Operation *> nests) {
  for (Operation *nest : nests) {
    FailureOr<LoopOpInterface> round = distributeTiles(nest);
    if (failed(round) || failed(formStatementRoles(function, *round)))
      return failure();
  }
  return success();
}

static LogicalResult formRoles(func::FuncOp function) {
  LevelLoopOp round = roundOfStatements(function);
  if (Nest loops(function); !round && !isTensorized(loops))
    return refuseMarks(function);
  FailureOr<SmallVector<Operation *>> nests = round ? SmallVector<Operation *>() : nestsOf(function);
  if (failed(nests) || failed(round ? formStatementRoles(function, round) : formNests(function, *nests)))
    return failure();
  for (unsigned number = 0; number < function.getNumArguments(); ++number)
    function.removeArgAttr(number, "lacis.staged");
  return success();
}

namespace {

struct FormTiles : lacis::impl::LacisFormTilesBase<FormTiles> {
  void runOnOperation() override {
    if (failed(formRoles(getOperation())))
      signalPassFailure();
  }
};

} // namespace
