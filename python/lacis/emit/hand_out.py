# SPDX-License-Identifier: Apache-2.0
"""The kernel that hands items out to workers, written at the stage of buffers: see `lacis.patterns.hand_out`."""

# A tree of `2 * workers` nodes has the least loaded worker at its root, node 1; node n has the children 2n and 2n + 1,
# and worker w is node `workers + w`. Each unit of the range, or block of the grid, hands out the items of one row of
# costs: it keeps a tree of all whole groups before (the second), and one in which the list of a group ends (the first).
HAND_OUT = """
#n = #lacis.size<arg 0>
#workers = #lacis.size<arg 1>
#groups = #lacis.size<arg 2>
#rows = #lacis.size<arg 3>
#most = #lacis.size<arg 4>
module attributes {lacis.stage = "buffers", lacis.artifact = {
    args = [{kind = "dim", operand = 0 : i64, dim = 1 : i64}, {kind = "dim", operand = 1 : i64, dim = 0 : i64},
            {kind = "dim", operand = -1 : i64, dim = 0 : i64}, {kind = "dim", operand = 0 : i64, dim = 0 : i64},
            {kind = "dim", operand = -1 : i64, dim = 3 : i64}, {kind = "operand", operand = 0 : i64},
            {kind = "operand", operand = 1 : i64}, {kind = "operand", operand = 2 : i64},
            {kind = "workspace", index = 0 : i64}, {kind = "workspace", index = 1 : i64}, {kind = "output"}],
    index_bits = 32 : i64, output = {dtype = "i32", shape = [#groups, #rows, #n, #most], zero = false},
    workspace = [{bytes = #lacis.size<arg 1 * 32 * arg 3>},
                 {bytes = #lacis.size<arg 1 * 16 * arg 3>}],
    sizes = [{name = "n"}, {name = "workers"}, {name = "groups"}, {name = "rows"}, {name = "most"}],
    tensors = [{dims = [#lacis.size<arg 3>, #lacis.size<arg 0>], dtype = "f64", operand = 0 : i64},
               {dims = [#lacis.size<arg 1>], dtype = "f64", operand = 1 : i64},
               {dims = [#lacis.size<arg 3>], dtype = "i32", operand = 2 : i64},
               {dims = [#lacis.size<arg 2>, #lacis.size<arg 3>, #lacis.size<arg 0>,
                        #lacis.size<arg 4>], dtype = "i32", operand = -1 : i64}]}} {
  func.func @hand_out(%n: i32, %workers: i32, %groups: i32, %rows: i32, %most: i32,
                      %cost: !llvm.ptr {llvm.noalias, llvm.readonly},
                      %start: !llvm.ptr {llvm.noalias, llvm.readonly},
                      %counts: !llvm.ptr {llvm.noalias, llvm.readonly}, %load: !llvm.ptr {llvm.noalias},
                      %name: !llvm.ptr {llvm.noalias}, %to: !llvm.ptr {llvm.noalias}) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %none = arith.constant -1 : i32
    %zero = arith.constant 0.0 : f64
    %nodes = arith.muli %workers, %c2 : i32
    scf.for %number = %c0 to %rows step %c1 : i32 {
      %own = llvm.getelementptr %counts[%number] : (!llvm.ptr, i32) -> !llvm.ptr, i32
      %count = llvm.load %own : !llvm.ptr -> i32
      %trees = arith.muli %number, %c2 : i32
      %list = arith.muli %trees, %nodes : i32
      %whole = arith.addi %list, %nodes : i32
      %leaves = arith.addi %whole, %workers : i32
      %row = arith.muli %number, %n : i32
      %costs = llvm.getelementptr %cost[%row] : (!llvm.ptr, i32) -> !llvm.ptr, f64
      scf.for %w = %c0 to %workers step %c1 : i32 {
        %from = llvm.getelementptr %start[%w] : (!llvm.ptr, i32) -> !llvm.ptr, f64
        %first = llvm.load %from : !llvm.ptr -> f64
        %leaf = arith.addi %leaves, %w : i32
        %a = llvm.getelementptr %load[%leaf] : (!llvm.ptr, i32) -> !llvm.ptr, f64
        %b = llvm.getelementptr %name[%leaf] : (!llvm.ptr, i32) -> !llvm.ptr, i32
        llvm.store %first, %a : f64, !llvm.ptr
        llvm.store %w, %b : i32, !llvm.ptr
      }
      scf.for %up = %c1 to %workers step %c1 : i32 {
        %node = arith.subi %workers, %up : i32
        %twice = arith.muli %node, %c2 : i32
        %l = arith.addi %whole, %twice : i32
        %r = arith.addi %l, %c1 : i32
        %lp = llvm.getelementptr %load[%l] : (!llvm.ptr, i32) -> !llvm.ptr, f64
        %rp = llvm.getelementptr %load[%r] : (!llvm.ptr, i32) -> !llvm.ptr, f64
        %lv = llvm.load %lp : !llvm.ptr -> f64
        %rv = llvm.load %rp : !llvm.ptr -> f64
        %ln = llvm.getelementptr %name[%l] : (!llvm.ptr, i32) -> !llvm.ptr, i32
        %rn = llvm.getelementptr %name[%r] : (!llvm.ptr, i32) -> !llvm.ptr, i32
        %lw = llvm.load %ln : !llvm.ptr -> i32
        %rw = llvm.load %rn : !llvm.ptr -> i32
        %less = arith.cmpf olt, %rv, %lv : f64
        %equal = arith.cmpf oeq, %rv, %lv : f64
        %before = arith.cmpi slt, %rw, %lw : i32
        %tie = arith.andi %equal, %before : i1
        %right = arith.ori %less, %tie : i1
        %v = arith.select %right, %rv, %lv : f64
        %w = arith.select %right, %rw, %lw : i32
        %at = arith.addi %whole, %node : i32
        %a = llvm.getelementptr %load[%at] : (!llvm.ptr, i32) -> !llvm.ptr, f64
        %b = llvm.getelementptr %name[%at] : (!llvm.ptr, i32) -> !llvm.ptr, i32
        llvm.store %v, %a : f64, !llvm.ptr
        llvm.store %w, %b : i32, !llvm.ptr
      }
      scf.for %g = %c0 to %groups step %c1 : i32 {
        scf.for %node = %c1 to %nodes step %c1 : i32 {
          %from = arith.addi %whole, %node : i32
          %into = arith.addi %list, %node : i32
          %fv = llvm.getelementptr %load[%from] : (!llvm.ptr, i32) -> !llvm.ptr, f64
          %fw = llvm.getelementptr %name[%from] : (!llvm.ptr, i32) -> !llvm.ptr, i32
          %iv = llvm.getelementptr %load[%into] : (!llvm.ptr, i32) -> !llvm.ptr, f64
          %iw = llvm.getelementptr %name[%into] : (!llvm.ptr, i32) -> !llvm.ptr, i32
          %v = llvm.load %fv : !llvm.ptr -> f64
          %w = llvm.load %fw : !llvm.ptr -> i32
          llvm.store %v, %iv : f64, !llvm.ptr
          llvm.store %w, %iw : i32, !llvm.ptr
        }
        %next = arith.addi %g, %c1 : i32
        %more = arith.cmpi slt, %next, %groups : i32
        %rest = arith.select %more, %most, %c0 : i32
        %first = arith.muli %g, %rows : i32
        %unit = arith.addi %first, %number : i32
        scf.for %k = %c0 to %c2 step %c1 : i32 {
          %lists = arith.cmpi eq, %k, %c0 : i32
          %tiles = arith.select %lists, %count, %rest : i32
          %tree = arith.select %lists, %list, %whole : i32
          %root = arith.addi %tree, %c1 : i32
          %rp = llvm.getelementptr %name[%root] : (!llvm.ptr, i32) -> !llvm.ptr, i32
          %idle = llvm.load %rp : !llvm.ptr -> i32
          %last = scf.for %item = %c0 to %n step %c1 iter_args(%least = %idle) -> (i32) : i32 {
            %cp = llvm.getelementptr %costs[%item] : (!llvm.ptr, i32) -> !llvm.ptr, f64
            %c = llvm.load %cp : !llvm.ptr -> f64
            %is = arith.cmpf oge, %c, %zero : f64
            %unit64 = arith.extsi %unit : i32 to i64
            %n64 = arith.extsi %n : i32 to i64
            %most64 = arith.extsi %most : i32 to i64
            %item64 = arith.extsi %item : i32 to i64
            %o0 = arith.muli %unit64, %n64 : i64
            %o1 = arith.addi %o0, %item64 : i64
            %o2 = arith.muli %o1, %most64 : i64
            %end = scf.for %t = %c0 to %most step %c1 iter_args(%worker = %least) -> (i32) : i32 {
              %within = arith.cmpi slt, %t, %tiles : i32
              %given = arith.andi %is, %within : i1
              %t64 = arith.extsi %t : i32 to i64
              %o = arith.addi %o2, %t64 : i64
              scf.if %lists {
                %who = arith.select %given, %worker, %none : i32
                %op = llvm.getelementptr %to[%o] : (!llvm.ptr, i64) -> !llvm.ptr, i32
                llvm.store %who, %op : i32, !llvm.ptr
              }
              %then = scf.if %given -> (i32) {
                %leaf = arith.addi %workers, %worker : i32
                %at = arith.addi %tree, %leaf : i32
                %lp = llvm.getelementptr %load[%at] : (!llvm.ptr, i32) -> !llvm.ptr, f64
                %busy = llvm.load %lp : !llvm.ptr -> f64
                %busier = arith.addf %busy, %c : f64
                llvm.store %busier, %lp : f64, !llvm.ptr
                %top:3 = scf.while (%node = %leaf, %v = %busier, %w = %worker) : (i32, f64, i32) -> (i32, f64, i32) {
                  %below = arith.cmpi sgt, %node, %c1 : i32
                  scf.condition(%below) %node, %v, %w : i32, f64, i32
                } do {
                ^bb0(%node: i32, %v: f64, %w: i32):
                  %side = arith.xori %node, %c1 : i32
                  %beside = arith.addi %tree, %side : i32
                  %sv = llvm.getelementptr %load[%beside] : (!llvm.ptr, i32) -> !llvm.ptr, f64
                  %sw = llvm.getelementptr %name[%beside] : (!llvm.ptr, i32) -> !llvm.ptr, i32
                  %ov = llvm.load %sv : !llvm.ptr -> f64
                  %ow = llvm.load %sw : !llvm.ptr -> i32
                  %less = arith.cmpf olt, %ov, %v : f64
                  %equal = arith.cmpf oeq, %ov, %v : f64
                  %before = arith.cmpi slt, %ow, %w : i32
                  %tie = arith.andi %equal, %before : i1
                  %other = arith.ori %less, %tie : i1
                  %bv = arith.select %other, %ov, %v : f64
                  %bw = arith.select %other, %ow, %w : i32
                  %parent = arith.shrui %node, %c1 : i32
                  %into = arith.addi %tree, %parent : i32
                  %iv = llvm.getelementptr %load[%into] : (!llvm.ptr, i32) -> !llvm.ptr, f64
                  %iw = llvm.getelementptr %name[%into] : (!llvm.ptr, i32) -> !llvm.ptr, i32
                  llvm.store %bv, %iv : f64, !llvm.ptr
                  llvm.store %bw, %iw : i32, !llvm.ptr
                  scf.yield %parent, %bv, %bw : i32, f64, i32
                }
                scf.yield %top#2 : i32
              } else {
                scf.yield %worker : i32
              }
              scf.yield %then : i32
            }
            scf.yield %end : i32
          }
        }
      }
    } {lacis.bind = "parallel", lacis.name = "number", lacis.size = #rows}
    return
  }
}
"""
