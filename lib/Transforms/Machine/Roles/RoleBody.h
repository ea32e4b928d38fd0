// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rewrites the body of one role, whatever the machine: a value of a tile type becomes several machine values.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_ROLES_ROLEBODY_H
#define LACIS_LIB_TRANSFORMS_MACHINE_ROLES_ROLEBODY_H

#include "lacis/Transforms/Passes.h"

namespace lacis {

class WarpInstructions;

/// Hands the operation to `lower` in its own type, if that is one of `Ops`; nullopt for any other.
template <typename... Ops, typename Lower>
std::optional<llvm::LogicalResult> lowerOneOf(mlir::Operation &op, Lower lower) {
  std::optional<llvm::LogicalResult> done;
  auto take = [&](auto own) {
    if constexpr (std::is_void_v<decltype(lower(own))>)
      lower(own), done = llvm::success();
    else
      done = lower(own);
  };
  ((llvm::isa<Ops>(op) ? take(llvm::cast<Ops>(op)) : void()), ...);
  return done;
}

/// What all roles of a kernel know; four warps are a consumer.
struct Warpgroup {
  mlir::Value shared;   // address of dynamic shared memory
  mlir::Value consumer; // its number, of all groups
  mlir::Value number;   // of its group; null where there is one
  mlir::Value stages;   // where the stages of its group's rings begin
  mlir::Value barriers; // what the barriers of its group's rings are counted from
  mlir::Value warp;     // within the consumer
  mlir::Value lane;
};

class RoleBody {
public:
  explicit RoleBody(bool isProducer) : isProducer(isProducer) {}
  virtual ~RoleBody() = default;

  /// An argument of the role is this number, which the kernel may have in more bits.
  void map(mlir::OpBuilder &b, mlir::Value argument, mlir::Value number);
  /// All operations of `block` but its terminator.
  llvm::LogicalResult lower(mlir::OpBuilder &b, mlir::Block &block);
  llvm::LogicalResult lowerOperation(mlir::OpBuilder &b, mlir::Operation &op);

protected:
  using Pieces = llvm::SmallVector<mlir::Value>;

  /// How many machine values a value of a tile type has: f32 of an accumulator, i32 of a place in a ring.
  virtual size_t countPieces(mlir::Type type) const = 0;
  /// The first place of a ring.
  virtual void lowerRing(mlir::OpBuilder &b, RingOp op) = 0;
  /// Where the pairs of neighbours that a thread has of an accumulator lie in a tile that lies row by row: its first
  /// element (i32), and how many elements behind it each pair begins, in the order of the pieces.
  struct TilePairs {
    mlir::Value first;
    llvm::SmallVector<int64_t> offsets;
  };
  virtual llvm::FailureOr<TilePairs> tilePairs(mlir::OpBuilder &b, mlir::Operation *op, AccType acc) = 0;
  /// An operation on tiles; nullopt for any other.
  virtual std::optional<llvm::LogicalResult> lowerTiles(mlir::OpBuilder &b, mlir::Operation &op) = 0;

  /// Indices as the role has them.
  Pieces mapped(mlir::ValueRange values) const {
    return llvm::map_to_vector(values, [&](mlir::Value value) { return mapping.lookupOrDefault(value); });
  }
  Pieces pieces(mlir::Value value);
  /// Has the value been made already?
  bool isKnown(mlir::Value value) const { return split.contains(value); }
  Pieces pieces(mlir::ValueRange values);
  void setPieces(mlir::Value before, mlir::ValueRange after);
  /// Hands `all`, the pieces of several values one after another, to them.
  void distribute(mlir::ValueRange before, mlir::ValueRange all);
  /// The place in a ring that `value` is, which may be the first.
  Pieces placeOf(mlir::OpBuilder &b, mlir::Value value);

  /// The number and the parity of the place behind `ring`.
  std::array<mlir::Value, 2> nextPlace(mlir::OpBuilder &b, mlir::Location loc, mlir::Value ring);
  /// Of a tile, or of the tile at `place` of a list.
  mlir::Value tileAddress(WarpInstructions &i, mlir::Value tile, mlir::Value place);

  llvm::LogicalResult lower(mlir::OpBuilder &b, mlir::scf::ForOp loop);
  llvm::LogicalResult lower(mlir::OpBuilder &b, mlir::scf::IfOp op);
  llvm::LogicalResult lower(mlir::OpBuilder &b, LoadAccOp op);
  llvm::LogicalResult lower(mlir::OpBuilder &b, StoreAccOp op);

  /// The places of a map, `row` and `column` further.
  Pieces placesAt(mlir::OpBuilder &b, MapOp op, mlir::Value row, mlir::Value column);
  /// The arithmetic of a map on what `element` takes of its values, at `coordinates`; is its column an even one?
  mlir::Value applyMap(mlir::OpBuilder &b, MapOp op, llvm::function_ref<mlir::Value(mlir::Value)> element,
                       mlir::ValueRange coordinates = {}, bool isEven = false);

  const bool isProducer;
  mlir::IRMapping mapping;

private:
  llvm::SmallVector<mlir::LLVM::LoadOp> earlyLoads(mlir::scf::ForOp loop);
  mlir::Value loadAt(mlir::OpBuilder &b, mlir::LLVM::LoadOp load, mlir::Value counter, mlir::Value first,
                     mlir::Value end);
  llvm::FailureOr<TilePairs> pairsAt(mlir::OpBuilder &b, mlir::Operation *op, AccType type, mlir::Value workspace,
                                     mlir::Value place);
  llvm::LogicalResult cloneOther(mlir::OpBuilder &b, mlir::Operation &op);

  llvm::DenseMap<mlir::Value, Pieces> split;
};

/// The ring that a value is a place of.
RingOp ringOf(mlir::Value place);
/// The address of dynamic shared memory, which every kernel of the module names alike; i32.
mlir::Value sharedMemory(mlir::OpBuilder &b, mlir::ModuleOp module, mlir::Location loc);
/// Records threads and bytes of the launch, and so many blocks on a processor, and removes roles and rings.
void finishRoles(mlir::func::FuncOp function, RolesOp roles, int64_t threads, int64_t bytes, int64_t blocks = 1);
/// Runs `lower` on the roles of each kernel that has them.
llvm::LogicalResult lowerRolesOf(mlir::ModuleOp module,
                                 llvm::function_ref<llvm::LogicalResult(mlir::func::FuncOp, RolesOp)> lower);

/// Bytes of a tile, or of one tile of a list.
inline int64_t bytesPerTile(TileType tile) { return tile.getBytes() / tile.getCount(); }
/// Bytes of a row of a tile whose 16-byte chunks are exchanged by the row's number: 32, 64 or 128; else 0.
int64_t lineBytes(TileType tile);

/// The accumulator is a map, or a tile that a map reads, which stores compute part by part: few values live at once.
bool waitsForStore(mlir::Value acc);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_MACHINE_ROLES_ROLEBODY_H
