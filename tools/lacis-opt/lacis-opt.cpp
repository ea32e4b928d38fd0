// SPDX-License-Identifier: Apache-2.0
/// \file
/// The opt driver; all of it lives in the core library.
#include "lacis-c/tools.h"

int main(int argc, char **argv) { return lacis_opt_main(argc, argv); }
