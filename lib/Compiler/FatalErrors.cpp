// SPDX-License-Identifier: Apache-2.0
/// \file
/// Turns an LLVM fatal error into an exception, so that it does not end the user's process.
#include "FatalErrors.h"

#include "llvm/Support/ErrorHandling.h"

#include <mutex>
#include <new>

static void throwFatalError(void *, const char *reason, bool) { throw lacis::FatalError(reason); }

static void throwBadAlloc(void *, const char *, bool) { throw std::bad_alloc(); }

void lacis::installFatalErrorHandler() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::install_fatal_error_handler(throwFatalError);
    llvm::install_bad_alloc_error_handler(throwBadAlloc);
  });
}
