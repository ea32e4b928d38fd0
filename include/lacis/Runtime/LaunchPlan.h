// SPDX-License-Identifier: Apache-2.0
/// \file
/// The argument list and size rules of an artifact, resolved once so that a launch only reads sizes and pointers.
#ifndef LACIS_RUNTIME_LAUNCHPLAN_H
#define LACIS_RUNTIME_LAUNCHPLAN_H

#include "lacis-c/lacis_runtime.h"
#include "lacis/Target/Artifact.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lacis::runtime {

/// Tensors that a kernel must not see; the caller can help it, unlike a kernel that cannot run.
class DataRefusal : public llvm::ErrorInfo<DataRefusal, llvm::StringError> {
public:
  static char ID;
  explicit DataRefusal(const llvm::Twine &message) : ErrorInfo(message, llvm::inconvertibleErrorCode()) {}
};

/// The dtype that an artifact spells `text`; LACIS_DTYPE_NONE for the empty text, nothing for an unknown one.
int32_t parseDtype(llvm::StringRef text);
const char *dtypeName(int32_t dtype);
int64_t dtypeBytes(int32_t dtype);

/// Matrices as the copy engine of a device sees them; see Artifact::TensorMap.
struct TensorMapValue {
  size_t argument; // the kernel's argument that it is for
  uint64_t pointer;
  llvm::SmallVector<int64_t, 3> shape, box; // the first axis has neighbours, those from the third on are a batch's
  int64_t swizzle;
  int32_t dtype;
  bool isTf32 = false; // the copy rounds float32 to 10 bits of the mantissa
  llvm::SmallVector<int64_t, 3> strides; // in elements, from the second axis on; none where all are neighbours
};

/// What one launch of a plan comes to for given tensors.
struct LaunchExtent {
  int64_t units = 0;
  int64_t grid[3] = {1, 1, 1};
  int64_t grain = 1;
  llvm::ArrayRef<TensorMapValue> tensorMaps;

  bool empty() const { return units == 0 || grid[0] == 0 || grid[1] == 0 || grid[2] == 0; }
};

using ArgumentValues = llvm::SmallVector<uint64_t, 48>;

/// Where each workspace lies in the one piece of memory that holds them all, and the size of that.
struct WorkspaceLayout {
  llvm::SmallVector<int64_t, 4> offsets;
  int64_t bytes = 0;
};

class LaunchPlan {
public:
  /// `artifact` is one that `Artifact::verify` accepts.
  static llvm::Expected<LaunchPlan> create(const Artifact &artifact);

  int32_t outputDtype() const { return output.dtype; }
  int32_t outputRank() const { return output.ndim; }
  /// The output begins as zeros.
  bool zerosOutput() const { return outputZero; }
  size_t numOperands() const { return operands.size(); }
  int32_t operandRank(size_t index) const { return operands[index].ndim; }
  /// Its last stride is 1, and others are any multiples of 16 bytes; else it is contiguous.
  bool isStrided(size_t index) const { return operands[index].strided; }
  size_t numLaunches() const { return launches.size(); }

  /// Refuses tensors that the kernel was not made for, or whose sizes contradict each other; names the tensor, the
  /// dimension and what was expected.
  llvm::Error check(const lacis_launch_args &args) const;

  /// Evaluates every argument, in the order of the artifact; workspaces are placed later.
  void evaluate(const lacis_launch_args &args, ArgumentValues &values) const;

  /// Refuses values that do not fit the kernel's index width, and an output of another shape.
  llvm::Error checkValues(const lacis_launch_args &args, llvm::ArrayRef<uint64_t> values) const;

  /// The matrices that arguments describe, in no order; their places in `values` are for the module to fill.
  llvm::SmallVector<TensorMapValue, 4> tensorMaps(const lacis_launch_args &args, llvm::ArrayRef<uint64_t> values) const;

