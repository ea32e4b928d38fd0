# SPDX-License-Identifier: Apache-2.0
"""The kernel that makes patterns of lists of blocks, at the stage of buffers; see `lacis.attentions.lists`."""

from .barriers import with_barriers

# First eight lists are a unit of the range, or block of the grid: elements that name no block, or one that an element
# before them names, are struck out in a workspace, which is therefore not `noalias`; then each of the others goes to
# the place that the number of smaller ones says. Behind these units, eight columns of blocks are one, each of them 32
# threads, which have a share of its head's lists as they are given: they count the elements that are less, behind which
# those of the column begin, and the lists that name the column, into another workspace; then each puts the rows of its
# own behind those of the threads before it. A list that names a smaller column twice leaves room before the rows.
#
# The output has, each from a multiple of 16 bytes on, the lists in order and, where columns are wanted, their rows,
# where each column's rows begin, and where they end. Sizes that no list has are those of an operand without elements.
_TEXT = """
#batch = #lacis.size<arg 0>
#heads = #lacis.size<arg 1>
#count = #lacis.size<arg 2>
#wanted = #lacis.size<arg 3>
#rows = #lacis.size<arg 4>
#width = #lacis.size<arg 5>
#all = #lacis.size<4 * (1 + arg 3) * ceildiv(arg 0 * arg 1 * arg 4 * arg 5, 4)
                   + 8 * arg 3 * ceildiv(arg 0 * arg 1 * arg 2, 4)>
module attributes {lacis.stage = "buffers", lacis.artifact = {
    args = [{kind = "dim", operand = 1 : i64, dim = 0 : i64}, {kind = "dim", operand = 1 : i64, dim = 1 : i64},
            {kind = "dim", operand = 1 : i64, dim = 2 : i64}, {kind = "dim", operand = 1 : i64, dim = 3 : i64},
            {kind = "dim", operand = 0 : i64, dim = 2 : i64}, {kind = "dim", operand = 0 : i64, dim = 3 : i64},
            {kind = "dim", operand = 0 : i64, dim = 0 : i64}, {kind = "dim", operand = 0 : i64, dim = 1 : i64},
            {kind = "operand", operand = 0 : i64}, {kind = "workspace", index = 0 : i64},
            {kind = "workspace", index = 1 : i64}, {kind = "output"}],
    index_bits = 64 : i64, output = {dtype = "i32", shape = [#all], zero = false},
    workspace = [{bytes = #lacis.size<arg 0 * 4 * arg 1 * arg 4 * arg 5>},
                 {bytes = #lacis.size<arg 0 * 256 * arg 1 * arg 2 * arg 3>}],
    sizes = [{name = "batch"}, {name = "heads"}, {name = "count"}, {name = "wanted"}, {name = "rows"},
             {name = "width"}, {name = "batches"}, {name = "groups"}],
    tensors = [{dims = [#lacis.size<arg 6>, #lacis.size<arg 7>, #rows, #width], dtype = "GIVEN", operand = 0 : i64},
               {dims = [#batch, #heads, #count, #wanted, #lacis.size<0>], dtype = "i32", operand = 1 : i64},
               {dims = [#all], dtype = "i32", operand = -1 : i64}]}} {
  func.func @block_lists(%batch: i64, %heads: i64, %count: i64, %wanted: i64, %rows: i64, %width: i64, %batches: i64,
                         %groups: i64, %lists: !llvm.ptr {llvm.noalias, llvm.readonly}, %left: !llvm.ptr,
                         %counts: !llvm.ptr, %to: !llvm.ptr {llvm.noalias}) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %c4 = arith.constant 4 : i64
    %c8 = arith.constant 8 : i64
    %c32 = arith.constant 32 : i64
    %c256 = arith.constant 256 : i64
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %none = arith.constant -1 : i32
    %most = arith.constant 2147483647 : i32
    %above = arith.muli %batch, %heads : i64
    %all = arith.muli %above, %rows : i64
    %end = arith.muli %all, %width : i64
    %row_units = arith.ceildivui %all, %c8 : i64
    %several = arith.muli %c8, %width : i64
    %group = arith.divui %heads, %groups : i64
    %last = arith.subi %batches, %c1 : i64
    %places = arith.muli %above, %count : i64
    %columns = arith.muli %places, %wanted : i64
    %column_units = arith.ceildivui %columns, %c8 : i64
    %units = arith.addi %row_units, %column_units : i64
    %each = arith.muli %rows, %width : i64
    %share = arith.ceildivui %rows, %c32 : i64
    %lines = arith.ceildivui %end, %c4 : i64
    %by_rows = arith.muli %lines, %c4 : i64
    %room = llvm.getelementptr %to[%by_rows] : (!llvm.ptr, i64) -> !llvm.ptr, i32
    %lo = llvm.getelementptr %room[%by_rows] : (!llvm.ptr, i64) -> !llvm.ptr, i32
    %ends = arith.ceildivui %places, %c4 : i64
    %by_columns = arith.muli %ends, %c4 : i64
    %hi = llvm.getelementptr %lo[%by_columns] : (!llvm.ptr, i64) -> !llvm.ptr, i32
    scf.for %block = %c0 to %units step %c1 : i64 {
      %first = arith.muli %block, %several : i64
      %behind = arith.addi %first, %several : i64
      %until = arith.minui %behind, %end : i64
      scf.for %thread = %c0 to %c256 step %c1 : i64 {
        %begin = arith.addi %first, %thread : i64
        scf.for %unit = %begin to %until step %c256 : i64 {
          %number = arith.divui %unit, %width : i64
          %place = arith.remui %unit, %width : i64
          %row = arith.remui %number, %rows : i64
          %owner = arith.divui %number, %rows : i64
OWNER
          %at = arith.muli %row, %width : i64
          %list = llvm.getelementptr %own_lists[%at] : (!llvm.ptr, i64) -> !llvm.ptr, GIVEN
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
          %is_kept = arith.andi %there, %is_first : i1
          %narrow = arith.trunci %wide : i64 to i32
          %kept = arith.select %is_kept, %narrow, %most : i32
          %kp = llvm.getelementptr %left[%unit] : (!llvm.ptr, i64) -> !llvm.ptr, i32
          llvm.store %kept, %kp : i32, !llvm.ptr
        }
      } {lacis.bind = "thread.x", lacis.name = "t", lacis.size = #lacis.size<256>}
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
          %is_kept = arith.cmpi ne, %own, %most : i32
          scf.if %is_kept {
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
      } {lacis.bind = "threads", lacis.name = "e", lacis.size = #lacis.size<arg 5 * 8>}
      %behind_rows = arith.subi %block, %row_units : i64
      %first_column = arith.muli %behind_rows, %c8 : i64
      scf.for %thread = %c0 to %c256 step %c1 : i64 {THREAD
            %less, %mine = scf.for %row = %begin to %stop step %c1
                iter_args(%before = %zero, %own = %zero) -> (i32, i32) : i64 {
              %at = arith.muli %row, %width : i64
              %list = llvm.getelementptr %own_lists[%at] : (!llvm.ptr, i64) -> !llvm.ptr, GIVEN
              %b1, %found = scf.for %e = %c0 to %width step %c1
                  iter_args(%b0 = %before, %f0 = %zero) -> (i32, i32) : i64 {
                %p = llvm.getelementptr %list[%e] : (!llvm.ptr, i64) -> !llvm.ptr, GIVEN
                %crd = llvm.load %p : !llvm.ptr -> GIVEN
                %is_less = arith.cmpi ult, %crd, %column : GIVEN
                %is_mine = arith.cmpi eq, %crd, %column : GIVEN
                %l = arith.extui %is_less : i1 to i32
                %m = arith.extui %is_mine : i1 to i32
                %l1 = arith.addi %b0, %l : i32
                %f1 = arith.ori %f0, %m : i32
                scf.yield %l1, %f1 : i32, i32
              }
              %o1 = arith.addi %own, %found : i32
              scf.yield %b1, %o1 : i32, i32
            }
            %lp = llvm.getelementptr %count_of[%part] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<2 x i32>
            llvm.store %less, %lp : i32, !llvm.ptr
            %mp = llvm.getelementptr %lp[1] : (!llvm.ptr) -> !llvm.ptr, i32
            llvm.store %mine, %mp : i32, !llvm.ptr
          }
      } {lacis.bind = "threads", lacis.name = "s", lacis.size = #lacis.size<256>}
      BARRIER
      scf.for %thread = %c0 to %c256 step %c1 : i64 {THREAD
            %less, %mine, %ahead = scf.for %n = %c0 to %c32 step %c1
                iter_args(%before = %zero, %own = %zero, %first_own = %zero) -> (i32, i32, i32) : i64 {
              %lp = llvm.getelementptr %count_of[%n] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<2 x i32>
              %l = llvm.load %lp : !llvm.ptr -> i32
              %mp = llvm.getelementptr %lp[1] : (!llvm.ptr) -> !llvm.ptr, i32
              %m = llvm.load %mp : !llvm.ptr -> i32
              %is_before = arith.cmpi ult, %n, %part : i64
              %m_before = arith.select %is_before, %m, %zero : i32
              %l1 = arith.addi %before, %l : i32
              %m1 = arith.addi %own, %m : i32
              %b1 = arith.addi %first_own, %m_before : i32
              scf.yield %l1, %m1, %b1 : i32, i32, i32
            }
            %first_of_head = arith.muli %owner, %each : i64
            %is_first = arith.cmpi eq, %part, %c0 : i64
            scf.if %is_first {
              %start = arith.trunci %first_of_head : i64 to i32
              %from = arith.addi %start, %less : i32
              %upto = arith.addi %from, %mine : i32
              %lp = llvm.getelementptr %lo[%unit] : (!llvm.ptr, i64) -> !llvm.ptr, i32
              llvm.store %from, %lp : i32, !llvm.ptr
              %hp = llvm.getelementptr %hi[%unit] : (!llvm.ptr, i64) -> !llvm.ptr, i32
              llvm.store %upto, %hp : i32, !llvm.ptr
            }
            %line = llvm.getelementptr %room[%first_of_head] : (!llvm.ptr, i64) -> !llvm.ptr, i32
            %place = arith.addi %less, %ahead : i32
            %next_place = scf.for %row = %begin to %stop step %c1 iter_args(%place_of_row = %place) -> (i32) : i64 {
              %at = arith.muli %row, %width : i64
              %list = llvm.getelementptr %own_lists[%at] : (!llvm.ptr, i64) -> !llvm.ptr, GIVEN
              %found = scf.for %e = %c0 to %width step %c1 iter_args(%f0 = %zero) -> (i32) : i64 {
                %p = llvm.getelementptr %list[%e] : (!llvm.ptr, i64) -> !llvm.ptr, GIVEN
                %crd = llvm.load %p : !llvm.ptr -> GIVEN
                %is_mine = arith.cmpi eq, %crd, %column : GIVEN
                %m = arith.extui %is_mine : i1 to i32
                %f1 = arith.ori %f0, %m : i32
                scf.yield %f1 : i32
              }
              %is_found = arith.cmpi ne, %found, %zero : i32
              scf.if %is_found {
                %number = arith.trunci %row : i64 to i32
                %rp = llvm.getelementptr %line[%place_of_row] : (!llvm.ptr, i32) -> !llvm.ptr, i32
                llvm.store %number, %rp : i32, !llvm.ptr
              }
              %next = arith.addi %place_of_row, %found : i32
              scf.yield %next : i32
            }
          }
      } {lacis.bind = "threads", lacis.name = "r", lacis.size = #lacis.size<256>}
    } {lacis.bind = "block.x", lacis.name = "unit",
       lacis.size = #lacis.size<ceildiv(arg 0 * arg 1 * arg 4, 8) + ceildiv(arg 0 * arg 1 * arg 2 * arg 3, 8)>}
    return
  }
}
"""

