# SPDX-License-Identifier: Apache-2.0
"""The kernel that hands items out to workers, written at the stage of buffers: see `lacis.patterns.hand_out`."""

from .barriers import with_barriers

# A unit of the range, or block of the grid, makes one list: it hands out the tiles of all whole groups before, then its
# own, in one row of positions; rows of costs take turns at the numbers of tiles. It goes in rounds. With the workers by
# load, the least first, the next tiles go to them in this order, until one that has got a tile comes before one that
# has not: its place among the others says so. What the threads of a block leave for each other lies in workspaces,
# which are therefore not `noalias`.
_TEXT = """
#n = #lacis.size<arg 0>
#workers = #lacis.size<arg 1>
#groups = #lacis.size<arg 2>
#rows = #lacis.size<arg 3>
#most = #lacis.size<arg 4>
#kinds = #lacis.size<arg 5>
#lists = #lacis.size<arg 2 * arg 3>
module attributes {lacis.stage = "buffers", lacis.artifact = {
    args = [{kind = "dim", operand = 0 : i64, dim = 1 : i64}, {kind = "dim", operand = 1 : i64, dim = 0 : i64},
            {kind = "dim", operand = -1 : i64, dim = 0 : i64}, {kind = "dim", operand = 0 : i64, dim = 0 : i64},
            {kind = "dim", operand = -1 : i64, dim = 3 : i64}, {kind = "dim", operand = 2 : i64, dim = 0 : i64},
            {kind = "operand", operand = 0 : i64}, {kind = "operand", operand = 1 : i64},
            {kind = "operand", operand = 2 : i64}, {kind = "workspace", index = 0 : i64},
            {kind = "workspace", index = 1 : i64}, {kind = "workspace", index = 2 : i64},
            {kind = "workspace", index = 3 : i64}, {kind = "output"}],
    index_bits = 32 : i64, output = {dtype = "i32", shape = [#groups, #rows, #n, #most], zero = false},
    workspace = [{bytes = #lacis.size<arg 1 * 8 * arg 2 * arg 3>}, {bytes = #lacis.size<arg 1 * 8 * arg 2 * arg 3>},
                 {bytes = #lacis.size<arg 1 * 4 * arg 2 * arg 3>}, {bytes = #lacis.size<arg 1 * 4 * arg 2 * arg 3>}],
    sizes = [{name = "n"}, {name = "workers"}, {name = "groups"}, {name = "rows"}, {name = "most"},
             {name = "kinds"}],
    tensors = [{dims = [#rows, #n], dtype = "f64", operand = 0 : i64},
               {dims = [#workers], dtype = "f64", operand = 1 : i64},
               {dims = [#kinds], dtype = "i32", operand = 2 : i64},
               {dims = [#groups, #rows, #n, #most], dtype = "i32", operand = -1 : i64}]}} {
  func.func @hand_out(%n: i32, %workers: i32, %groups: i32, %rows: i32, %most: i32, %kinds: i32,
                      %cost: !llvm.ptr {llvm.noalias, llvm.readonly}, %start: !llvm.ptr {llvm.noalias, llvm.readonly},
                      %counts: !llvm.ptr {llvm.noalias, llvm.readonly}, %loads: !llvm.ptr, %sorted: !llvm.ptr,
                      %order: !llvm.ptr, %reach: !llvm.ptr, %to: !llvm.ptr) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c256 = arith.constant 256 : i32
    %none = arith.constant -1 : i32
    %zero = arith.constant 0.0 : f64
    %lists = arith.muli %groups, %rows : i32
    %each = arith.muli %n, %most : i32
    scf.for %list = %c0 to %lists step %c1 : i32 {
      %group = arith.divui %list, %rows : i32
      %row = arith.remui %list, %rows : i32
      %from = arith.muli %row, %n : i32
      %costs = llvm.getelementptr %cost[%from] : (!llvm.ptr, i32) -> !llvm.ptr, f64
      %kind = arith.remui %row, %kinds : i32
      %own = llvm.getelementptr %counts[%kind] : (!llvm.ptr, i32) -> !llvm.ptr, i32
      %count = llvm.load %own : !llvm.ptr -> i32
      %space = arith.muli %list, %workers : i32
      %load = llvm.getelementptr %loads[%space] : (!llvm.ptr, i32) -> !llvm.ptr, f64
      %least = llvm.getelementptr %sorted[%space] : (!llvm.ptr, i32) -> !llvm.ptr, f64
      %who = llvm.getelementptr %order[%space] : (!llvm.ptr, i32) -> !llvm.ptr, i32
      %end = llvm.getelementptr %reach[%space] : (!llvm.ptr, i32) -> !llvm.ptr, i32
      %list64 = arith.extui %list : i32 to i64
      %each64 = arith.extui %each : i32 to i64
      %first = arith.muli %list64, %each64 : i64
      %given = llvm.getelementptr %to[%first] : (!llvm.ptr, i64) -> !llvm.ptr, i32
      scf.for %thread = %c0 to %c256 step %c1 : i32 {
        scf.for %at = %thread to %each step %c256 : i32 {
          %p = llvm.getelementptr %given[%at] : (!llvm.ptr, i32) -> !llvm.ptr, i32
          llvm.store %none, %p : i32, !llvm.ptr
        }
      } {lacis.bind = "thread.x", lacis.name = "t", lacis.size = #lacis.size<256>}
      scf.for %w = %c0 to %workers step %c1 : i32 {
        %p = llvm.getelementptr %start[%w] : (!llvm.ptr, i32) -> !llvm.ptr, f64
        %v = llvm.load %p : !llvm.ptr -> f64
        %q = llvm.getelementptr %load[%w] : (!llvm.ptr, i32) -> !llvm.ptr, f64
        llvm.store %v, %q : f64, !llvm.ptr
      } {lacis.bind = "threads", lacis.name = "w0", lacis.size = #workers}
      // Items of negative cost come last.
      %items, %beyond = scf.while (%lo = %c0, %hi = %n) : (i32, i32) -> (i32, i32) {
        %more = arith.cmpi slt, %lo, %hi : i32
        scf.condition(%more) %lo, %hi : i32, i32
      } do {
      ^bb0(%lo: i32, %hi: i32):
        %sum = arith.addi %lo, %hi : i32
        %middle = arith.shrui %sum, %c1 : i32
        %p = llvm.getelementptr %costs[%middle] : (!llvm.ptr, i32) -> !llvm.ptr, f64
        %c = llvm.load %p : !llvm.ptr -> f64
        %is = arith.cmpf oge, %c, %zero : f64
        %behind = arith.addi %middle, %c1 : i32
        %left = arith.select %is, %behind, %lo : i32
        %right = arith.select %is, %hi, %middle : i32
        scf.yield %left, %right : i32, i32
      }
      %whole = arith.muli %items, %most : i32
      %before = arith.muli %group, %whole : i32
      %mine = arith.muli %items, %count : i32
      %all = arith.addi %before, %mine : i32
      BARRIER
      %last = scf.while (%at = %c0) : (i32) -> i32 {
        %more = arith.cmpi slt, %at, %all : i32
        scf.condition(%more) %at : i32
      } do {
      ^bb0(%at: i32):
        // Which worker stands where: as many come before it as have less to do, or as much and a lower number.
        scf.for %w = %c0 to %workers step %c1 : i32 {
          %p = llvm.getelementptr %load[%w] : (!llvm.ptr, i32) -> !llvm.ptr, f64
          %mine0 = llvm.load %p : !llvm.ptr -> f64
          %place = scf.for %v = %c0 to %workers step %c1 iter_args(%sum = %c0) -> (i32) : i32 {
            %q = llvm.getelementptr %load[%v] : (!llvm.ptr, i32) -> !llvm.ptr, f64
            %other = llvm.load %q : !llvm.ptr -> f64
            %less = arith.cmpf olt, %other, %mine0 : f64
            %equal = arith.cmpf oeq, %other, %mine0 : f64
            %lower = arith.cmpi slt, %v, %w : i32
            %tie = arith.andi %equal, %lower : i1
            %is = arith.ori %less, %tie : i1
            %one = arith.extui %is : i1 to i32
            %next = arith.addi %sum, %one : i32
            scf.yield %next : i32
          }
          %a = llvm.getelementptr %least[%place] : (!llvm.ptr, i32) -> !llvm.ptr, f64
          %b = llvm.getelementptr %who[%place] : (!llvm.ptr, i32) -> !llvm.ptr, i32
          llvm.store %mine0, %a : f64, !llvm.ptr
          llvm.store %w, %b : i32, !llvm.ptr
        } {lacis.bind = "threads", lacis.name = "w1", lacis.size = #workers}
        BARRIER
        // How many workers in this order get a tile before the one at this place would get its second.
        scf.for %place = %c0 to %workers step %c1 : i32 {
          %position = arith.addi %at, %place : i32
          %is = arith.cmpi slt, %position, %all : i32
          %limit = scf.if %is -> (i32) {
            BUSIER
            %low, %high = scf.while (%lo = %c0, %hi = %workers) : (i32, i32) -> (i32, i32) {
              %more = arith.cmpi slt, %lo, %hi : i32
              scf.condition(%more) %lo, %hi : i32, i32
            } do {
            ^bb0(%lo: i32, %hi: i32):
              %sum = arith.addi %lo, %hi : i32
              %middle = arith.shrui %sum, %c1 : i32
              %p = llvm.getelementptr %least[%middle] : (!llvm.ptr, i32) -> !llvm.ptr, f64
              %q = llvm.getelementptr %who[%middle] : (!llvm.ptr, i32) -> !llvm.ptr, i32
              %ov = llvm.load %p : !llvm.ptr -> f64
              %ow = llvm.load %q : !llvm.ptr -> i32
              %less = arith.cmpf olt, %ov, %busier : f64
              %equal = arith.cmpf oeq, %ov, %busier : f64
              %lower = arith.cmpi slt, %ow, %worker : i32
              %tie = arith.andi %equal, %lower : i1
              %comes = arith.ori %less, %tie : i1
              %behind = arith.addi %middle, %c1 : i32
              %left = arith.select %comes, %behind, %lo : i32
              %right = arith.select %comes, %hi, %middle : i32
              scf.yield %left, %right : i32, i32
            }
            %next = arith.addi %place, %c1 : i32
            %up = arith.maxsi %low, %next : i32
            scf.yield %up : i32
          } else {
            scf.yield %place : i32
          }
          %p = llvm.getelementptr %end[%place] : (!llvm.ptr, i32) -> !llvm.ptr, i32
          llvm.store %limit, %p : i32, !llvm.ptr
        } {lacis.bind = "threads", lacis.name = "w2", lacis.size = #workers}
        BARRIER
        %tiles = scf.for %w = %c0 to %workers step %c1 iter_args(%few = %workers) -> (i32) : i32 {
          %p = llvm.getelementptr %end[%w] : (!llvm.ptr, i32) -> !llvm.ptr, i32
          %v = llvm.load %p : !llvm.ptr -> i32
          %fewer = arith.minsi %few, %v : i32
          scf.yield %fewer : i32
        }
        scf.for %place = %c0 to %tiles step %c1 : i32 {
          %position = arith.addi %at, %place : i32
          BUSIER
          %p = llvm.getelementptr %load[%worker] : (!llvm.ptr, i32) -> !llvm.ptr, f64
          llvm.store %busier, %p : f64, !llvm.ptr
          scf.if %is_own {
            %tile = arith.remui %inside, %number : i32
            %line = arith.muli %item, %most : i32
            %o = arith.addi %line, %tile : i32
            %op = llvm.getelementptr %given[%o] : (!llvm.ptr, i32) -> !llvm.ptr, i32
            llvm.store %worker, %op : i32, !llvm.ptr
          }
        } {lacis.bind = "threads", lacis.name = "w3", lacis.size = #workers}
        BARRIER
        %then = arith.addi %at, %tiles : i32
        scf.yield %then : i32
      }
    } {lacis.bind = "block.x", lacis.name = "list", lacis.size = #lists}
    return
  }
}
"""

