/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 *  Entries of the command line tools; each tool is a main that calls one of them. */
#ifndef LACIS_C_TOOLS_H
#define LACIS_C_TOOLS_H

#ifdef __cplusplus
extern "C" {
#endif

__attribute__((visibility("default"))) int lacis_opt_main(int argc, char **argv);
__attribute__((visibility("default"))) int lacis_lsp_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif /* LACIS_C_TOOLS_H */
