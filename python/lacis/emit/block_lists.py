# SPDX-License-Identifier: Apache-2.0
"""The kernels that make patterns of lists of blocks, at the stage of buffers; see `lacis.attentions.lists`."""

from .barriers import with_barriers

# Eight lists are a unit of the range, or block of the grid. First elements that name no block, or one that an element
# before them names, are struck out in a workspace, which is therefore not `noalias`; then each of the others goes to
# the place that the number of smaller ones says.
_ORDERED = """
#batch = #lacis.size<arg 0>
#heads = #lacis.size<arg 1>
#rows = #lacis.size<arg 2>
#width = #lacis.size<arg 3>
#count = #lacis.size<arg 4>
module attributes {lacis.stage = "buffers", lacis.artifact = {
    args = [{kind = "dim", operand = -1 : i64, dim = 0 : i64}, {kind = "dim", operand = -1 : i64, dim = 1 : i64},
            {kind = "dim", operand = -1 : i64, dim = 2 : i64}, {kind = "dim", operand = -1 : i64, dim = 3 : i64},
            {kind = "dim", operand = 1 : i64, dim = 0 : i64}, {kind = "dim", operand = 0 : i64, dim = 0 : i64},
            {kind = "dim", operand = 0 : i64, dim = 1 : i64}, {kind = "operand", operand = 0 : i64},
            {kind = "workspace", index = 0 : i64}, {kind = "output"}],
    index_bits = 64 : i64, output = {dtype = "i32", shape = [#batch, #heads, #rows, #width], zero = false},
    workspace = [{bytes = #lacis.size<arg 0 * 4 * arg 1 * arg 2 * arg 3>}],
    sizes = [{name = "batch"}, {name = "heads"}, {name = "rows"}, {name = "width"}, {name = "count"},
             {name = "batches"}, {name = "groups"}],
    tensors = [{dims = [#lacis.size<arg 5>, #lacis.size<arg 6>, #rows, #width], dtype = "GIVEN", operand = 0 : i64},
               {dims = [#count], dtype = "i32", operand = 1 : i64},
               {dims = [#batch, #heads, #rows, #width], dtype = "i32", operand = -1 : i64}]}} {
  func.func @ordered_lists(%batch: i64, %heads: i64, %rows: i64, %width: i64, %count: i64, %batches: i64, %groups: i64,
                           %lists: !llvm.ptr {llvm.noalias, llvm.readonly}, %left: !llvm.ptr,
                           %to: !llvm.ptr {llvm.noalias}) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %c8 = arith.constant 8 : i64
    %c128 = arith.constant 128 : i64
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %none = arith.constant -1 : i32
    %most = arith.constant 2147483647 : i32
    %above = arith.muli %batch, %heads : i64
    %all = arith.muli %above, %rows : i64
    %end = arith.muli %all, %width : i64
    %blocks = arith.ceildivui %all, %c8 : i64
    %several = arith.muli %c8, %width : i64
    %group = arith.divui %heads, %groups : i64
    %last = arith.subi %batches, %c1 : i64
    scf.for %block = %c0 to %blocks step %c1 : i64 {
      %first = arith.muli %block, %several : i64
      %behind = arith.addi %first, %several : i64
      %until = arith.minui %behind, %end : i64
      scf.for %thread = %c0 to %c128 step %c1 : i64 {
        %begin = arith.addi %first, %thread : i64
        scf.for %unit = %begin to %until step %c128 : i64 {
          %number = arith.divui %unit, %width : i64
          %place = arith.remui %unit, %width : i64
          %row = arith.remui %number, %rows : i64
          %owner = arith.divui %number, %rows : i64
          %head = arith.remui %owner, %heads : i64
          %b = arith.divui %owner, %heads : i64
          %b0 = arith.minui %b, %last : i64
          %h0 = arith.divui %head, %group : i64
          %b1 = arith.muli %b0, %groups : i64
          %h1 = arith.addi %b1, %h0 : i64
          %h2 = arith.muli %h1, %rows : i64
          %r1 = arith.addi %h2, %row : i64
          %at = arith.muli %r1, %width : i64
          %list = llvm.getelementptr %lists[%at] : (!llvm.ptr, i64) -> !llvm.ptr, GIVEN
          %op = llvm.getelementptr %list[%place] : (!llvm.ptr, i64) -> !llvm.ptr, GIVEN
          %own = llvm.load %op : !llvm.ptr -> GIVEN
          %wide = WIDENED
          %there = arith.cmpi ult, %wide, %count : i64
          %again = scf.for %e = %c0 to %place step %c1 iter_args(%found = %zero) -> (i32) : i64 {
            %p = llvm.getelementptr %list[%e] : (!llvm.ptr, i64) -> !llvm.ptr, GIVEN
            %other = llvm.load %p : !llvm.ptr -> GIVEN
            %is = arith.cmpi eq, %other, %own : GIVEN
            %so = arith.extui %is : i1 to i32
            %more = arith.ori %found, %so : i32
            scf.yield %more : i32
          }
          %is_first = arith.cmpi eq, %again, %zero : i32
          %counts = arith.andi %there, %is_first : i1
          %narrow = arith.trunci %wide : i64 to i32
          %kept = arith.select %counts, %narrow, %most : i32
          %kp = llvm.getelementptr %left[%unit] : (!llvm.ptr, i64) -> !llvm.ptr, i32
          llvm.store %kept, %kp : i32, !llvm.ptr
        }
      } {lacis.bind = "thread.x", lacis.name = "t", lacis.size = #lacis.size<128>}
      BARRIER
      scf.for %ahead = %c0 to %several step %c1 : i64 {
        %unit = arith.addi %first, %ahead : i64
        %is_there = arith.cmpi ult, %unit, %until : i64
        scf.if %is_there {
          %number = arith.divui %unit, %width : i64
          %place = arith.remui %unit, %width : i64
          %at = arith.muli %number, %width : i64
          %list = llvm.getelementptr %left[%at] : (!llvm.ptr, i64) -> !llvm.ptr, i32
          %op = llvm.getelementptr %list[%place] : (!llvm.ptr, i64) -> !llvm.ptr, i32
          %own = llvm.load %op : !llvm.ptr -> i32
          %before, %sound = scf.for %e = %c0 to %width step %c1
              iter_args(%less = %zero, %valid = %zero) -> (i32, i32) : i64 {
            %p = llvm.getelementptr %list[%e] : (!llvm.ptr, i64) -> !llvm.ptr, i32
            %other = llvm.load %p : !llvm.ptr -> i32
            %is_less = arith.cmpi slt, %other, %own : i32
            %is_valid = arith.cmpi ne, %other, %most : i32
            %l = arith.extui %is_less : i1 to i32
            %v = arith.extui %is_valid : i1 to i32
            %l1 = arith.addi %less, %l : i32
            %v1 = arith.addi %valid, %v : i32
            scf.yield %l1, %v1 : i32, i32
          }
          %line = llvm.getelementptr %to[%at] : (!llvm.ptr, i64) -> !llvm.ptr, i32
          %counts = arith.cmpi ne, %own, %most : i32
          scf.if %counts {
            %np = llvm.getelementptr %line[%before] : (!llvm.ptr, i32) -> !llvm.ptr, i32
            llvm.store %own, %np : i32, !llvm.ptr
          }
          %here = arith.trunci %place : i64 to i32
          %is_left = arith.cmpi sge, %here, %sound : i32
          scf.if %is_left {
            %np = llvm.getelementptr %line[%place] : (!llvm.ptr, i64) -> !llvm.ptr, i32
            llvm.store %none, %np : i32, !llvm.ptr
          }
        }
      } {lacis.bind = "threads", lacis.name = "e", lacis.size = #lacis.size<arg 3 * 8>}
    } {lacis.bind = "block.x", lacis.name = "list", lacis.size = #lacis.size<ceildiv(arg 0 * arg 1 * arg 2, 8)>}
    return
  }
}
"""

