// SPDX-License-Identifier: Apache-2.0
/// \file
/// Passes that only tests use.
#ifndef LACIS_LIB_TOOLS_TESTPASSES_H
#define LACIS_LIB_TOOLS_TESTPASSES_H

namespace lacis {
void registerTestPasses();
} // namespace lacis

#endif // LACIS_LIB_TOOLS_TESTPASSES_H
