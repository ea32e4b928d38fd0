// SPDX-License-Identifier: Apache-2.0
// The words that marks of loops, reads, writes and workspaces choose from.

#ifndef LACIS_MARK_ENUMS_TD
#define LACIS_MARK_ENUMS_TD

include "mlir/IR/EnumAttr.td"

class Lacis_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::lacis";
  let genSpecializedAttr = 0;
}

def Lacis_ParallelUnit : Lacis_Enum<"ParallelUnit", "a unit that runs iterations", [
  I32EnumAttrCase<"Parallel", 0, "parallel">,
  I32EnumAttrCase<"BlockX", 1, "block.x">, I32EnumAttrCase<"BlockY", 2, "block.y">, I32EnumAttrCase<"BlockZ", 3, "block.z">,
  I32EnumAttrCase<"ThreadX", 4, "thread.x">, I32EnumAttrCase<"ThreadY", 5, "thread.y">,
  I32EnumAttrCase<"ThreadZ", 6, "thread.z">, I32EnumAttrCase<"Threads", 7, "threads">,
  I32EnumAttrCase<"Warp", 8, "warp">, I32EnumAttrCase<"Lane", 9, "lane">, I32EnumAttrCase<"Warpgroup", 10, "warpgroup">]>;

def Lacis_TileSide : Lacis_Enum<"TileSide", "a side of a tile", [
  I32EnumAttrCase<"Rows", 0, "rows">, I32EnumAttrCase<"Columns", 1, "columns">, I32EnumAttrCase<"Depth", 2, "depth">]>;

def Lacis_WorkspacePlace : Lacis_Enum<"WorkspacePlace", "a place of a workspace", [
  I32EnumAttrCase<"Private", 0, "private">, I32EnumAttrCase<"Shared", 1, "shared">]>;

def Lacis_Reduction : Lacis_Enum<"Reduction", "an operation that brings the rounds of a loop together", [
  I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"Mul", 1, "mul">, I32EnumAttrCase<"Max", 2, "max">,
  I32EnumAttrCase<"Min", 3, "min">, I32EnumAttrCase<"Or", 4, "or">, I32EnumAttrCase<"And", 5, "and">]>;

def Lacis_AtomicKind : Lacis_Enum<"AtomicKind", "an instruction that combines a value with what is there", [
  I32EnumAttrCase<"AddF", 0, "fadd">, I32EnumAttrCase<"MaximumF", 1, "fmaximum">, I32EnumAttrCase<"Or", 2, "or">]>;

def Lacis_PathKind : Lacis_Enum<"PathKind", "what a loop belongs to", [
  I32EnumAttrCase<"Case", 0, "case">, I32EnumAttrCase<"Part", 1, "part">, I32EnumAttrCase<"Copy", 2, "copy">,
  I32EnumAttrCase<"Rows", 3, "rows">, I32EnumAttrCase<"Nest", 4, "nest">, I32EnumAttrCase<"Statement", 5, "statement">,
  I32EnumAttrCase<"Phase", 6, "phase">]>;

#endif // LACIS_MARK_ENUMS_TD
