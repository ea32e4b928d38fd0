# SPDX-License-Identifier: Apache-2.0
"""The kernel that brings rows together, written at the stage of buffers: see `lacis.patterns.group_rows`."""

from .barriers import with_barriers

# Rows are sets of steps, 32 in a word. Each unit of the range, or block of the grid, orders the rows of one matrix. It
# keeps how many steps each row has (-1 once the row has its place), and those that the rows of a panel have so far. A
# thread looks for the best of every 128th row, then each thread for the best of these. What the threads of a block
# leave for each other lies in workspaces, which are therefore not `noalias`.
_TEXT = """
#matrices = #lacis.size<arg 0>
#rows = #lacis.size<arg 1>
#width = #lacis.size<arg 2>
module attributes {lacis.stage = "buffers", lacis.artifact = {
    args = [{kind = "dim", operand = 0 : i64, dim = 0 : i64}, {kind = "dim", operand = 0 : i64, dim = 1 : i64},
            {kind = "dim", operand = 0 : i64, dim = 2 : i64}, {kind = "operand", operand = 0 : i64},
            {kind = "operand", operand = 1 : i64}, {kind = "workspace", index = 0 : i64},
            {kind = "workspace", index = 1 : i64}, {kind = "workspace", index = 2 : i64},
            {kind = "workspace", index = 3 : i64}, {kind = "output"}],
    index_bits = 32 : i64, output = {dtype = "i32", shape = [#matrices, #rows], zero = false},
    workspace = [{bytes = #lacis.size<arg 0 * 4 * arg 1>}, {bytes = #lacis.size<arg 0 * 4 * arg 2>},
                 {bytes = #lacis.size<arg 0 * 512>}, {bytes = #lacis.size<arg 0 * 512>}],
    sizes = [{name = "matrices"}, {name = "rows"}, {name = "width"}],
    tensors = [{dims = [#matrices, #rows, #width], dtype = "i32", operand = 0 : i64},
               {dims = [#rows], dtype = "i32", operand = 1 : i64},
               {dims = [#matrices, #rows], dtype = "i32", operand = -1 : i64}]}} {
  func.func @group_rows(%matrices: i32, %rows: i32, %width: i32, %words: !llvm.ptr {llvm.noalias, llvm.readonly},
                        %begins: !llvm.ptr {llvm.noalias, llvm.readonly}, %sizes: !llvm.ptr, %covered: !llvm.ptr,
                        %scores: !llvm.ptr, %names: !llvm.ptr, %to: !llvm.ptr) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %c128 = arith.constant 128 : i32
    %none = arith.constant -1 : i32
    %least = arith.constant -2147483648 : i32
    %threads = arith.minui %rows, %c128 : i32
    scf.for %matrix = %c0 to %matrices step %c1 : i32 {
      %first = arith.muli %matrix, %rows : i32
      %offset = arith.muli %matrix, %width : i32
      %space = arith.muli %matrix, %c128 : i32
      %score_of = llvm.getelementptr %scores[%space] : (!llvm.ptr, i32) -> !llvm.ptr, i32
      %name_of = llvm.getelementptr %names[%space] : (!llvm.ptr, i32) -> !llvm.ptr, i32
      scf.for %thread = %c0 to %c128 step %c1 : i32 {
        scf.for %row = %thread to %rows step %c128 : i32 {
          %at = arith.addi %first, %row : i32
          %word = arith.muli %at, %width : i32
          %size = scf.for %w = %c0 to %width step %c1 iter_args(%sum = %c0) -> (i32) : i32 {
            %n = arith.addi %word, %w : i32
            %p = llvm.getelementptr %words[%n] : (!llvm.ptr, i32) -> !llvm.ptr, i32
            %bits = llvm.load %p : !llvm.ptr -> i32
            %count = math.ctpop %bits : i32
            %more = arith.addi %sum, %count : i32
            scf.yield %more : i32
          }
          %p = llvm.getelementptr %sizes[%at] : (!llvm.ptr, i32) -> !llvm.ptr, i32
          llvm.store %size, %p : i32, !llvm.ptr
        }
      } {lacis.bind = "thread.x", lacis.name = "t", lacis.size = #lacis.size<128>}
      BARRIER
      scf.for %place = %c0 to %rows step %c1 : i32 {
        %bp = llvm.getelementptr %begins[%place] : (!llvm.ptr, i32) -> !llvm.ptr, i32
        %begin = llvm.load %bp : !llvm.ptr -> i32
        %is = arith.cmpi ne, %begin, %c0 : i32
        scf.for %thread = %c0 to %threads step %c1 : i32 {
          %best:2 = scf.for %row = %thread to %rows step %c128
              iter_args(%most = %least, %who = %thread) -> (i32, i32) : i32 {
            %at = arith.addi %first, %row : i32
            %sp = llvm.getelementptr %sizes[%at] : (!llvm.ptr, i32) -> !llvm.ptr, i32
            %size = llvm.load %sp : !llvm.ptr -> i32
            %word = arith.muli %at, %width : i32
            %common = scf.for %w = %c0 to %width step %c1 iter_args(%sum = %c0) -> (i32) : i32 {
              %n = arith.addi %word, %w : i32
              %p = llvm.getelementptr %words[%n] : (!llvm.ptr, i32) -> !llvm.ptr, i32
              %own = llvm.load %p : !llvm.ptr -> i32
              %c = arith.addi %offset, %w : i32
              %cp = llvm.getelementptr %covered[%c] : (!llvm.ptr, i32) -> !llvm.ptr, i32
              %before = llvm.load %cp : !llvm.ptr -> i32
              %bits = arith.andi %own, %before : i32
              %count = math.ctpop %bits : i32
              %more = arith.addi %sum, %count : i32
              scf.yield %more : i32
            }
            %thrice = arith.muli %common, %c3 : i32
            %shared = arith.subi %thrice, %size : i32
            %score = arith.select %is, %size, %shared : i32
            %free = arith.cmpi sge, %size, %c0 : i32
            %higher = arith.cmpi sgt, %score, %most : i32
            %better = arith.andi %free, %higher : i1
            %a = arith.select %better, %score, %most : i32
            %b = arith.select %better, %row, %who : i32
            scf.yield %a, %b : i32, i32
          }
          %ap = llvm.getelementptr %score_of[%thread] : (!llvm.ptr, i32) -> !llvm.ptr, i32
          %np = llvm.getelementptr %name_of[%thread] : (!llvm.ptr, i32) -> !llvm.ptr, i32
          llvm.store %best#0, %ap : i32, !llvm.ptr
          llvm.store %best#1, %np : i32, !llvm.ptr
        } {lacis.bind = "threads", lacis.name = "r", lacis.size = #rows}
        BARRIER
        %best:2 = scf.for %thread = %c0 to %threads step %c1
            iter_args(%most = %least, %who = %rows) -> (i32, i32) : i32 {
          %ap = llvm.getelementptr %score_of[%thread] : (!llvm.ptr, i32) -> !llvm.ptr, i32
          %np = llvm.getelementptr %name_of[%thread] : (!llvm.ptr, i32) -> !llvm.ptr, i32
          %score = llvm.load %ap : !llvm.ptr -> i32
          %name = llvm.load %np : !llvm.ptr -> i32
          %higher = arith.cmpi sgt, %score, %most : i32
          %equal = arith.cmpi eq, %score, %most : i32
          %lower = arith.cmpi slt, %name, %who : i32
          %tie = arith.andi %equal, %lower : i1
          %better = arith.ori %higher, %tie : i1
          %a = arith.select %better, %score, %most : i32
          %b = arith.select %better, %name, %who : i32
          scf.yield %a, %b : i32, i32
        }
        %at = arith.addi %first, %place : i32
        %op = llvm.getelementptr %to[%at] : (!llvm.ptr, i32) -> !llvm.ptr, i32
        llvm.store %best#1, %op : i32, !llvm.ptr
        %chosen = arith.addi %first, %best#1 : i32
        %sp = llvm.getelementptr %sizes[%chosen] : (!llvm.ptr, i32) -> !llvm.ptr, i32
        llvm.store %none, %sp : i32, !llvm.ptr
        %word = arith.muli %chosen, %width : i32
        scf.for %w = %c0 to %width step %c1 : i32 {
          %n = arith.addi %word, %w : i32
          %p = llvm.getelementptr %words[%n] : (!llvm.ptr, i32) -> !llvm.ptr, i32
          %own = llvm.load %p : !llvm.ptr -> i32
          %c = arith.addi %offset, %w : i32
          %cp = llvm.getelementptr %covered[%c] : (!llvm.ptr, i32) -> !llvm.ptr, i32
          %before = llvm.load %cp : !llvm.ptr -> i32
          %both = arith.ori %own, %before : i32
          %now = arith.select %is, %own, %both : i32
          llvm.store %now, %cp : i32, !llvm.ptr
        } {lacis.bind = "threads", lacis.name = "w", lacis.size = #width}
        BARRIER
      }
    } {lacis.bind = "block.x", lacis.name = "matrix", lacis.size = #matrices}
    return
  }
}
"""


def group_rows(is_on_gpu: bool) -> str:
    """The text; the threads of a block, which a GPU has, wait for each other.

    >>> "nvvm.barrier0" in group_rows(True), "nvvm.barrier0" in group_rows(False)
    (True, False)
    """
    return with_barriers(_TEXT, is_on_gpu)