# Eight columns of blocks are a unit of the range, or block of the grid, each of them 32 threads, which have a share of
# its head's elements: they count those that are less, behind which those of the column begin, and those of the column,
# into a workspace, which is therefore not `noalias`; then each puts the rows of its own behind those of the threads
# before it.
_COLUMNS = """
#heads = #lacis.size<arg 0>
#rows = #lacis.size<arg 1>
#width = #lacis.size<arg 2>
#columns = #lacis.size<arg 3>
module attributes {lacis.stage = "buffers", lacis.artifact = {
    args = [{kind = "dim", operand = 0 : i64, dim = 0 : i64}, {kind = "dim", operand = 0 : i64, dim = 1 : i64},
            {kind = "dim", operand = 0 : i64, dim = 2 : i64}, {kind = "dim", operand = 1 : i64, dim = 1 : i64},
            {kind = "operand", operand = 0 : i64}, {kind = "operand", operand = 1 : i64},
            {kind = "operand", operand = 2 : i64}, {kind = "workspace", index = 0 : i64}, {kind = "output"}],
    index_bits = 64 : i64, output = {dtype = "i32", shape = [#heads, #rows, #width], zero = false},
    workspace = [{bytes = #lacis.size<arg 0 * 256 * arg 3>}],
    sizes = [{name = "heads"}, {name = "rows"}, {name = "width"}, {name = "columns"}],
    tensors = [{dims = [#heads, #rows, #width], dtype = "i32", operand = 0 : i64},
               {dims = [#heads, #columns], dtype = "i32", operand = 1 : i64},
               {dims = [#heads, #columns], dtype = "i32", operand = 2 : i64},
               {dims = [#heads, #rows, #width], dtype = "i32", operand = -1 : i64}]}} {
  func.func @columns_of_lists(%heads: i64, %rows: i64, %width: i64, %columns: i64,
                              %lists: !llvm.ptr {llvm.noalias, llvm.readonly}, %lo: !llvm.ptr {llvm.noalias},
                              %hi: !llvm.ptr {llvm.noalias}, %counts: !llvm.ptr, %to: !llvm.ptr {llvm.noalias})
      attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %c8 = arith.constant 8 : i64
    %c32 = arith.constant 32 : i64
    %c256 = arith.constant 256 : i64
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %all = arith.muli %heads, %columns : i64
    %each = arith.muli %rows, %width : i64
    %share = arith.ceildivui %each, %c32 : i64
    %narrow = arith.trunci %width : i64 to i32
    %blocks = arith.ceildivui %all, %c8 : i64
    scf.for %block = %c0 to %blocks step %c1 : i64 {
      scf.for %thread = %c0 to %c256 step %c1 : i64 {THREAD
            %less, %mine = scf.for %e = %begin to %end step %one
                iter_args(%before = %zero, %own = %zero) -> (i32, i32) : i32 {
              %p = llvm.getelementptr %list[%e] : (!llvm.ptr, i32) -> !llvm.ptr, i32
              %crd = llvm.load %p : !llvm.ptr -> i32
              %is_less = arith.cmpi ult, %crd, %column : i32
              %is_mine = arith.cmpi eq, %crd, %column : i32
              %l = arith.extui %is_less : i1 to i32
              %m = arith.extui %is_mine : i1 to i32
              %l1 = arith.addi %before, %l : i32
              %m1 = arith.addi %own, %m : i32
              scf.yield %l1, %m1 : i32, i32
            }
            %lp = llvm.getelementptr %count[%part] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<2 x i32>
            llvm.store %less, %lp : i32, !llvm.ptr
            %mp = llvm.getelementptr %lp[1] : (!llvm.ptr) -> !llvm.ptr, i32
            llvm.store %mine, %mp : i32, !llvm.ptr
          }
      } {lacis.bind = "thread.x", lacis.name = "t", lacis.size = #lacis.size<256>}
      BARRIER
      scf.for %thread = %c0 to %c256 step %c1 : i64 {THREAD
            %less, %mine, %ahead = scf.for %n = %c0 to %c32 step %c1
                iter_args(%before = %zero, %own = %zero, %first_own = %zero) -> (i32, i32, i32) : i64 {
              %lp = llvm.getelementptr %count[%n] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<2 x i32>
              %l = llvm.load %lp : !llvm.ptr -> i32
              %mp = llvm.getelementptr %lp[1] : (!llvm.ptr) -> !llvm.ptr, i32
              %m = llvm.load %mp : !llvm.ptr -> i32
              %is_before = arith.cmpi ult, %n, %part : i64
              %b = arith.select %is_before, %m, %zero : i32
              %l1 = arith.addi %before, %l : i32
              %m1 = arith.addi %own, %m : i32
              %b1 = arith.addi %first_own, %b : i32
              scf.yield %l1, %m1, %b1 : i32, i32, i32
            }
            %is_first = arith.cmpi eq, %part, %c0 : i64
            scf.if %is_first {
              %start = arith.trunci %first : i64 to i32
              %from = arith.addi %start, %less : i32
              %until = arith.addi %from, %mine : i32
              %lp = llvm.getelementptr %lo[%unit] : (!llvm.ptr, i64) -> !llvm.ptr, i32
              llvm.store %from, %lp : i32, !llvm.ptr
              %hp = llvm.getelementptr %hi[%unit] : (!llvm.ptr, i64) -> !llvm.ptr, i32
              llvm.store %until, %hp : i32, !llvm.ptr
            }
            %room = llvm.getelementptr %to[%first] : (!llvm.ptr, i64) -> !llvm.ptr, i32
            %place = arith.addi %less, %ahead : i32
            %last = scf.for %e = %begin to %end step %one iter_args(%at = %place) -> (i32) : i32 {
              %p = llvm.getelementptr %list[%e] : (!llvm.ptr, i32) -> !llvm.ptr, i32
              %crd = llvm.load %p : !llvm.ptr -> i32
              %is_mine = arith.cmpi eq, %crd, %column : i32
              %next = scf.if %is_mine -> (i32) {
                %row = arith.divui %e, %narrow : i32
                %rp = llvm.getelementptr %room[%at] : (!llvm.ptr, i32) -> !llvm.ptr, i32
                llvm.store %row, %rp : i32, !llvm.ptr
                %behind = arith.addi %at, %one : i32
                scf.yield %behind : i32
              } else {
                scf.yield %at : i32
              }
              scf.yield %next : i32
            }
          }
      } {lacis.bind = "threads", lacis.name = "s", lacis.size = #lacis.size<256>}
    } {lacis.bind = "block.x", lacis.name = "j", lacis.size = #lacis.size<ceildiv(arg 0 * arg 3, 8)>}
    return
  }
}
"""