  WorkspaceLayout workspaceLayout(llvm::ArrayRef<uint64_t> values) const;
  void placeWorkspaces(void *memory, const WorkspaceLayout &layout, ArgumentValues &values) const;
  /// How long the kernel takes on one thread, in steps: every entry of the packed operand meets all coordinates of the
  /// axes that it lacks.
  int64_t steps(const lacis_launch_args &args) const;
  LaunchExtent extent(size_t launch, int64_t steps, llvm::ArrayRef<uint64_t> values) const;

  /// What a fault word holds before the first launch: no access was outside of its array.
  static constexpr uint64_t noFault = ~uint64_t(0);
  /// Where the fault word of a checked kernel lies, among `values`; nothing for other kernels.
  std::optional<uint64_t> faultAddress(llvm::ArrayRef<uint64_t> values) const;
  /// Says what a fault word tells: the array, the element that was asked for, how many there are.
  llvm::Error explainFault(uint64_t word, const lacis_launch_args &args, llvm::ArrayRef<uint64_t> values) const;

private:
  enum class Source { Pointer, Size, Stride, TensorMap, Bytes };
  enum class Room { Operand, Storage, Packed, Output, Workspace };
  struct Argument {
    Source source;
    Room room;
    unsigned index;
    unsigned dim;
  };
  /// What a dimension must be: one shared size as it is, or a size of shared sizes.
  struct Dimension {
    int64_t shared = -1;
    Size size;
  };
  /// What is known of one tensor; the packed operand's own rule is about its logical sizes.
  struct Rule {
    std::string name;
    int32_t dtype = LACIS_DTYPE_NONE;
    int32_t ndim = -1;
    int32_t minimumRank = 0;
    int32_t copies = 0; // the first dimensions, which positions do not run through
    bool optional = false;
    bool strided = false;
    llvm::SmallVector<Dimension, 2> dims;
  };
  /// A size that several tensors share, and the dimension that tells it.
  struct SharedSize {
    std::string name;
    int64_t multiple = 1;
    int64_t value = -1;
    int64_t most = -1;
    bool bound = false;
    Room room = Room::Packed;
    unsigned index = 0;
    unsigned dim = 0;
    int64_t times = 1, more = 0; // the dimension is the size times a number, and more
  };
  struct TensorMap {
    TensorMapValue value; // what does not depend on the tensors
    int64_t pointer;
    int64_t strided = -1; // the operand whose strides it has
    std::vector<Size> shape;
  };
  struct Launch {
    bool hasGrid = false;
    Size units;
    Size grid[3];
    std::vector<Size> beside; // added to the first of the grid, or to the units
  };
  using SharedSizes = llvm::SmallVector<uint64_t, 16>;
  friend class PlanBuilder;

  const Rule &ruleOf(Room room, unsigned index) const;
  static const lacis_tensor_view &viewOf(Room room, unsigned index, const lacis_launch_args &args);
  llvm::Error checkCounts(const lacis_launch_args &args) const;
  llvm::Error checkTensor(const Rule &rule, const lacis_tensor_view &view, int32_t device, bool contiguous) const;
  llvm::Error bindSizes(const lacis_launch_args &args, SharedSizes &shared) const;
  llvm::Error checkDims(const Rule &rule, const int64_t *sizes, int32_t rank, llvm::ArrayRef<uint64_t> shared) const;
  llvm::Error checkIndexWidth(const lacis_launch_args &args, llvm::ArrayRef<uint64_t> values) const;

  std::vector<Argument> arguments;
  std::vector<Rule> operands;
  std::vector<Rule> storage;
  Rule packed;
  Rule output;
  std::vector<SharedSize> sharedSizes;
  bool outputZero = false;
  std::vector<unsigned> valueArrays; // of the packed operand, in `storage`
  int indexBits = 32;
  int faultArgument = -1;
  std::vector<Size> outputShape;
  std::vector<Size> workspaces;
  /// What is in the workspaces of a checked kernel, and the bytes of an element there.
  std::map<unsigned, std::pair<std::string, int64_t>> workspaceContents;
  std::vector<TensorMap> maps;
  std::vector<Launch> launches;
};

} // namespace lacis::runtime

#endif
