/* SPDX-License-Identifier: Apache-2.0 */
/**
 * \file
 * The compile half of the C ABI: text in, artifact out.
 *
 * No exception crosses it, and no input ends the process.
 */
#ifndef LACIS_C_LACIS_H
#define LACIS_C_LACIS_H

#include <stddef.h>
#include <stdint.h>

#ifndef LACIS_EXPORT
#define LACIS_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes that the caller owns. A null buffer has no data and no size. */
typedef struct lacis_buffer lacis_buffer;
LACIS_EXPORT const char *lacis_buffer_data(const lacis_buffer *buffer); /* followed by a zero byte */
LACIS_EXPORT size_t lacis_buffer_size(const lacis_buffer *buffer);
LACIS_EXPORT lacis_buffer *lacis_buffer_create(const void *data, size_t size);
LACIS_EXPORT void lacis_buffer_free(lacis_buffer *buffer);

enum lacis_status {
  LACIS_DONE = 0,
  LACIS_REFUSED = 1, /* the input is at fault: diagnostics as "file:line:col: error: ...", or the tensor's name */
  LACIS_FAILED = 2   /* the compiler is at fault: diagnostics tell how to repeat it; a kernel that cannot run */
};

/**
 * Compiles MLIR text, at any stage, for a target ("cpu", "cuda:sm_90a").
 *
 * `options_json` (null for none) is an object with any of:
 *   "stages": bool           return the text of every stage
 *   "locations": bool        ... with the source locations in it
 *   "from", "to": stage      where the text stands (found in the text if absent), where to stop
 *   "file": string           the name of the text in messages
 *   "opt_level": 0..3        of LLVM; 3 if absent
 *   "cpu", "features"        of the CPU target: "host" or a name that LLVM knows
 *   "ptxas": path            makes a cubin of the PTX
 *   "ptxas_options": string  further words for it
 *   "check_ptxas": bool      refuses kernels for which ptxas warns of C75xx or spills registers
 *   "dump_dir": path         writes every stage there
 *
 * `artifact`, `stages_json` (an object: stage name to text) and `diagnostics` may be null; what they get may be null.
 */
LACIS_EXPORT int lacis_compile(const char *text, const char *target, const char *options_json, lacis_buffer **artifact,
                               lacis_buffer **stages_json, lacis_buffer **diagnostics);

/** The release, as "0.1.0". */
LACIS_EXPORT const char *lacis_version(void);

/** Changes with anything in this library that may change the code it makes; lives as long as the process. */
LACIS_EXPORT const char *lacis_compiler_fingerprint(void);

/** The processor that target "cpu" means here: its name and its features; lives as long as the process. */
LACIS_EXPORT const char *lacis_host_cpu(void);

/** The backends in this build, as "cpu,cuda"; lives as long as the process. */
LACIS_EXPORT const char *lacis_targets(void);

/** The whole command lacis-compile. */
LACIS_EXPORT int lacis_compile_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
