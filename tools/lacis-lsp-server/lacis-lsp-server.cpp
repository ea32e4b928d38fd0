// SPDX-License-Identifier: Apache-2.0
/// \file
/// The language server; all of it lives in the core library.
#include "lacis-c/tools.h"

int main(int argc, char **argv) { return lacis_lsp_main(argc, argv); }
