// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which upstream level says what which pair of words says, and how encodings are exchanged.
#ifndef LACIS_LIB_CONVERSION_SPARSETENSOR_LEVELWORDS_H
#define LACIS_LIB_CONVERSION_SPARSETENSOR_LEVELWORDS_H

#include "lacis/Conversion/ConversionPasses.h"

namespace lacis {

struct LevelWords {
  llvm::StringRef extent, coordinate;
  mlir::sparse_tensor::LevelFormat format;
};

inline constexpr LevelWords kLevelWords[] = {
    {"full", "implicit", mlir::sparse_tensor::LevelFormat::Dense},
    {"batch", "implicit", mlir::sparse_tensor::LevelFormat::Batch},
    {"var", "crd", mlir::sparse_tensor::LevelFormat::Compressed},
    {"var2", "crd", mlir::sparse_tensor::LevelFormat::LooseCompressed},
    {"one", "crd", mlir::sparse_tensor::LevelFormat::Singleton},
    {"fixed", "code", mlir::sparse_tensor::LevelFormat::NOutOfM},
};

/// The encoding in the other language; null after an error.
using ConvertEncoding = llvm::function_ref<mlir::Attribute(mlir::Attribute encoding, EmitError emitError)>;

/// Replaces the encodings of all tensor types in `module`; an error lies at the operation that has the type.
mlir::LogicalResult replaceEncodings(mlir::ModuleOp module, ConvertEncoding convert);

} // namespace lacis

#endif // LACIS_LIB_CONVERSION_SPARSETENSOR_LEVELWORDS_H
