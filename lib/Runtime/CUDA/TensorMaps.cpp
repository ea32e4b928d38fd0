// SPDX-License-Identifier: Apache-2.0
/// \file
/// Describes matrices to the copy engine of a device; the driver encodes it on the host, in a fraction of a
/// microsecond.
#include "TensorMaps.h"
#include "lacis-c/lacis_runtime.h"

using namespace lacis::runtime;
using namespace lacis::runtime::cuda;
using llvm::Error;
using llvm::Twine;

/// The driver's number of an element type, and its bytes; none for types that it does not read as numbers.
static bool elementOf(const TensorMapValue &value, int &number, uint64_t &bytes) {
  switch (value.dtype) {
  case LACIS_F16:
    number = 6, bytes = 2;
    return true;
  case LACIS_F32:
    number = value.isTf32 ? 11 : 7, bytes = 4;
    return true;
  case LACIS_BF16:
    number = 9, bytes = 2;
    return true;
  default:
    return false;
  }
}

Error lacis::runtime::cuda::encodeTensorMap(const Driver &driver, const TensorMapValue &value, TensorMapBytes &map) {
  constexpr int noInterleave = 0, promoteTo256Bytes = 3, zeroOutside = 0;
  constexpr uint64_t alignment = 16;
  if (llvm::is_contained(value.shape, 0))
    return Error::success();
  if (!driver.tensorMapEncode)
    return llvm::createStringError("the CUDA driver lacks cuTensorMapEncodeTiled, of CUDA 12.0");
  int element = 0;
  uint64_t bytes = 0;
  if (!elementOf(value, element, bytes))
    return llvm::createStringError(Twine("tensor map: no matrices of ") + dtypeName(value.dtype));
  llvm::SmallVector<uint64_t> shape(value.shape.begin(), value.shape.end()), stride;
  llvm::SmallVector<unsigned> box(value.box.begin(), value.box.end()), step(shape.size(), 1);
  for (size_t axis = 0; axis + 1 < shape.size(); ++axis) { // from one to the next along the axis behind it
    uint64_t whole = axis ? stride.back() * shape[axis] : shape[0] * bytes;
    bool isGiven = !value.strides.empty() && shape[axis + 1] > 1;
    stride.push_back(isGiven ? uint64_t(value.strides[axis]) * bytes : whole);
  }
  if (stride[0] % alignment != 0)
    return llvm::createStringError("a row of " + Twine(stride[0]) + " bytes is no multiple of " + Twine(alignment) +
                                   " bytes: this kernel needs rows of a multiple of " + Twine(alignment / bytes) +
                                   " elements");
  if (value.pointer % alignment != 0)
    return llvm::createStringError("a tensor begins at no multiple of " + Twine(alignment) + " bytes");
  int swizzle = value.swizzle == 128 ? 3 : value.swizzle == 64 ? 2 : value.swizzle == 32 ? 1 : 0;
  return driver.check(driver.tensorMapEncode(map.bytes, element, unsigned(shape.size()),
                                             reinterpret_cast<void *>(value.pointer), shape.data(), stride.data(),
                                             box.data(), step.data(), noInterleave, swizzle, promoteTo256Bytes,
                                             zeroOutside),
                      "tensor map of " + Twine(shape[1]) + " rows of " + Twine(shape[0]) + " elements");
}
