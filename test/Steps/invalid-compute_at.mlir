// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps

// The output leaves tile by tile where both nests have the same tiles.
#panels = #lacis.format<(b, i) -> (b floordiv 4 : dense, i : dense, b mod 4 : dense)>
// expected-error @+2 {{compute_at: no nest after that of loop 'b' empties a copy of 'y'; relayout makes one of the output}}
// expected-note @+1 {{asked for}}
func.func @no_copy(%n: index, %m: index, %x: tensor<?x?xf32>, %y: tensor<?x?xf32> {lacis.name = "y", lacis.axes = ["b", "i"]})
    attributes {lacis.steps = [#lacis.compute_at<operand = "y", loop = "b">]} {
  lacis.loop "b" %b to %n {
    lacis.loop "i" %i to %m {
      %v = lacis.read %x[%b, %i] : tensor<?x?xf32> -> f32
      lacis.write %v to %y[%b, %i] : f32 to tensor<?x?xf32>
      lacis.yield
    }
    lacis.yield
  }
  return
}
// -----
#panels = #lacis.format<(b, i) -> (b floordiv 4 : dense, i : dense, b mod 4 : dense)>
// expected-error @+2 {{compute_at: the copy that nest 'y.b' empties is not filled in loop 'b' alone}}
// expected-note @+1 {{asked for}}
func.func @other_copy(%n: index, %m: index, %x: tensor<?x?xf32>, %y: tensor<?x?xf32> {lacis.name = "y", lacis.axes = ["b", "i"]})
    attributes {lacis.steps = [#lacis.compute_at<operand = "y", loop = "b">]} {
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  lacis.loop "b"<copy "y"> %b to %n {
    %v = lacis.read %x[%b, %b] : tensor<?x?xf32> -> f32
    lacis.write %v to %y[%b, %b] : f32 to tensor<?x?xf32>
    lacis.yield
  }
  return
}
// -----
#panels = #lacis.format<(b, i) -> (b floordiv 4 : dense, i : dense, b mod 4 : dense)>
// expected-error @+2 {{compute_at: what loop 'b_i' fills is no sum of its loops' coordinates}}
// expected-note @+1 {{asked for}}
func.func @fused(%n: index, %m: index, %x: tensor<?x?xf32>, %y: tensor<?x?xf32> {lacis.name = "y", lacis.axes = ["b", "i"]})
    attributes {lacis.steps = [#lacis.relayout<operand = "y", layout = #panels>, #lacis.fuse<outer = "b", inner = "i">, #lacis.compute_at<operand = "y", loop = "b_i">]} {
  lacis.loop "b" %b to %n {
    lacis.loop "i" %i to %m {
      %v = lacis.read %x[%b, %i] : tensor<?x?xf32> -> f32
      lacis.write %v to %y[%b, %i] : f32 to tensor<?x?xf32>
      lacis.yield
    }
    lacis.yield
  }
  return
}
// -----
#panels = #lacis.format<(b, i) -> (b floordiv 4 : dense, i : dense, b mod 4 : dense)>
// expected-error @+2 {{compute_at: loop 'b' and nest 'y.b0' do not count the same tiles; split both by the same factor}}
// expected-note @+1 {{asked for}}
func.func @other_tiles(%n: index, %m: index, %x: tensor<?x?xf32>, %y: tensor<?x?xf32> {lacis.name = "y", lacis.axes = ["b", "i"]})
    attributes {lacis.steps = [#lacis.relayout<operand = "y", layout = #panels>, #lacis.compute_at<operand = "y", loop = "b">]} {
  lacis.loop "b" %b to %n {
    lacis.loop "i" %i to %m {
      %v = lacis.read %x[%b, %i] : tensor<?x?xf32> -> f32
      lacis.write %v to %y[%b, %i] : f32 to tensor<?x?xf32>
      lacis.yield
    }
    lacis.yield
  }
  return
}
// -----
#panels = #lacis.format<(b, i) -> (b floordiv 4 : dense, i : dense, b mod 4 : dense)>
// expected-error @+2 {{compute_at: loop 'i' fills the whole of axis 1, which no loop around 'b0' cuts into tiles; split it}}
// expected-note @+1 {{asked for}}
func.func @uncut(%n: index, %m: index, %x: tensor<?x?xf32>, %y: tensor<?x?xf32> {lacis.name = "y", lacis.axes = ["b", "i"]})
    attributes {lacis.steps = [#lacis.relayout<operand = "y", layout = #panels>, #lacis.split<loop = "b", factor = 4>, #lacis.reorder<loops = ["b0", "i", "b1"]>, #lacis.compute_at<operand = "y", loop = "b0">]} {
  lacis.loop "b" %b to %n {
    lacis.loop "i" %i to %m {
      %v = lacis.read %x[%b, %i] : tensor<?x?xf32> -> f32
      lacis.write %v to %y[%b, %i] : f32 to tensor<?x?xf32>
      lacis.yield
    }
    lacis.yield
  }
  return
}
// -----
#panels = #lacis.format<(b, i) -> (b floordiv 4 : dense, i : dense, b mod 4 : dense)>
// expected-error @+2 {{compute_at: the loops in 'i0' reach 16 elements along axis 1, a tile has 8}}
// expected-note @+1 {{asked for}}
func.func @wide(%n: index, %m: index, %x: tensor<?x?xf32>, %y: tensor<?x?xf32> {lacis.name = "y", lacis.axes = ["b", "i"]})
    attributes {lacis.steps = [#lacis.relayout<operand = "y", layout = #panels>, #lacis.split<loop = "y.i", factor = 8>, #lacis.compute_at<operand = "y", loop = "i0">]} {
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %tiles = arith.ceildivui %m, %c8 : index
  %c4 = arith.constant 4 : index
  %rows = arith.ceildivui %n, %c4 : index
  lacis.loop "b0" %b0 to %rows {
    lacis.loop "i0" %i0 to %tiles {
      lacis.loop "b1" %b1 to %c4 {
        lacis.loop "i1" %i1 to %c16 {
          %b4 = arith.muli %b0, %c4 : index
          %b = arith.addi %b4, %b1 : index
          %i8 = arith.muli %i0, %c8 : index
          %i = arith.addi %i8, %i1 : index
          %v = lacis.read %x[%b, %i] : tensor<?x?xf32> -> f32
          lacis.write %v to %y[%b, %i] : f32 to tensor<?x?xf32>
          lacis.yield
        }
        lacis.yield
      }
      lacis.yield
    }
    lacis.yield
  }
  return
}
