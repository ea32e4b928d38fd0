// SPDX-License-Identifier: Apache-2.0
/// \file
/// The launch half of the C ABI: what it says where the caller's functions fail.
#include "lacis-c/lacis.h"
#include "lacis-c/lacis_runtime.h"

#include <gtest/gtest.h>

#include <string>

/// A kernel of as many units as outputs, enough for several threads, that does nothing; its workspace has 64 bytes.
static std::string compiled(const std::string &arguments, const std::string &types) {
  std::string text = "module attributes {lacis.stage = \"target\", lacis.artifact = {args = [" + arguments +
                     "], output = {dtype = \"f32\", shape = [#lacis.size<1048576>]}, index_bits = 32, "
                     "workspace = [{bytes = #lacis.size<64>}], "
                     "launches = [{entry = \"f\", units = #lacis.size<1048576>}]}} {\n"
                     "func.func @f(" +
                     types + "%lo: i64, %hi: i64) { return } }";
  lacis_buffer *artifact, *stages, *diagnostics;
  int status = lacis_compile(text.c_str(), "cpu", nullptr, &artifact, &stages, &diagnostics);
  EXPECT_EQ(status, LACIS_DONE) << std::string(lacis_buffer_data(diagnostics), lacis_buffer_size(diagnostics));
  std::string bytes(lacis_buffer_data(artifact) ? lacis_buffer_data(artifact) : "", lacis_buffer_size(artifact));
  for (lacis_buffer *buffer : {artifact, stages, diagnostics})
    lacis_buffer_free(buffer);
  return bytes;
}

static std::string taken(char *error) {
  std::string text = error ? error : "";
  lacis_string_free(error);
  return text;
}

static std::string launch(lacis_parallel_for parallelFor, lacis_allocate allocate) {
  std::string bytes = compiled("{kind = \"output\"}, {kind = \"workspace\", index = 0}", "%y: !llvm.ptr, %w: !llvm.ptr, ");
  char *error = nullptr;
  lacis_kernel *kernel = nullptr;
  EXPECT_EQ(lacis_kernel_load("launch", bytes.data(), bytes.size(), LACIS_DEVICE_HOST, &error), LACIS_DONE);
  EXPECT_EQ(lacis_kernel_find("launch", 6, &kernel, &error), LACIS_DONE);
  static float data[1 << 20];
  int64_t sizes[] = {1 << 20}, strides[] = {1};
  lacis_tensor_view output = {data, sizes, strides, 1, LACIS_F32, LACIS_DEVICE_HOST};
  lacis_launch_args args = {};
  args.output = &output;
  lacis_kernel_launch(kernel, &args, nullptr, parallelFor, allocate, nullptr, &error);
  return taken(error);
}

static void *give(int64_t, void *) {
  alignas(256) static char memory[256];
  return memory;
}
static void *giveNothing(int64_t, void *) { return nullptr; }
static int32_t runNothing(int64_t, int64_t, int64_t, lacis_range_fn, void *) { return 1; }

TEST(Launch, SaysWhichFunctionOfTheCallerFailed) {
  EXPECT_EQ(launch(nullptr, give), "");
  EXPECT_EQ(launch(nullptr, giveNothing), "no workspace of 256 bytes could be allocated");
  EXPECT_EQ(launch(runNothing, give), "the parallel loop over the units of the kernel failed");
}

TEST(Launch, RefusesMoreArgumentsThanItPasses) {
  std::string arguments = "{kind = \"output\"}", types = "%y: !llvm.ptr, ";
  for (int number = 0; number < 254; ++number) {
    arguments += ", {kind = \"output\"}";
    types += "%a" + std::to_string(number) + ": !llvm.ptr, ";
  }
  std::string bytes = compiled(arguments, types);
  char *error = nullptr;
  EXPECT_EQ(lacis_kernel_load("many", bytes.data(), bytes.size(), LACIS_DEVICE_HOST, &error), LACIS_FAILED);
  EXPECT_EQ(taken(error), "a kernel with 255 arguments; the launcher passes at most 254");
}
