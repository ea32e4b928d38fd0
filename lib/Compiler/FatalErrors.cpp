// SPDX-License-Identifier: Apache-2.0
/// \file
/// Stops at an LLVM fatal error, so that it does not end the user's process.
#include "FatalErrors.h"

#include "llvm/Support/ErrorHandling.h"

#include <chrono>
#include <future>
#include <mutex>
#include <thread>

using Answer = std::promise<std::string>;

/// Where the caller waits for this thread; null on a thread that `runApart` has not made.
static thread_local Answer *answer = nullptr;

static void stop(void *, const char *reason, bool) {
  if (!answer)
    throw lacis::FatalError(reason);
  answer->set_value(*reason ? reason : "an error without a reason");
  while (true)
    std::this_thread::sleep_for(std::chrono::hours(1));
}

static void install() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::install_fatal_error_handler(stop);
    llvm::install_bad_alloc_error_handler(stop);
  });
}

std::string lacis::runApart(llvm::function_ref<void()> work) {
  install();
  Answer promised;
  std::future<std::string> reason = promised.get_future();
  std::thread thread([work, own = std::move(promised)]() mutable {
    answer = &own;
    try {
      work();
      own.set_value("");
    } catch (...) {
      own.set_exception(std::current_exception());
    }
  });
  std::string why;
  try {
    why = reason.get();
  } catch (...) {
    thread.join();
    throw;
  }
  if (why.empty())
    thread.join();
  else
    thread.detach(); // it never ends
  return why;
}
