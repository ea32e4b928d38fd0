// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the launcher says where the CUDA driver refuses, with a driver made of nothing.
#include "Runtime/CUDA/TensorMaps.h"

#include "gtest/gtest.h"

#include <vector>

using namespace lacis::runtime;
using namespace lacis::runtime::cuda;

namespace {

Result encode(void *, int, unsigned, void *, const uint64_t *, const uint64_t *, const unsigned *, const unsigned *, int,
              int, int, int) {
  return 1;
}

Result nameOf(Result, const char **name) { return *name = "CUDA_ERROR_INVALID_VALUE", 0; }
Result none(Result, const char **text) { return *text = nullptr, 0; }

Driver makeDriver() {
  Driver driver;
  driver.tensorMapEncode = encode;
  driver.errorName = nameOf;
  driver.errorString = none;
  return driver;
}

/// What the driver says of a matrix of bf16, 64 elements a row, that `change` has made another.
template <typename Change> std::string refusal(Change change, Driver driver = makeDriver()) {
  TensorMapValue value{0, 4096, {64, 33}, {64, 32}, 128, LACIS_BF16};
  change(value);
  TensorMapBytes map;
  return llvm::toString(encodeTensorMap(driver, value, map));
}

TEST(Driver, RefusesMatricesThatTheCopyEngineCannotRead) {
  EXPECT_EQ(refusal([](TensorMapValue &v) { v.shape[1] = 0; }), "");
  EXPECT_EQ(refusal([](TensorMapValue &v) { v.dtype = LACIS_F64; }), "tensor map: no matrices of f64");
  EXPECT_EQ(refusal([](TensorMapValue &v) { v.shape[0] = 60; }),
            "a row of 120 bytes is no multiple of 16 bytes: this kernel needs rows of a multiple of 8 elements");
  EXPECT_EQ(refusal([](TensorMapValue &v) { v.pointer = 4100; }), "a tensor begins at no multiple of 16 bytes");
  EXPECT_EQ(refusal([](TensorMapValue &) {}),
            "tensor map of 33 rows of 64 elements: CUDA_ERROR_INVALID_VALUE: no description");
}

/// The axes, strides and boxes that the driver is given.
std::vector<uint64_t> given;
Result record(void *, int, unsigned rank, void *, const uint64_t *shape, const uint64_t *strides, const unsigned *box,
              const unsigned *, int, int, int, int) {
  given.assign(shape, shape + rank);
  given.insert(given.end(), strides, strides + rank - 1);
  given.insert(given.end(), box, box + rank);
  return 0;
}

TEST(Driver, DescribesABatchOfMatrices) {
  Driver driver = makeDriver();
  driver.tensorMapEncode = record;
  EXPECT_EQ(refusal([](TensorMapValue &v) { v.shape.push_back(5), v.box.push_back(1); }, driver), "");
  EXPECT_EQ(given, (std::vector<uint64_t>{64, 33, 5, 128, 128 * 33, 64, 32, 1}));
  EXPECT_EQ(refusal([](TensorMapValue &v) { v.shape.push_back(5), v.box.push_back(1), v.strides = {192, 64}; }, driver), "");
  EXPECT_EQ(given, (std::vector<uint64_t>{64, 33, 5, 384, 128, 64, 32, 1}));
  EXPECT_EQ(refusal([](TensorMapValue &) {}, driver), "");
  EXPECT_EQ(given, (std::vector<uint64_t>{64, 33, 128, 64, 32}));
}

TEST(Driver, RefusesWhatAnOldDriverLacks) {
  Driver old = makeDriver();
  old.tensorMapEncode = nullptr;
  EXPECT_EQ(refusal([](TensorMapValue &) {}, old), "the CUDA driver lacks cuTensorMapEncodeTiled, of CUDA 12.0");
}

TEST(Driver, NamesWhatWasAttempted) {
  Driver driver = makeDriver();
  EXPECT_EQ(llvm::toString(driver.check(0, "launch")), "");
  driver.errorName = none;
  EXPECT_EQ(llvm::toString(driver.check(7, "launch")), "launch: unknown CUDA error: no description");
}

} // namespace
