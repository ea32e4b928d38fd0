// SPDX-License-Identifier: Apache-2.0
/// \file
/// copy_transposed 16 of x[b, j] to t[j, b]  -->  16 vectors x[b, :], transposed in registers to 16 vectors t[j, :]
#include "LoopLowering.h"

using namespace mlir;
using namespace lacis;

namespace {

/// Where the rows of a tile begin: `stride` elements apart, at multiples of `alignment` bytes.
struct Rows {
  Value base, stride;
  unsigned alignment;
};

/// Emits the copy of one tile.
class RowsCopy {
public:
  RowsCopy(OpBuilder &b, Location loc, VectorType row) : b(b), loc(loc), row(row), size(row.getDimSize(0)) {}

  void emit(Rows source, Rows target) {
    SmallVector<Value> rows;
    for (int64_t n = 0; n < size; ++n)
      rows.push_back(LLVM::LoadOp::create(b, loc, row, address(source, n), source.alignment));
    transpose(rows);
    for (int64_t n = 0; n < size; ++n)
      LLVM::StoreOp::create(b, loc, rows[n], address(target, n), target.alignment);
  }

private:
  Value address(Rows rows, int64_t n) {
    Value number = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(n));
    return elementAddress(b, loc, rows.base, arith::MulIOp::create(b, loc, rows.stride, number), row.getElementType());
  }

  /// Rows are interleaved within parts of 128 bits, then whole parts sorted: each step is one instruction of AVX.
  void transpose(MutableArrayRef<Value> rows) {
    int64_t part = std::clamp<int64_t>(128 / row.getElementTypeBitWidth(), 1, size);
    for (int64_t run = 1; run < part; run *= 2)
      exchange(rows, run, part / 2, [&](int64_t lane) {
        int64_t at = lane % part, second = at / run % 2;
        return lane - at + at / run / 2 * run + at % run + second * size;
      });
    for (int64_t run = part; run < size; run *= 2)
      exchange(rows, run, part, [&](int64_t lane) { return lane + lane / part * part; });
    for (int64_t n = 0; n < size; ++n) // what was interleaved lies in the order of reversed bits
      if (int64_t other = n - n % part + reversed(n % part, part); other > n)
        std::swap(rows[n], rows[other]);
  }

  /// Each pair of rows `distance` apart becomes the lanes `source` of both, and those `further` on.
  void exchange(MutableArrayRef<Value> rows, int64_t distance, int64_t further,
                llvm::function_ref<int64_t(int64_t)> source) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < size; ++lane) {
      low.push_back(source(lane));
      high.push_back(source(lane) + further);
    }
    for (int64_t n = 0; n < size; ++n) {
      if (n & distance)
        continue;
      Value first = rows[n], second = rows[n + distance];
      rows[n] = vector::ShuffleOp::create(b, loc, first, second, low);
      rows[n + distance] = vector::ShuffleOp::create(b, loc, first, second, high);
    }
  }

  static int64_t reversed(int64_t number, int64_t end) {
    int64_t result = 0;
    for (int64_t bit = 1; bit < end; bit *= 2, number /= 2)
      result = 2 * result + number % 2;
    return result;
  }

  OpBuilder &b;
  Location loc;
  VectorType row;
  int64_t size;
};

} // namespace

/// The module's function that copies such tiles: of a pointer and a stride, to a pointer and a stride.
static LLVM::LLVMFuncOp copyFunction(ModuleOp module, VectorType row, unsigned sourceAlignment,
                                     unsigned targetAlignment) {
  std::string name;
  llvm::raw_string_ostream(name) << "copy_transposed_" << row.getDimSize(0) << "x" << row.getElementType() << "_"
                                 << sourceAlignment << "_" << targetAlignment;
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return known;
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  Location loc = b.getUnknownLoc();
  Type pointer = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {pointer, i64, pointer, i64});
  auto function = LLVM::LLVMFuncOp::create(b, loc, name, type);
  function.setNoInline(true); // made once, whatever calls it
  Block *body = function.addEntryBlock(b);
  b.setInsertionPointToStart(body);
  RowsCopy(b, loc, row)
      .emit({body->getArgument(0), body->getArgument(1), sourceAlignment},
            {body->getArgument(2), body->getArgument(3), targetAlignment});
  LLVM::ReturnOp::create(b, loc, ValueRange());
  return function;
}

LogicalResult LoopLowering::lowerCopyTransposed(OpBuilder &b, CopyTransposedOp op) {
  Location loc = op.getLoc();
  int64_t size = op.getSize();
  auto rowsOf = [&](Value tensor, ValueRange indices, unsigned rows, unsigned along) -> std::optional<Rows> {
    DenseAccess access(b, loc, arguments, workspaces, tensor, mapping.lookupOrNull(tensor));
    for (unsigned axis : {rows, along})
      if (failed(requireEven(op, access, indices, axis, size)))
        return std::nullopt;
    return Rows{access.address(mapped(indices)), access.strideOf(rows),
                access.alignment(along, knownMultiple(indices[along]), size)};
  };
  std::optional<Rows> source = rowsOf(op.getSource(), op.getSourceIndices(), op.getSourceRows(), op.getSourceAlong());
  std::optional<Rows> target = rowsOf(op.getTarget(), op.getTargetIndices(), op.getTargetRows(), op.getTargetAlong());
  if (!source || !target)
    return failure();
  auto row = VectorType::get({size}, cast<RankedTensorType>(op.getSource().getType()).getElementType());
  if (!outlines) {
    RowsCopy(b, loc, row).emit(*source, *target);
    return success();
  }
  auto module = b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  LLVM::LLVMFuncOp function = copyFunction(module, row, source->alignment, target->alignment);
  LLVM::CallOp::create(b, loc, function, ValueRange{source->base, source->stride, target->base, target->stride});
  return success();
}
