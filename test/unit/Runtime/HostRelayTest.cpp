// SPDX-License-Identifier: Apache-2.0
/// \file
/// Launches run one after another, each unit once, whoever comes to help and however late.
#include "Runtime/CPU/HostRelay.h"
#include "gtest/gtest.h"
#include <thread>
#include <vector>

using namespace lacis::runtime;

namespace {

struct Table {
  std::vector<int> first = std::vector<int>(1000), second = std::vector<int>(10);
};

void fill(uint64_t table, uint64_t begin, uint64_t end) {
  for (uint64_t n = begin; n < end; ++n)
    ++reinterpret_cast<Table *>(table)->first[n];
}

void sum(uint64_t table, uint64_t begin, uint64_t end) {
  auto *own = reinterpret_cast<Table *>(table);
  for (uint64_t n = begin; n < end; ++n)
    for (uint64_t k = 0; k < 100; ++k)
      own->second[n] += own->first[n + 10 * k];
}

/// As torch's: pieces of the range on threads of their own.
int onThreads(int64_t begin, int64_t end, int64_t, void (*body)(int64_t, int64_t, void *), void *context) {
  std::vector<std::thread> threads;
  for (int64_t n = begin; n < end; ++n)
    threads.emplace_back(body, n, n + 1, context);
  for (std::thread &thread : threads)
    thread.join();
  return 0;
}

/// As inside of another parallel loop: one call, or several after one another.
int inTurn(int64_t begin, int64_t end, int64_t, void (*body)(int64_t, int64_t, void *), void *context) {
  for (int64_t n = begin; n < end; ++n)
    body(n, n + 1, context);
  return 0;
}

int never(int64_t, int64_t, int64_t, void (*)(int64_t, int64_t, void *), void *) { return 1; }

LaunchExtent extentOf(int64_t units, int64_t grain) {
  LaunchExtent extent;
  extent.units = units;
  extent.grain = grain;
  return extent;
}

HostFunction entry(void (*function)(uint64_t, uint64_t, uint64_t)) { return reinterpret_cast<HostFunction>(function); }

bool relays(lacis_parallel_for parallelFor) {
  Table table;
  ArgumentValues values{reinterpret_cast<uint64_t>(&table)};
  HostRelay relay(2, values);
  relay.add(entry(fill), extentOf(1000, 100));
  relay.add(entry(sum), extentOf(10, 4));
  bool failed = bool(llvm::errorToBool(relay.run(parallelFor)));
  return !failed && table.first == std::vector<int>(1000, 1) && table.second == std::vector<int>(10, 100);
}

} // namespace

TEST(HostRelay, SecondLaunchSeesTheWholeFirst) {
  for (int round = 0; round < 50; ++round)
    EXPECT_TRUE(relays(onThreads));
}

TEST(HostRelay, OneThreadDoesAll) {
  EXPECT_TRUE(relays(inTurn));
  EXPECT_TRUE(relays(nullptr));
}

TEST(HostRelay, FailureOfTheLoopIsAnError) { EXPECT_FALSE(relays(never)); }