# The worker at `%place` of the order, and its load with the tile at `%position`, of which number in which item.
_BUSIER = """%is_own = arith.cmpi sge, %position, %before : i32
          %number = arith.select %is_own, %count, %most : i32
          %rest = arith.subi %position, %before : i32
          %turn = arith.remui %position, %whole : i32
          %inside = arith.select %is_own, %rest, %turn : i32
          %item = arith.divui %inside, %number : i32
          %cp = llvm.getelementptr %costs[%item] : (!llvm.ptr, i32) -> !llvm.ptr, f64
          %c = llvm.load %cp : !llvm.ptr -> f64
          %wp = llvm.getelementptr %who[%place] : (!llvm.ptr, i32) -> !llvm.ptr, i32
          %worker = llvm.load %wp : !llvm.ptr -> i32
          %vp = llvm.getelementptr %least[%place] : (!llvm.ptr, i32) -> !llvm.ptr, f64
          %v = llvm.load %vp : !llvm.ptr -> f64
          %busier = arith.addf %v, %c : f64"""


def hand_out(is_on_gpu: bool) -> str:
    """The text; the threads of a block, which a GPU has, wait for each other.

    >>> "nvvm.barrier0" in hand_out(True), "nvvm.barrier0" in hand_out(False)
    (True, False)
    """
    return with_barriers(_TEXT.replace("BUSIER", _BUSIER), is_on_gpu)
