// SPDX-License-Identifier: Apache-2.0
/// \file
/// What brings two values of a sum together.
#include "Combiner.h"

using namespace mlir;
using namespace lacis;

vector::CombiningKind lacis::kindOf(Reduction reduction) {
  switch (reduction) {
  case Reduction::Add:
    return vector::CombiningKind::ADD;
  case Reduction::Mul:
    return vector::CombiningKind::MUL;
  case Reduction::Max:
    return vector::CombiningKind::MAXIMUMF;
  case Reduction::Min:
    return vector::CombiningKind::MINIMUMF;
  case Reduction::Or:
    return vector::CombiningKind::OR;
  case Reduction::And:
    return vector::CombiningKind::AND;
  }
  llvm_unreachable("a reduction that no lanes have");
}
