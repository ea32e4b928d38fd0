// SPDX-License-Identifier: Apache-2.0
/// \file
/// Stops at an LLVM fatal error, so that it does not end the user's process.
#ifndef LACIS_LIB_COMPILER_FATALERRORS_H
#define LACIS_LIB_COMPILER_FATALERRORS_H

#include "llvm/ADT/STLFunctionalExtras.h"

#include <stdexcept>
#include <string>

namespace lacis {

/// A fatal error on a thread that `runApart` has not made.
class FatalError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Runs `work` on a thread of its own, and throws what it throws. Returns the reason of an LLVM fatal error in it, or
/// nothing.
///
/// After a fatal error the thread sleeps for ever where it stood: LLVM is built without exceptions, so nothing that it
/// was in the middle of can be unwound or destroyed. What it holds, a kernel's worth of memory, is lost.
std::string runApart(llvm::function_ref<void()> work);

} // namespace lacis

#endif // LACIS_LIB_COMPILER_FATALERRORS_H
