// SPDX-License-Identifier: Apache-2.0
// The level kinds: extents and coordinates, in the order of the table in docs/formats.md.

#ifndef LACIS_LEVELS_TD
#define LACIS_LEVELS_TD

include "lacis/Dialect/Lacis/IR/LevelKindBase.td"

//===- Extents ------------------------------------------------------------===//

def Lacis_FullExtent : Lacis_Extent<"Full", "full",
    ["verifyCoordinate", "hasCode", "coversDomain", "emitBounds", "emitSlots", "emitLocate"]> {
  let summary = "A position for every coordinate; nothing is stored. `dense` is `full*implicit`.";
  let description = [{
    ```mlir
    #row_major = #lacis.format<(i, j) -> (i : dense, j : dense)>
    ```
  }];
}

def Lacis_FixedExtent : Lacis_Extent<"Fixed", "fixed",
    ["verifyCoordinate", "hasCode", "getTrip", "hasCapacity", "isPadded", "emitBounds", "emitSlots", "hasOwner",
     "emitOwner"]> {
  let summary = "The same number of positions under each parent; `?` is known when the tensor is packed.";
  let description = [{
    `packed` is `fixed*crd`; positions without an entry hold the coordinate -1, at the end of their fibre.
    ```mlir
    #ell = #lacis.format<(i, j) -> (i : dense, j : packed<?>)>
    #ell32 = #lacis.format<(i, j) -> (i : dense, j : packed<32>)>
    ```
  }];
  let parameters = (ins "int64_t":$width);
  let genVerifyDecl = 1;
}

def Lacis_VarExtent : Lacis_Extent<"Var", "var",
    ["getBuffers", "hasCode", "emitBounds", "emitSlots", "hasOwner", "emitOwner"]> {
  let summary = "A segment of any length under each parent, found in `pos`.";
  let description = [{
    `compressed` is `var*crd`, `ragged` is `var*implicit`.
    ```mlir
    #csr = #lacis.format<(i, j) -> (i : dense, j : compressed<pos=i64>)>
    ```
  }];
  let parameters = (ins "::mlir::IntegerType":$pos);
  let genVerifyDecl = 1;
}

def Lacis_Var2Extent : Lacis_Extent<"Var2", "var2", ["verifyCoordinate", "getBuffers", "hasCode", "emitBounds"]> {
  let summary = "A segment of any length under each parent with gaps between segments: `lo` and `hi`.";
  let description = [{
    ```mlir
    #growing = #lacis.format<(i, j) -> (i : dense, j : var2*crd)>
    ```
  }];
  let parameters = (ins "::mlir::IntegerType":$pos);
  let genVerifyDecl = 1;
}

def Lacis_OneExtent : Lacis_Extent<"One", "one",
    ["verifyCoordinate", "hasCode", "getTrip", "followsParent", "emitBounds", "emitSlots"]> {
  let summary = "One position under each parent, the parent's own. `singleton` is `one*crd`.";
  let description = [{
    ```mlir
    #coo = #lacis.format<(i, j) -> (i : compressed<unique=false>, j : singleton)>
    ```
  }];
}

def Lacis_RangeExtent : Lacis_Extent<"Range", "range",
    ["verifyCoordinate", "hasCode", "coversDomain", "emitBounds", "emitSlots", "emitLocate"]> {
  let summary = "A contiguous range of coordinates that follows from the parent's coordinates (DIA).";
  let description = [{
    ```mlir
    #dia = #lacis.format<(i, j) let d = j - i -> (d : compressed, i : range)>
    ```
  }];
}

def Lacis_BatchExtent : Lacis_Extent<"Batch", "batch",
    ["verifyCoordinate", "hasCode", "coversDomain", "sharesPattern", "emitBounds", "emitSlots", "emitLocate"]> {
  let summary = "Values only: copies that share the pattern below, such as the heads of a layer.";
  let description = [{
    It comes first. `values` has an axis for it before the slots, and its positions are the numbers of the copies.
    ```mlir
    #heads = #lacis.format<(h, i, j) -> (h : batch, i : dense, j : compressed)>
    ```
  }];
}

//===- Coordinates --------------------------------------------------------===//

def Lacis_ImplicitCoordinate : Lacis_Coordinate<"Implicit", "implicit",
    ["hasCode", "isImplicit", "getListedType", "emitCoordinate", "canSeek", "emitSeek"]> {
  let summary = "The coordinate is the place within the fibre.";
  let description = [{
    `crd` is the type in which a companion lists the coordinates, `dense<crd=i16>`.
    ```mlir
    #prefixes = #lacis.format<(i, j) -> (i : dense, j : ragged)>
    ```
  }];
  let parameters = (ins "::mlir::IntegerType":$crd);
  let genVerifyDecl = 1;
}

