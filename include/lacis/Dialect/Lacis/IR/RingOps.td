// SPDX-License-Identifier: Apache-2.0
// Where roles of the tiles stage meet: rings, whose places one role fills and another reads.

#ifndef LACIS_RING_OPS_TD
#define LACIS_RING_OPS_TD

include "lacis/Dialect/Lacis/IR/LacisAttrs.td"
include "lacis/Dialect/Lacis/IR/LacisTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Lacis_RingOp : Lacis_Op<"ring", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Makes a ring; its value is the first place.";
  let results = (outs Lacis_RingType:$ring);
  let assemblyFormat = "attr-dict `:` qualified(type($ring))";
}

def Lacis_RolesOp : Lacis_Op<"roles", [RecursiveMemoryEffects]> {
  let summary = "One producer, which loads, and `consumers` that multiply, side by side on one processor.";
  let description = [{
    The second region runs once for each consumer, whose number is its argument. Roles meet at rings only.
    With `groups` all this is there so many times: each group has a producer, consumers and rings of its own, and each
    region the number of its group as one argument more.
  }];
  let arguments = (ins I64Attr:$consumers, DefaultValuedAttr<I64Attr, "1">:$groups);
  let regions = (region SizedRegion<1>:$producer, SizedRegion<1>:$consumer);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Lacis_AcquireOp : Lacis_Op<"acquire", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits for a place of the ring: until it may be filled (producer), or is filled (consumer).";
  let arguments = (ins Lacis_RingType:$ring);
  let results = (outs Variadic<Lacis_TileType>:$tiles);
  let assemblyFormat = "$ring attr-dict `:` qualified(type($ring)) `->` type($tiles)";
  let hasVerifier = 1;
}

def Lacis_ReleaseOp : Lacis_Op<"release", [AllTypesMatch<["ring", "next"]>, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Hands a place of the ring over, and moves on to the next.";
  let description = [{
    The producer's place is filled when the loads into it have arrived; the consumer's is free when the products
    that read it are complete. Neither waits. Where `lacis.complete` has waited for these products in the rounds that made
    them, the place is free at once.
  }];
  let arguments = (ins Lacis_RingType:$ring);
  let results = (outs Lacis_RingType:$next);
  let assemblyFormat = "$ring attr-dict `:` qualified(type($ring))";
}

def Lacis_AdvanceOp : Lacis_Op<"advance", [Pure, AllTypesMatch<["ring", "next"]>]> {
  let summary = "The place behind this one, which the consumer keeps until it releases it.";
  let description = [{
    So a round can begin to read the next place before it is done with this one:
    ```mlir
    !ring = !lacis.ring<3, <64x64xbf16>>
    func.func @two(%place: !ring) -> !ring {
      %next = lacis.advance %place : !ring
      %t = lacis.acquire %next : !ring -> !lacis.tile<64x64xbf16>
      %before = lacis.revisit %place : !ring -> !lacis.tile<64x64xbf16>
      %same = lacis.release %place : !ring
      return %next : !ring
    }
    ```
  }];
  let arguments = (ins Lacis_RingType:$ring);
  let results = (outs Lacis_RingType:$next);
  let assemblyFormat = "$ring attr-dict `:` qualified(type($ring))";
}

def Lacis_RevisitOp : Lacis_Op<"revisit", [MemoryEffects<[MemRead]>]> {
  let summary = "The tiles of a place that has been acquired before and is not released yet. Waits for nothing.";
  let arguments = (ins Lacis_RingType:$ring);
  let results = (outs Variadic<Lacis_TileType>:$tiles);
  let assemblyFormat = "$ring attr-dict `:` qualified(type($ring)) `->` type($tiles)";
  let hasVerifier = 1;
}

#endif // LACIS_RING_OPS_TD