# Neighbouring threads have one share of several columns, so that they read the same. They have rows from `%begin` to
# `%stop` of `%own_lists`, those of the head of column number `%unit`, and counts at `%part` of the column's.
_THREAD = """
          %number_of_unit = arith.remui %thread, %c8 : i64
          %part = arith.divui %thread, %c8 : i64
          %unit = arith.addi %first_column, %number_of_unit : i64
          %is_there = arith.cmpi ult, %unit, %columns : i64
          scf.if %is_there {
            %owner = arith.divui %unit, %count : i64
            %c = arith.remui %unit, %count : i64
            %column = NARROWED
OWNER
            %s0 = arith.muli %part, %share : i64
            %begin = arith.minui %s0, %rows : i64
            %e0 = arith.addi %begin, %share : i64
            %stop = arith.minui %e0, %rows : i64
            %w = arith.muli %unit, %c32 : i64
            %count_of = llvm.getelementptr %counts[%w] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<2 x i32>"""

# The lists of head number `%owner`: those of a batch, or of a group of heads, are there once.
_OWNER = """
          %head = arith.remui %owner, %heads : i64
          %b = arith.divui %owner, %heads : i64
          %batch_of_lists = arith.minui %b, %last : i64
          %group_of_lists = arith.divui %head, %group : i64
          %groups_before = arith.muli %batch_of_lists, %groups : i64
          %lists_before = arith.addi %groups_before, %group_of_lists : i64
          %first_list = arith.muli %lists_before, %each : i64
          %own_lists = llvm.getelementptr %lists[%first_list] : (!llvm.ptr, i64) -> !llvm.ptr, GIVEN"""


def block_lists(bits: int, is_on_gpu: bool) -> str:
    """The text for lists of numbers of so many bits: ascending, each once, -1 behind; and for each column of blocks the
    rows whose lists name it.

    >>> "nvvm.barrier0" in block_lists(64, True), "extsi" in block_lists(32, False)
    (True, True)
    """
    wide = {32: ("arith.extsi %own : i32 to i64", "arith.trunci %c : i64 to i32")}
    widened, narrowed = wide.get(bits, ("arith.addi %own, %c0 : i64", "arith.addi %c, %c0 : i64"))
    text = _TEXT.replace("THREAD", _THREAD).replace("\nOWNER", _OWNER)
    text = text.replace("WIDENED", widened).replace("NARROWED", narrowed).replace("GIVEN", f"i{bits}")
    return with_barriers(text, is_on_gpu)
