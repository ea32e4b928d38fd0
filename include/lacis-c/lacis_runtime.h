/* SPDX-License-Identifier: Apache-2.0 */
/**
 * \file
 * The launch half of the C ABI: load compiled kernels, find them by key, run them on tensors.
 *
 * Functions that can fail return a `lacis_status`, and a text in `*error` unless it is LACIS_DONE, which
 * `lacis_string_free` releases.
 */
#ifndef LACIS_C_LACIS_RUNTIME_H
#define LACIS_C_LACIS_RUNTIME_H

#include "lacis-c/lacis.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lacis_kernel lacis_kernel;

enum lacis_dtype {
  LACIS_DTYPE_NONE = 0,
  LACIS_F16 = 1,
  LACIS_BF16 = 2,
  LACIS_F32 = 3,
  LACIS_F64 = 4,
  LACIS_I1 = 5,
  LACIS_I8 = 6,
  LACIS_I16 = 7,
  LACIS_I32 = 8,
  LACIS_I64 = 9,
  LACIS_DTYPE_OTHER = 10
};

/** The device number of the host; accelerators count from 0. */
#define LACIS_DEVICE_HOST (-1)

/** A tensor as its owner lends it for one launch; strides count elements. */
typedef struct lacis_tensor_view {
  void *data;
  const int64_t *sizes;
  const int64_t *strides;
  int32_t ndim;
  int32_t dtype;
  int32_t device;
} lacis_tensor_view;

/** What a kernel runs on: dense operands in order (the packed one left out), then the packed operand's storage and
 *  derived arrays in the order that `lacis_kernel_describe` lists them, and the packed operand's logical sizes. */
typedef struct lacis_launch_args {
  const lacis_tensor_view *operands;
  const lacis_tensor_view *storage;
  const int64_t *packed_sizes;
  lacis_tensor_view *output;
  size_t num_operands;
  size_t num_storage;
  size_t num_packed_sizes;
} lacis_launch_args;

typedef void (*lacis_range_fn)(int64_t begin, int64_t end, void *context);

/** Runs `body` over [begin, end), in pieces of at least `grain`; returns 0 when all of it ran. */
typedef int32_t (*lacis_parallel_for)(int64_t begin, int64_t end, int64_t grain, lacis_range_fn body, void *context);

/** Memory of the launch's device that stays until the work which is started with it has ended, aligned to 256 bytes;
 *  NULL where there is none. */
typedef void *(*lacis_allocate)(int64_t bytes, void *context);

/** Registers an artifact under `key` and loads it on `device`. Loading the same key again changes nothing. */
LACIS_EXPORT int lacis_kernel_load(const char *key, const void *artifact, size_t size, int32_t device, char **error);

/** Finds a registered kernel, or loads `<key>.lacis` from the search path. The kernel lives as long as the process. */
LACIS_EXPORT int lacis_kernel_find(const char *key, size_t key_size, lacis_kernel **kernel, char **error);

/** Folders and files, separated by ':', where kernels that nobody loaded are looked for. */
LACIS_EXPORT void lacis_kernel_set_path(const char *path);

/** What a caller must know to prepare a launch; a rank of -1 is not known. */
typedef struct lacis_signature {
  int32_t output_dtype;
  int32_t output_rank;
  int32_t zero_output; /* the caller fills the output with zeros: the kernel writes some of its elements only */
  const int32_t *operand_ranks; /* of the dense operands */
  size_t num_operands;
  /* Of each: 1 where the kernel takes any strides that are multiples of 16 bytes, but for the last, which is 1. */
  const int32_t *operand_strided;
} lacis_signature;

/** The signature, which lives as long as the kernel. */
LACIS_EXPORT const lacis_signature *lacis_kernel_signature(const lacis_kernel *kernel);

/** Checks `args` and starts every launch of the kernel, in order, on `stream` (or under `parallel_for` on the host,
 *  where NULL means the calling thread). `allocate` is called with `context` at most once, where the kernel needs a
 *  workspace. Returns without waiting for an accelerator, unless the kernel is a checked one. */
LACIS_EXPORT int lacis_kernel_launch(lacis_kernel *kernel, const lacis_launch_args *args, void *stream,
                                     lacis_parallel_for parallel_for, lacis_allocate allocate, void *context,
                                     char **error);

/** The artifact's header as JSON. */
LACIS_EXPORT int lacis_artifact_describe(const void *artifact, size_t size, lacis_buffer **json, char **error);

/** The artifact's code bytes. */
LACIS_EXPORT int lacis_artifact_code(const void *artifact, size_t size, lacis_buffer **code, char **error);

LACIS_EXPORT void lacis_string_free(char *text);

#ifdef __cplusplus
}
#endif
#endif
