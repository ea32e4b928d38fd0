# SPDX-License-Identifier: Apache-2.0
"""The kernel that merges attention on parts of the keys, at the stage of buffers; see `lacis.attentions.merge`."""

from .barriers import with_barriers

# A unit of the range, or block of the grid, makes up to 32 vectors of one row: each of its warps carries the sums of
# its parts below their maximum, then one brings those of all warps together. Several are read at once, for what they
# are read from is far away. What warps leave for each other lies in a workspace, which is therefore not `noalias`.
_WARPS, _AT_ONCE, _LANES = 8, 8, 32
_TEXT = """
#batch = #lacis.size<arg 0>
#parts = #lacis.size<arg 1>
#rows = #lacis.size<arg 2>
#width = #lacis.size<arg 3>
module attributes {lacis.stage = "buffers", lacis.artifact = {
    args = [{kind = "dim", operand = 0 : i64, dim = 0 : i64}, {kind = "dim", operand = 0 : i64, dim = 1 : i64},
            {kind = "dim", operand = 0 : i64, dim = 2 : i64}, {kind = "dim", operand = 0 : i64, dim = 3 : i64},
            {kind = "operand", operand = 0 : i64}, {kind = "operand", operand = 1 : i64},
            {kind = "operand", operand = 2 : i64}, {kind = "workspace", index = 0 : i64}, {kind = "output"}],
    index_bits = 64 : i64, output = {dtype = "OUT", shape = [#batch, #rows, #width], zero = false},
    workspace = [{bytes = #lacis.size<arg 0 * arg 2 * ceildiv(arg 3, COLUMNS) * BYTES>}],
    sizes = [{name = "batch"}, {name = "parts"}, {name = "rows"}, {name = "width"}],
    tensors = [{dims = [#batch, #parts, #rows, #width], dtype = "IN", operand = 0 : i64},
               {dims = [#batch, #parts, #rows], dtype = "WIDE", operand = 1 : i64},
               {dims = [#batch, #rows], dtype = "WIDE", operand = 2 : i64},
               {dims = [#batch, #rows, #width], dtype = "OUT", operand = -1 : i64}]}} {
  func.func @merge_parts(%batch: i64, %parts: i64, %rows: i64, %width: i64,
                         %outputs: !llvm.ptr {llvm.noalias, llvm.readonly},
                         %logs: !llvm.ptr {llvm.noalias, llvm.readonly}, %total: !llvm.ptr {llvm.noalias},
                         %states: !llvm.ptr, %to: !llvm.ptr {llvm.noalias}) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %lanes = arith.constant LANES : i64
    %warps = arith.constant WARPS : i64
    %atonce = arith.constant AT_ONCE : i64
    %round = arith.constant ROUND : i64
    %vector = arith.constant VECTOR : i64
    %columns = arith.constant COLUMNS : i64
    %bytes = arith.constant BYTES : i64
    %threads = arith.constant THREADS : i64
    %least = arith.constant LEAST : WIDE
    %zero = arith.constant 0.0 : WIDE
    %one = arith.constant 1.0 : WIDE
    %zeros = arith.constant dense<0.0> : vector<VECTORxWIDE>
    %units = arith.muli %batch, %rows : i64
    %chunks = arith.ceildivui %width, %columns : i64
    %last = arith.subi %parts, %c1 : i64
    scf.for %unit = %c0 to %units step %c1 : i64 {
      scf.for %chunk = %c0 to %chunks step %c1 : i64 {
        %b = arith.divui %unit, %rows : i64
        %row = arith.remui %unit, %rows : i64
        %before = arith.muli %b, %parts : i64
        %behind = arith.muli %chunk, %lanes : i64
        %ahead = arith.muli %unit, %chunks : i64
        %number = arith.addi %ahead, %chunk : i64
        %space = arith.muli %number, %bytes : i64
        %vectors = llvm.getelementptr %states[%space] : (!llvm.ptr, i64) -> !llvm.ptr, i8
        %tops = llvm.getelementptr %vectors[%threads] : (!llvm.ptr, i64) -> !llvm.ptr, vector<VECTORxWIDE>
        %sums = llvm.getelementptr %tops[%threads] : (!llvm.ptr, i64) -> !llvm.ptr, WIDE
        scf.for %warp = %c0 to %warps step %c1 : i64 {
          scf.for %lane = %c0 to %lanes step %c1 : i64 {
            %place = arith.addi %behind, %lane : i64
            %column = arith.muli %place, %vector : i64
            %inside = arith.cmpi slt, %column, %width : i64
            %from = arith.select %inside, %column, %c0 : i64
            %own:3 = scf.for %first = %warp to %parts step %round
                iter_args(%m = %least, %l = %zero, %a = %zeros) -> (WIDE, WIDE, vector<VECTORxWIDE>) : i64 {PARTS
            }
            %line = arith.muli %warp, %lanes : i64
            %at = arith.addi %line, %lane : i64
            %p0 = llvm.getelementptr %tops[%at] : (!llvm.ptr, i64) -> !llvm.ptr, WIDE
            llvm.store %own#0, %p0 : WIDE, !llvm.ptr
            %p1 = llvm.getelementptr %sums[%at] : (!llvm.ptr, i64) -> !llvm.ptr, WIDE
            llvm.store %own#1, %p1 : WIDE, !llvm.ptr
            %p2 = llvm.getelementptr %vectors[%at] : (!llvm.ptr, i64) -> !llvm.ptr, vector<VECTORxWIDE>
            llvm.store %own#2, %p2 {alignment = OF_WIDE : i64} : vector<VECTORxWIDE>, !llvm.ptr
          } {lacis.bind = "lane", lacis.name = "e1", lacis.size = #lacis.size<LANES>}
        } {lacis.bind = "warp", lacis.name = "p0", lacis.size = #lacis.size<WARPS>}
        BARRIER
        scf.for %lane = %c0 to %lanes step %c1 : i64 {
          %place = arith.addi %behind, %lane : i64
          %column = arith.muli %place, %vector : i64
          %inside = arith.cmpi slt, %column, %width : i64
          scf.if %inside {
            %all:3 = scf.for %first = %c0 to %warps step %atonce
                iter_args(%m = %least, %l = %zero, %a = %zeros) -> (WIDE, WIDE, vector<VECTORxWIDE>) : i64 {STATES
            }
            %empty = arith.cmpf oeq, %all#1, %zero : WIDE
            %sound = arith.select %empty, %one, %all#1 : WIDE
            %share = arith.divf %one, %sound : WIDE
            %shares = vector.broadcast %share : WIDE to vector<VECTORxWIDE>
            %wide = arith.mulf %all#2, %shares : vector<VECTORxWIDE>
            %line = arith.muli %unit, %width : i64
            %at = arith.addi %line, %column : i64
            %op = llvm.getelementptr %to[%at] : (!llvm.ptr, i64) -> !llvm.ptr, OUTROUNDED
            llvm.store VALUE, %op {alignment = OF_OUT : i64} : vector<VECTORxOUT>, !llvm.ptr
            %is_first = arith.cmpi eq, %place, %c0 : i64
            scf.if %is_first {
              %log = math.log %sound : WIDE
              %sum = arith.addf %all#0, %log : WIDE
              %tp = llvm.getelementptr %total[%unit] : (!llvm.ptr, i64) -> !llvm.ptr, WIDE
              llvm.store %sum, %tp : WIDE, !llvm.ptr
            }
          }
        } {lacis.bind = "threads", lacis.name = "e2", lacis.size = #lacis.size<LANES>}
      } {lacis.bind = "block.y", lacis.name = "e0", lacis.size = #lacis.size<ceildiv(arg 3, COLUMNS)>}
    } {lacis.bind = "block.x", lacis.name = "i", lacis.size = #lacis.size<arg 0 * arg 2>}
    return
  }
}
"""