def Lacis_StoredCoordinate : Lacis_Coordinate<"Stored", "crd",
    ["getBuffers", "hasCode", "isStored", "getListedType", "isOrdered", "isUnique", "isPadded", "emitCoordinate",
     "canSeek", "emitSeek"]> {
  let summary = "One number in `crd` for every position; -1 where a padded level has no entry.";
  let description = [{
    ```mlir
    #repeated = #lacis.format<(i, j) -> ((i, j) : compressed<unique=false, crd=i64>)>
    ```
  }];
  let parameters = (ins "bool":$unique, "bool":$ordered, "bool":$pad, "::mlir::IntegerType":$crd);
  let genVerifyDecl = 1;
}

def Lacis_BitmapCoordinate : Lacis_Coordinate<"Bitmap", "bitmap",
    ["verifyUnder", "getBuffers", "hasCode", "isPadded", "isStateless", "emitOpen", "emitNext", "canFind", "emitFind",
     "emitPresence"]> {
  let summary = "One bit for each coordinate of the fibre, in `bits`.";
  let description = [{
    A fibre has as many 32-bit words as its coordinates need, 32 at the most. `pad`, that positions behind the entries
    are padding, follows from the extent.
    ```mlir
    #bits = #lacis.format<(i, j) -> (i floordiv 16 : dense, j floordiv 16 : compressed, (i mod 16, j mod 16) : bitmap)>
    ```
  }];
  let parameters = (ins "bool":$pad);
}

def Lacis_DeltaCoordinate : Lacis_Coordinate<"Delta", "delta",
    ["verifyUnder", "getBuffers", "hasCode", "isPadded", "isStateless", "emitOpen", "emitNext"]> {
  let summary = "The distance to the coordinate before, in 8 or 16 bits.";
  let description = [{
    An entry lies 1 + `delta` behind the one before it. All bits set: no entry, and the next ones lie as far behind as
    this many coordinates.
    ```mlir
    #delta = #lacis.format<(i, j) -> (i : dense, j : var*delta<8>)>
    ```
  }];
  let parameters = (ins "int64_t":$bits);
  let genVerifyDecl = 1;
}

def Lacis_CodeCoordinate : Lacis_Coordinate<"Code", "code",
    ["verifyUnder", "getBuffers", "hasCode", "isPadded", "emitCoordinate"]> {
  let summary = "Which n of m coordinates, as a few bits an entry. `structured<n>` is `fixed<n>*code`.";
  let description = [{
    Codes of 1, 2, 4 or 8 bits lie side by side in `code`, in the order of the positions, the first in the lowest bits.
    They ascend inside a group; one that does not says that no entry follows. Where the second is below the first, there
    is none. One of m has the code m for none.
    ```mlir
    #two_of_four = #lacis.format<(i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured<2>)>
    ```
  }];
}

def Lacis_FnCoordinate : Lacis_Coordinate<"Fn", "fn"> {
  let summary = "A function of the position and the parent's coordinates: masks, strided windows, bands.";
  let description = [{
    ```mlir
    #window = #lacis.format<(i, j) -> (i : dense, j : fixed*fn<3>)>
    ```
  }];
}

//===- Kinds that do not factor -------------------------------------------===//

def Lacis_LinkKind : Lacis_ExtentAndCoordinate<"Link", "link",
    ["getTrip", "isLink", "emitBounds", "emitSlots"], ["isImplicit", "emitCoordinate"]> {
  let summary = "One position under each parent, which names a slot of another order of the same values.";
  let description = [{
    The companion of CSR by columns:
    ```mlir
    #by_columns = #lacis.format<(i, j) -> (j : dense, i : compressed, link)>
    ```
  }];
  let parameters = (ins "::mlir::IntegerType":$pos);
  let genVerifyDecl = 1;
}

def Lacis_UserKind : Lacis_ExtentAndCoordinate<"User", "kind",
    ["getDefinition", "withFacts", "getTrip", "emitBounds", "emitSlots", "hasOwner", "emitOwner"],
    ["isImplicit", "isOrdered", "isUnique", "isStateless", "emitCoordinate", "emitOpen", "emitNext", "canSeek",
     "emitSeek", "canFind", "emitFind"]> {
  let summary = "A kind that the user defines, by an operation `lacis.kind`; written `@k` in a format.";
  let description = [{
    `facts` are what the operation says; `-lacis-resolve-kinds` looks them up. The text does not have them.
    ```mlir
    #mine = #lacis.format<(i, j) -> (i : dense, j : @stripes)>
    ```
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$symbol, "::mlir::DictionaryAttr":$facts);
}

#endif // LACIS_LEVELS_TD
