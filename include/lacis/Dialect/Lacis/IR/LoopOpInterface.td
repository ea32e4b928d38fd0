// SPDX-License-Identifier: Apache-2.0
// What loops over coordinates and loops over positions have in common.

#ifndef LACIS_LOOP_OP_INTERFACE_TD
#define LACIS_LOOP_OP_INTERFACE_TD

include "mlir/IR/OpBase.td"

class Lacis_Mark<string type, string name> : InterfaceMethod<"", type, "get" # name, (ins)>;
class Lacis_SetMark<string type, string name> : InterfaceMethod<"", "void", "set" # name, (ins type:$value)>;

def Lacis_LoopOpInterface : OpInterface<"LoopOpInterface"> {
  let description = "A loop of a nest: its name, what it belongs to, and the marks that every loop can have.";
  let cppNamespace = "::lacis";
  let methods = [
    Lacis_Mark<"::llvm::StringRef", "Name">,
    Lacis_Mark<"::lacis::LoopName", "LoopName">,
    Lacis_Mark<"::llvm::StringRef", "Letters">,
    Lacis_Mark<"::lacis::PathAttr", "PathAttr">, Lacis_SetMark<"::lacis::PathAttr", "PathAttr">,
    Lacis_Mark<"bool", "Holds">, Lacis_SetMark<"bool", "Holds">,
    Lacis_Mark<"::std::optional<uint64_t>", "Pipeline">, Lacis_SetMark<"::std::optional<uint64_t>", "Pipeline">,
    Lacis_Mark<"::std::optional<::lacis::Reduction>", "Reduce">,
    Lacis_SetMark<"::std::optional<::lacis::Reduction>", "Reduce">,
    Lacis_Mark<"bool", "Stages">, Lacis_SetMark<"bool", "Stages">,
    Lacis_Mark<"::std::optional<uint64_t>", "Sums">, Lacis_SetMark<"::std::optional<uint64_t>", "Sums">,
    Lacis_Mark<"::std::optional<uint64_t>", "Unroll">, Lacis_SetMark<"::std::optional<uint64_t>", "Unroll">
  ];
}

#endif // LACIS_LOOP_OP_INTERFACE_TD