# The log of the sum `%x`, the sum `%s` and the output `%o` of the part at `%first`, and of those behind it.
_PART = """
              %fNUMBER = arith.constant AHEAD : i64
              %pNUMBER = arith.addi %first, %fNUMBER : i64
              %isNUMBER = arith.cmpi slt, %pNUMBER, %parts : i64
              %eNUMBER = arith.minsi %pNUMBER, %last : i64
              %bNUMBER = arith.addi %before, %eNUMBER : i64
              %gNUMBER = arith.muli %bNUMBER, %rows : i64
              %hNUMBER = arith.addi %gNUMBER, %row : i64
              %iNUMBER = llvm.getelementptr %logs[%hNUMBER] : (!llvm.ptr, i64) -> !llvm.ptr, WIDE
              %jNUMBER = llvm.load %iNUMBER : !llvm.ptr -> WIDE
              %xNUMBER = arith.select %isNUMBER, %jNUMBER, %least : WIDE
              %sNUMBER = arith.constant 1.0 : WIDE
              %kNUMBER = arith.muli %hNUMBER, %width : i64
              %qNUMBER = arith.addi %kNUMBER, %from : i64
              %tNUMBER = llvm.getelementptr %outputs[%qNUMBER] : (!llvm.ptr, i64) -> !llvm.ptr, IN
              %oNUMBER = llvm.load %tNUMBER {alignment = OF_IN : i64} : !llvm.ptr -> vector<VECTORxIN>"""
_NARROW_PART = (
    _PART.replace("%oNUMBER", "%yNUMBER")
    + """
              %oNUMBER = arith.extf %yNUMBER : vector<VECTORxIN> to vector<VECTORxWIDE>"""
)
_STATE = """
              %fNUMBER = arith.constant AHEAD : i64
              %pNUMBER = arith.addi %first, %fNUMBER : i64
              %eNUMBER = arith.muli %pNUMBER, %lanes : i64
              %hNUMBER = arith.addi %eNUMBER, %lane : i64
              %iNUMBER = llvm.getelementptr %tops[%hNUMBER] : (!llvm.ptr, i64) -> !llvm.ptr, WIDE
              %xNUMBER = llvm.load %iNUMBER : !llvm.ptr -> WIDE
              %jNUMBER = llvm.getelementptr %sums[%hNUMBER] : (!llvm.ptr, i64) -> !llvm.ptr, WIDE
              %sNUMBER = llvm.load %jNUMBER : !llvm.ptr -> WIDE
              %tNUMBER = llvm.getelementptr %vectors[%hNUMBER] : (!llvm.ptr, i64) -> !llvm.ptr, vector<VECTORxWIDE>
              %oNUMBER = llvm.load %tNUMBER {alignment = OF_WIDE : i64} : !llvm.ptr -> vector<VECTORxWIDE>"""