# Neighbouring threads have one share of several columns, so that they read the same. They have elements from `%begin`
# to `%end` of `%list`, that of the head of column number `%unit`, and counts at `%part` of the column's.
_THREAD = """
          %number = arith.remui %thread, %c8 : i64
          %part = arith.divui %thread, %c8 : i64
          %u = arith.muli %block, %c8 : i64
          %unit = arith.addi %u, %number : i64
          %is = arith.cmpi ult, %unit, %all : i64
          scf.if %is {
            %head = arith.divui %unit, %columns : i64
            %c = arith.remui %unit, %columns : i64
            %column = arith.trunci %c : i64 to i32
            %first = arith.muli %head, %each : i64
            %list = llvm.getelementptr %lists[%first] : (!llvm.ptr, i64) -> !llvm.ptr, i32
            %s0 = arith.muli %part, %share : i64
            %s1 = arith.minui %s0, %each : i64
            %e0 = arith.addi %s0, %share : i64
            %e1 = arith.minui %e0, %each : i64
            %begin = arith.trunci %s1 : i64 to i32
            %end = arith.trunci %e1 : i64 to i32
            %w = arith.muli %unit, %c32 : i64
            %count = llvm.getelementptr %counts[%w] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<2 x i32>"""


def ordered_lists(bits: int, is_on_gpu: bool) -> str:
    """The text for lists of numbers of so many bits: ascending, each once, -1 behind.

    >>> "nvvm.barrier0" in ordered_lists(64, True), "extsi" in ordered_lists(32, False)
    (True, True)
    """
    widened = "arith.extsi %own : i32 to i64" if bits == 32 else "arith.addi %own, %c0 : i64"
    text = _ORDERED.replace("WIDENED", widened).replace("GIVEN", f"i{bits}")
    return with_barriers(text, is_on_gpu)


def columns_of_lists(is_on_gpu: bool) -> str:
    """The text of the kernel that lists, for each column of blocks, the rows whose lists have it.

    >>> "nvvm.barrier0" in columns_of_lists(True), "nvvm.barrier0" in columns_of_lists(False)
    (True, False)
    """
    return with_barriers(_COLUMNS.replace("THREAD", _THREAD), is_on_gpu)
