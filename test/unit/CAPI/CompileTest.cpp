// SPDX-License-Identifier: Apache-2.0
/// \file
/// The compile half of the C ABI: no input ends the process, and the next compilation works.
#include "lacis-c/lacis.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

static const char *const kernel = R"(
module attributes {lacis.stage = "target", lacis.artifact = {args = [{kind = "operand", operand = 1}],
    output = {dtype = "f32", shape = []},
    launches = [{entry = "f", grid = [#lacis.size<1>, #lacis.size<1>, #lacis.size<1>], block = [32, 1, 1], shared = 0}], index_bits = 32}} {
  func.func @f(%x: !llvm.ptr) attributes {lacis.gpu_kernel, lacis.block = array<i64: 32, 1, 1>} { return }
})";

namespace {
struct Outcome {
  int status;
  std::string artifact, stages, diagnostics;
};
} // namespace

static std::string take(lacis_buffer *buffer) {
  std::string bytes(lacis_buffer_data(buffer) ? lacis_buffer_data(buffer) : "", lacis_buffer_size(buffer));
  lacis_buffer_free(buffer);
  return bytes;
}

static Outcome compile(const char *text, const char *target, const char *options) {
  lacis_buffer *artifact, *stages, *diagnostics;
  int status = lacis_compile(text, target, options, &artifact, &stages, &diagnostics);
  return {status, take(artifact), take(stages), take(diagnostics)};
}

static bool contains(const std::string &text, const char *part) { return text.find(part) != std::string::npos; }

TEST(Compile, StagesAndArtifact) {
  Outcome outcome = compile(kernel, "cuda:sm_80", R"({"stages": true})");
  EXPECT_EQ(outcome.status, LACIS_DONE) << outcome.diagnostics;
  EXPECT_EQ(outcome.artifact.substr(0, 8), "LACISART");
  for (const char *stage : {"\"target\"", "\"llvm\"", "\"ptx\""})
    EXPECT_TRUE(contains(outcome.stages, stage)) << stage;
}

/// Two functions for a CPU; the second one writes `value`.
static std::string twoFunctions(int value) {
  std::string function = "(%x: !llvm.ptr, %lo: i64, %hi: i64) { %c = arith.constant ";
  std::string store = " : i32  llvm.store %c, %x : i32, !llvm.ptr  return }\n";
  return R"(module attributes {lacis.stage = "target", lacis.artifact = {args = [{kind = "operand", operand = 1}],
    output = {dtype = "i32", shape = []}, launches = [{entry = "f", units = #lacis.size<1>}, {entry = "g", units = #lacis.size<1>}],
    index_bits = 32}} {)" +
         ("func.func @f" + function + "1" + store + "func.func @g" + function + std::to_string(value) + store + "}");
}

TEST(Compile, KeptCodeIsOfTheSameFunctions) {
  std::string first = twoFunctions(2), changed = twoFunctions(3);
  Outcome made = compile(first.c_str(), "cpu", nullptr), other = compile(changed.c_str(), "cpu", nullptr);
  ASSERT_EQ(made.status, LACIS_DONE) << made.diagnostics;
  ASSERT_EQ(other.status, LACIS_DONE) << other.diagnostics;
  EXPECT_NE(made.artifact, other.artifact);
  EXPECT_EQ(compile(first.c_str(), "cpu", nullptr).artifact, made.artifact);
  EXPECT_EQ(compile(changed.c_str(), "cpu", nullptr).artifact, other.artifact);
}

/// Two kernels that add up in an array of shared memory which both know; the second one adds `value`.
static std::string twoKernels(int value) {
  std::string function = R"((%x: !llvm.ptr) attributes {lacis.gpu_kernel, lacis.block = array<i64: 32, 1, 1>} {
    %s = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %v = llvm.load volatile %s : !llvm.ptr<3> -> i32
    %c = arith.constant )";
  std::string store = R"( : i32
    %sum = arith.addi %v, %c : i32
    llvm.store %sum, %x : i32, !llvm.ptr
    return
  })";
  std::string launch = "grid = [#lacis.size<1>, #lacis.size<1>, #lacis.size<1>], block = [32, 1, 1], shared = 64}";
  return R"(module attributes {lacis.stage = "target", lacis.artifact = {args = [{kind = "operand", operand = 1}],
    output = {dtype = "i32", shape = []}, launches = [{entry = "f", )" +
         launch + R"(, {entry = "g", )" + launch + R"(], index_bits = 32}} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  func.func @f)" + function + "1" + store + "func.func @g" + function + std::to_string(value) + store + "}";
}

static size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(Compile, KernelsOfPiecesAreOneText) {
  Outcome made = compile(twoKernels(2).c_str(), "cuda:sm_80", nullptr);
  Outcome changed = compile(twoKernels(3).c_str(), "cuda:sm_80", nullptr);
  for (const Outcome &outcome : {made, changed}) {
    ASSERT_EQ(outcome.status, LACIS_DONE) << outcome.diagnostics;
    for (const char *part : {".version", ".target", ".extern .shared", ".visible .entry f(", ".visible .entry g("})
      EXPECT_EQ(count(outcome.artifact, part), 1u) << part << " in " << outcome.artifact;
    EXPECT_EQ(count(outcome.artifact, "ld.volatile.shared"), 2u) << outcome.artifact;
  }
  EXPECT_NE(made.artifact, changed.artifact);
}

TEST(Compile, RefusalsKeepTheProcess) {
  const char *inputs[][4] = {
      {"func.func @f( {", "cpu", nullptr, "expected"},
      {"\x01\xff", "cpu", nullptr, "unexpected character"},
      {"; ModuleID = 'x'\ndefine", "cpu", nullptr, "expected type"},
      {"; ModuleID = 'x'\n", "cpu", nullptr, "the LLVM IR has no '!lacis.artifact'"},
      {"; ModuleID = 'x'\n!lacis.artifact = !{!0}\n!0 = !{!1}\n!1 = !{}", "cpu", nullptr,
       "'!lacis.artifact' is no text"},
      {"", "cpu", nullptr, "a module holds one kernel, not 0"},
      {"module attributes {lacis.stage = \"target\"} {}", "cpu", nullptr,
       "the module has no 'lacis.artifact' attribute, which tells a launcher about arguments and launches"},
      {kernel, "tpu", nullptr, "no target 'tpu'"},
      {kernel, "", nullptr, "no target ''"},
      {kernel, "cuda:sm_90a", "{\"colour\": 1}", "no option 'colour' with value '1'"},
      {kernel, "cuda:sm_90a", "{\"opt_level\": 9}", "no option 'opt_level' with value '9'"},
      {kernel, "cuda:sm_90a", "[]", "the options are no JSON object"},
      {kernel, "cuda:sm_90a", "{", "Expected object key"},
      {nullptr, "cpu", nullptr, "error: no text or no target"}};
  for (const auto &[text, target, options, message] : inputs) {
    Outcome outcome = compile(text, target, options);
    EXPECT_EQ(outcome.status, LACIS_REFUSED) << message;
    EXPECT_TRUE(contains(outcome.diagnostics, "error: ")) << message;
    EXPECT_TRUE(contains(outcome.diagnostics, message)) << message << " in " << outcome.diagnostics;
    EXPECT_EQ(outcome.artifact, "");
  }
}

TEST(Compile, FatalErrorsAreAnswersAndTheNextCompilationWorks) {
  for (int round = 0; round < 3; ++round) {
    Outcome fatal = compile(kernel, "cuda:sm_90a", R"({"features": "+ptx60"})");
    EXPECT_EQ(fatal.status, LACIS_FAILED);
    EXPECT_TRUE(contains(fatal.diagnostics, "PTX version 6.0 does not support target 'sm_90a'")) << fatal.diagnostics;
    EXPECT_TRUE(contains(fatal.diagnostics, "note: repeat it with: lacis-compile")) << fatal.diagnostics;
    EXPECT_EQ(compile(kernel, "cuda:sm_90a", nullptr).status, LACIS_DONE);
  }
}

TEST(Compile, FatalErrorsOfThreadsLeaveTheOthers) {
  std::string expected = compile(kernel, "cuda:sm_90a", nullptr).artifact;
  std::vector<std::thread> threads;
  std::vector<Outcome> outcomes(8);
  for (size_t n = 0; n < outcomes.size(); ++n)
    threads.emplace_back([&, n] {
      outcomes[n] = compile(kernel, "cuda:sm_90a", n % 2 ? R"({"features": "+ptx60"})" : nullptr);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t n = 0; n < outcomes.size(); ++n) {
    EXPECT_EQ(outcomes[n].status, n % 2 ? LACIS_FAILED : LACIS_DONE) << outcomes[n].diagnostics;
    EXPECT_EQ(outcomes[n].artifact, n % 2 ? "" : expected);
  }
}

TEST(Compile, ThreadsDoNotMeet) {
  std::string expected = compile(kernel, "cuda:sm_90a", nullptr).artifact;
  std::vector<std::thread> threads;
  std::vector<std::string> artifacts(4);
  for (std::string &artifact : artifacts)
    threads.emplace_back([&artifact] { artifact = compile(kernel, "cuda:sm_90a", nullptr).artifact; });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &artifact : artifacts)
    EXPECT_EQ(artifact, expected);
}

/// Threads change targets and are refused in between, more often than a context is used.
TEST(Compile, KeptContextsCarryNothingOver) {
  const char *all = R"({"stages": true})";
  std::string own = twoFunctions(1);
  const char *kernels[][2] = {{own.c_str(), "cpu"}, {kernel, "cuda:sm_80"}, {kernel, "cuda:sm_90a"}};
  auto one = [&](size_t n) { return compile(kernels[n % 3][0], kernels[n % 3][1], all); };
  std::vector<Outcome> expected;
  for (size_t n = 0; n < std::size(kernels); ++n)
    expected.push_back(one(n));
  std::vector<std::thread> threads;
  std::vector<size_t> wrong(4);
  for (size_t thread = 0; thread < wrong.size(); ++thread)
    threads.emplace_back([&, thread] {
      for (size_t n = thread; n < thread + 100; ++n) {
        bool isRefused = compile("func.func @f() { lacis.none }", "cuda:sm_80", all).status == LACIS_REFUSED;
        Outcome found = one(n);
        const Outcome &first = expected[n % 3];
        bool isSame = found.stages == first.stages && found.artifact == first.artifact;
        wrong[thread] += !isRefused || found.status != LACIS_DONE || !isSame;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, std::vector<size_t>(4));
}

TEST(Compile, ThisBuildHasAName) {
  EXPECT_TRUE(contains(lacis_compiler_fingerprint(), "-llvm-22."));
  EXPECT_FALSE(contains(lacis_compiler_fingerprint(), "unknown"));
  EXPECT_TRUE(contains(lacis_host_cpu(), ":"));
  EXPECT_STREQ(lacis_targets(), "cpu,cuda");
}
