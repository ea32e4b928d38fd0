// SPDX-License-Identifier: Apache-2.0
/// \file
/// What leaves the compiler: code, and everything a launcher must know to run it.
#ifndef LACIS_TARGET_ARTIFACT_H
#define LACIS_TARGET_ARTIFACT_H

#include "lacis/Target/Size.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lacis {

struct Artifact {
  static constexpr int64_t currentVersion = 5;

  /// Where the value of one kernel argument comes from.
  struct Argument {
    std::string kind;    // storage, storage_dim, derived, operand, dim, stride, output, workspace, tensor_map, bytes, fault
    int64_t operand = 0; // -1 is the output
    int64_t derived = -1; // the number of the step that makes the array; -1: it is the operand's own
    std::string name;    // of a storage array: pos1, crd1, values, of a sum with its part
    int64_t dim = 0;
    bool strided = false; // of an operand that is read by the strides of its tensor, which are any
    int64_t index = 0; // of a workspace or a tensor map; of bytes, the argument whose array has them
  };

  /// Arrays that follow from a pattern, or from those of a step before.
  struct Derived {
    struct Array {
      std::string name;
      std::string dtype;
      bool shaped = false;
      std::vector<Size> sizes; // of the sizes of the axes, the stored blocks, the workers, and counts
    };
    std::string function;
    llvm::json::Object parameters; // numbers, texts, and objects of numbers
    int64_t source = -1;           // the step before; -1: the pattern
    int64_t operand = 0;
    std::string part; // of a sum; empty otherwise
    std::vector<Array> arrays;
  };

  /// A size that several tensors share, by its letter in the expression where it has one.
  struct SharedSize {
    std::string name;
    int64_t multiple = 1; // what the kernel was promised to divide it
    int64_t value = -1;   // the one size that the kernel was made for; -1: any
    int64_t most = -1;    // the number of the size that it may not exceed; -1: none
  };

  /// What the launcher checks of a tensor: its dtype, and its dimensions where `shaped` says that they are known.
  struct Tensor {
    int64_t operand = 0; // -1 is the output
    int64_t derived = -1; // of a named array, as in Argument
    std::string name;    // empty: the operand itself
    std::string dtype; // empty: anything
    bool shaped = false;
    bool optional = false; // an empty list may stand for it
    std::vector<Size> dims; // of numbers of shared sizes
    int64_t copies = 0;     // the first dimensions, which positions do not run through
  };

  /// A matrix, or a batch of matrices, as a copy engine sees it: rows of neighbours behind a pointer, read or written in
  /// boxes.
  struct TensorMap {
    int64_t pointer = 0;      // the argument
    std::vector<Size> shape;  // elements; the first axis has neighbours
    std::vector<int64_t> box; // likewise
    int64_t swizzle = 0;      // bytes of a line in shared memory whose 16-byte chunks are exchanged; 0: none
    std::string dtype;
  };

  struct Output {
    std::string dtype;
    std::vector<Size> shape;
    bool zero = false; // the launcher fills it with zeros before the first launch
  };

  /// One function of the code: over a grid of blocks, or over a range of units.
  struct Launch {
    std::string entry;
    std::vector<Size> grid;
    std::vector<int64_t> block;
    int64_t shared = 0;
    bool waits = false; // for the kernel before it: it may be started while that one ends
    std::optional<Size> units;
    std::vector<Size> beside; // blocks, or units, of nests that run before the function's own, in the same launch
  };

  std::string target; // cpu, cuda:sm_90a
  std::string kind;   // object, ptx, cubin
  std::vector<Argument> args;
  std::vector<Derived> derived;
  std::vector<SharedSize> sizes;
  std::vector<Tensor> tensors;
  Output output;
  std::vector<Size> workspace; // bytes of each
  std::vector<TensorMap> tensorMaps;
  std::vector<Launch> launches;
  int64_t indexBits = 32;
  std::vector<std::string> steps; // the schedule in force, one attribute each
  std::vector<std::string> remarks; // why rules of the default schedule did not apply
  int64_t packed = -1; // the operand whose storage the arrays are, where there is one
  std::string code;

  /// The record without the code, as JSON with sorted keys.
  std::string header() const;

  /// Says what is wrong with the record, if anything.
  llvm::Error verify() const;

  /// Magic word, lengths, header, code, and the SHA-256 of all that.
  std::string serialise() const;

  /// Reads what `serialise` wrote; refuses anything else.
  static llvm::Expected<Artifact> parse(llvm::StringRef bytes);

  /// Reads a header alone; `code` stays empty and unchecked.
  static llvm::Expected<Artifact> parseHeader(llvm::StringRef json);
};

/// Lower-case hexadecimal SHA-256.
std::string sha256Hex(llvm::StringRef bytes);

} // namespace lacis

#endif // LACIS_TARGET_ARTIFACT_H
