# SPDX-License-Identifier: Apache-2.0
"""The kernel that copies values to the places of an execution layout, at the stage of buffers; see
`lacis.patterns.copies`."""

# A thread moves a unit of one or two words; 256 threads are a block, as many as leave each of them its registers.
_TEXT = """
#units = #lacis.size<arg 0>
#room = #lacis.size<arg 1>
#words = #lacis.size<WORDS>
module attributes {lacis.stage = "buffers", lacis.artifact = {
    args = [{kind = "dim", operand = 0 : i64, dim = 0 : i64}, {kind = "dim", operand = -1 : i64, dim = 0 : i64},
            {kind = "operand", operand = 0 : i64}, {kind = "operand", operand = 1 : i64}, {kind = "output"}],
    index_bits = 64 : i64, output = {dtype = "WORD", shape = [#room, #words], zero = false}, workspace = [],
    sizes = [{name = "units"}, {name = "room"}],
    tensors = [{dims = [#units, #words], dtype = "WORD", operand = 0 : i64},
               {dims = [#units], dtype = "i64", operand = 1 : i64},
               {dims = [#room, #words], dtype = "WORD", operand = -1 : i64}]}} {
  func.func @scatter_units(%units: i64, %room: i64, %values: !llvm.ptr {llvm.noalias, llvm.readonly},
                           %places: !llvm.ptr {llvm.noalias, llvm.readonly}, %to: !llvm.ptr {llvm.noalias})
      attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %c8 = arith.constant 8 : i64
    %c32 = arith.constant 32 : i64
    %c256 = arith.constant 256 : i64
    %blocks = arith.ceildivui %units, %c256 : i64
    scf.for %block = %c0 to %blocks step %c1 : i64 {
      scf.for %warp = %c0 to %c8 step %c1 : i64 {
        scf.for %lane = %c0 to %c32 step %c1 : i64 {
          %before = arith.muli %block, %c256 : i64
          %row = arith.muli %warp, %c32 : i64
          %first = arith.addi %before, %row : i64
          %unit = arith.addi %first, %lane : i64
          %is = arith.cmpi slt, %unit, %units : i64
          scf.if %is {
            %at = llvm.getelementptr %places[%unit] : (!llvm.ptr, i64) -> !llvm.ptr, i64
            %place = llvm.load %at {alignment = 8 : i64} : !llvm.ptr -> i64
            %somewhere = arith.cmpi ult, %place, %room : i64
            scf.if %somewhere {
              %from = llvm.getelementptr %values[%unit] : (!llvm.ptr, i64) -> !llvm.ptr, UNIT
              %value = llvm.load %from {alignment = BYTES : i64} : !llvm.ptr -> UNIT
              %into = llvm.getelementptr %to[%place] : (!llvm.ptr, i64) -> !llvm.ptr, UNIT
              llvm.store %value, %into {alignment = BYTES : i64} : UNIT, !llvm.ptr
            }
          }
        } {lacis.bind = "lane", lacis.name = "u2", lacis.size = #lacis.size<32>}
      } {lacis.bind = "warp", lacis.name = "u1", lacis.size = #lacis.size<8>}
    } {lacis.bind = "block.x", lacis.name = "u0", lacis.size = #lacis.size<ceildiv(arg 0, 256)>}
    return
  }
}
"""


def scatter_units(bits: int, words: int) -> str:
    """The text for units of so many words of `bits` bits each.

    >>> "vector<2xi64>" in scatter_units(64, 2), "vector" in scatter_units(16, 1)
    (True, False)
    """
    unit = f"i{bits}" if words == 1 else f"vector<{words}xi{bits}>"
    named = {"WORDS": words, "WORD": f"i{bits}", "UNIT": unit, "BYTES": bits // 8 * words}
    text = _TEXT
    for name, value in named.items():
        text = text.replace(name, str(value))
    return text
