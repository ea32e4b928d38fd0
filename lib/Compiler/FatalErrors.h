// SPDX-License-Identifier: Apache-2.0
/// \file
/// Turns an LLVM fatal error into an exception, so that it does not end the user's process.
#ifndef LACIS_LIB_COMPILER_FATALERRORS_H
#define LACIS_LIB_COMPILER_FATALERRORS_H

#include <stdexcept>

namespace lacis {

class FatalError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// From the first call on, every LLVM fatal error of this library throws a FatalError.
void installFatalErrorHandler();

} // namespace lacis

#endif // LACIS_LIB_COMPILER_FATALERRORS_H
