// SPDX-License-Identifier: Apache-2.0
/// \file
/// A fatal error of LLVM stops the work and not the process, wherever it is.
#include "Compiler/FatalErrors.h"

#include "llvm/Support/ErrorHandling.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <vector>

using lacis::runApart;

static void giveUp() noexcept { llvm::report_fatal_error("no way"); }

TEST(FatalErrors, WorkThatEndsHasNoReason) {
  int done = 0;
  EXPECT_EQ(runApart([&] { done = 1; }), "");
  EXPECT_EQ(done, 1);
}

TEST(FatalErrors, NothingIsUnwoundOrDestroyed) {
  static bool destroyed = false;
  struct Local {
    ~Local() { destroyed = true; }
  };
  EXPECT_EQ(runApart([] {
              Local local;
              giveUp(); // an exception that left it would end the process
            }),
            "no way");
  EXPECT_FALSE(destroyed);
}

TEST(FatalErrors, OneWithoutAReasonIsOneToo) {
  EXPECT_EQ(runApart([] { llvm::report_fatal_error(""); }), "an error without a reason");
}

TEST(FatalErrors, ExceptionsPass) {
  EXPECT_THROW(runApart([] { throw std::runtime_error("mine"); }), std::runtime_error);
  EXPECT_EQ(runApart([] {}), "");
}

TEST(FatalErrors, ThreadsStopEachForItself) {
  std::vector<std::thread> threads;
  std::vector<std::string> reasons(16);
  for (size_t n = 0; n < reasons.size(); ++n)
    threads.emplace_back([&, n] { reasons[n] = runApart([n] { n % 2 ? giveUp() : void(); }); });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t n = 0; n < reasons.size(); ++n)
    EXPECT_EQ(reasons[n], n % 2 ? "no way" : "");
}