# What is carried is brought to the new maximum; where there is none yet, differences are counted from 0.
_CARRIED = """
              %is_empty = arith.cmpf oeq, %nLAST, %least : WIDE
              %base = arith.select %is_empty, %zero, %nLAST : WIDE
              %down = arith.subf %m, %base : WIDE
              %r = math.exp %down : WIDE
              %rs = vector.broadcast %r : WIDE to vector<VECTORxWIDE>
              %l0 = arith.mulf %l, %r : WIDE
              %a0 = arith.mulf %a, %rs : vector<VECTORxWIDE>"""
_LARGER = """
              %nNUMBER = arith.maximumf BEFORE, %xNUMBER : WIDE"""
# An output of weight 0 may hold anything.
_ADDED = """
              %dNUMBER = arith.subf %xNUMBER, %base : WIDE
              %wNUMBER = math.exp %dNUMBER : WIDE
              %uNUMBER = arith.mulf %wNUMBER, %sNUMBER : WIDE
              %lNEXT = arith.addf %lNUMBER, %uNUMBER : WIDE
              %noNUMBER = arith.cmpf oeq, %wNUMBER, %zero : WIDE
              %ofNUMBER = arith.select %noNUMBER, %zeros, %oNUMBER : vector<VECTORxWIDE>
              %vNUMBER = vector.broadcast %wNUMBER : WIDE to vector<VECTORxWIDE>
              %zNUMBER = arith.mulf %vNUMBER, %ofNUMBER : vector<VECTORxWIDE>
              %aNEXT = arith.addf %aNUMBER, %zNUMBER : vector<VECTORxWIDE>"""
_YIELDED = """
              scf.yield %nLAST, %lNEXT, %aNEXT : WIDE, WIDE, vector<VECTORxWIDE>"""
_ROUNDED = """
            %rounded = arith.truncf %wide : vector<VECTORxWIDE> to vector<VECTORxOUT>"""
_BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}
_LEAST = {"f32": "0xFF800000", "f64": "0xFFF0000000000000"}


def merge_parts(given: str, made: str, wide: str, vector: int, is_on_gpu: bool) -> str:
    """The text for outputs of type `given`, of which rows hold whole vectors, into `made`, with sums in `wide`.

    >>> text = merge_parts("f32", "bf16", "f32", 4, True)
    >>> "nvvm.barrier0" in text, "arith.truncf" in text
    (True, True)
    """
    warps, lanes, at_once = (_WARPS, _LANES, _AT_ONCE) if is_on_gpu else (1, 1, 1)
    state = _BYTES[wide] * warps * lanes * (vector + 2)
    aligned = lambda type: min(_BYTES[type] * vector, 16)  # tensors begin at multiples of 16 bytes
    named = {
        "PARTS": _round(_PART if given == wide else _NARROW_PART, warps, at_once),
        "STATES": _round(_STATE, 1, at_once),
        "ROUNDED": "" if made == wide else _ROUNDED,
        "VALUE": "%wide" if made == wide else "%rounded",
        "OF_WIDE": aligned(wide),
        "OF_IN": aligned(given),
        "OF_OUT": aligned(made),
        "AT_ONCE": at_once,
        "WARPS": warps,
        "LANES": lanes,
        "THREADS": warps * lanes,
        "ROUND": warps * at_once,
        "VECTOR": vector,
        "COLUMNS": lanes * vector,
        "BYTES": -(-state // 16) * 16,
        "LEAST": _LEAST[wide],
        "WIDE": wide,
        "IN": given,
        "OUT": made,
    }
    return with_barriers(_named(_TEXT, named), is_on_gpu)


def _round(item: str, stride: int, count: int) -> str:
    """What `count` items, `stride` apart, make of what is carried."""
    names = [{"NUMBER": n, "NEXT": n + 1, "AHEAD": n * stride, "LAST": count - 1} for n in range(count)]
    for n, each in enumerate(names):
        each["BEFORE"] = f"%n{n - 1}" if n else "%m"
    parts = [*((item, each) for each in names), *((_LARGER, each) for each in names), (_CARRIED, names[0])]
    parts += [*((_ADDED, each) for each in names), (_YIELDED, names[-1])]
    return "".join(_named(*part) for part in parts)


def _named(text: str, names: dict) -> str:
    for name, value in names.items():
        text = text.replace(name, str(value))
    return text
