// SPDX-License-Identifier: Apache-2.0
/// \file
/// The compiler as a command; all of it lives in the core library.
#include "lacis-c/lacis.h"

int main(int argc, char **argv) { return lacis_compile_main(argc, argv); }
