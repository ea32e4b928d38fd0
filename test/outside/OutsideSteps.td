// SPDX-License-Identifier: Apache-2.0
// A step of a schedule that lives outside of the core's folders.

#ifndef OUTSIDE_STEPS_TD
#define OUTSIDE_STEPS_TD

include "lacis/Dialect/Lacis/Steps/StepBase.td"

def Outside_RenameStep : Lacis_Step<"Rename", "rename"> {
  let summary = "for i: s[i]  -->  for row: s[row]";
  let parameters = (ins StringRefParameter<>:$loop, StringRefParameter<>:$name);
}

#endif // OUTSIDE_STEPS_TD
