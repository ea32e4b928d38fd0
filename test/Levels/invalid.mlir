// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// What the level kinds refuse.

// expected-error @below {{unknown level kind 'compresed'; nearest: 'compressed'}}
#a = #lacis.level<d0 : compresed>
// -----
// expected-error @below {{unknown coordinate 'crt'; nearest: 'crd'}}
#a = #lacis.level<d0 : var*crt>
// -----
// expected-error @below {{unknown level kind 'crd'}}
#a = #lacis.level<d0 : crd>
// -----
// expected-error @below {{level kind 'dense' takes no argument '4'}}
#a = #lacis.level<d0 : dense<4>>
// -----
// expected-error @below {{level kind 'compressed' takes no argument '?'}}
#a = #lacis.level<d0 : compressed<?>>
// -----
// expected-error @below {{level kind 'singleton' takes no argument 'pos=i64'}}
#a = #lacis.level<d0 : singleton<pos=i64>>
// -----
// expected-error @below {{level kind 'compressed' takes no argument 'unique=3}}
#a = #lacis.level<d0 : compressed<unique=3>>
// -----
// expected-error @below {{expected an integer, '?', or 'name=value' as argument of a level kind}}
#a = #lacis.level<d0 : compressed<"unique">>
// -----
// expected-error @below {{argument 'unique' is given twice}}
#a = #lacis.level<d0 : compressed<unique=false, unique=true>>
// -----
// expected-error @below {{'pos' cannot be 'i1': use i8, i16, i32 or i64}}
#a = #lacis.level<d0 : compressed<pos=i1>>
// -----
// expected-error @below {{'crd' cannot be 'ui32': use i8, i16, i32 or i64}}
#a = #lacis.level<d0 : compressed<crd=ui32>>
// -----
// expected-error @below {{a width must be positive, not 0: write '?' for a width known at run time}}
#a = #lacis.level<d0 : packed<0>>
// -----
// expected-error @below {{extent 'fixed' with an implicit coordinate is a dense level: use 'dense', or 'packed' to store coordinates}}
#a = #lacis.level<d0 : fixed<4>>
// -----
// expected-error @below {{extent 'full' has every coordinate, so 'crd' would store nothing new: use 'dense', or 'compressed' to leave coordinates out}}
#a = #lacis.level<d0 : full*crd>
// -----
// expected-error @below {{coordinate 'code' needs a fixed number of entries: use 'structured<n>'}}
#a = #lacis.level<d0 : var*code>
// -----
// expected-error @below {{extent 'one' needs a stored coordinate, not 'implicit': use 'singleton'}}
#a = #lacis.level<d0 : one>
// -----
// expected-error @below {{extent 'range' knows its coordinates, so 'crd' would store nothing new: leave it out}}
#a = #lacis.level<d0 : range*crd>
// -----
// expected-error @below {{extent 'batch' stores values only, so it takes no coordinate 'bitmap': leave it out}}
#a = #lacis.level<d0 : batch*bitmap>
// -----
// expected-error @below {{a delta has 8 or 16 bits, not 40}}
#a = #lacis.level<d0 : var*delta<40>>
// -----
// expected-error @below {{extent 'full' has every coordinate, so 'delta' would store nothing new: use 'dense', or 'var*delta' to leave coordinates out}}
#a = #lacis.level<d0 : full*delta<8>>
// -----
// expected-error @below {{a bitmap has bits for 1024 coordinates at the most: block the axis}}
#a = #lacis.level<(d0 mod 64, d1 mod 32) : bitmap>
// -----
// expected-error @below {{extent 'fixed' with 'bitmap' needs a width: no array shows how long a fibre is}}
#a = #lacis.level<d0 mod 4 : fixed*bitmap<?>>
// -----
// expected-error @below {{extent 'var2' needs an array with an element for each position, 'implicit' has none: use 'var2*crd'}}
#a = #lacis.level<d0 : var2>
// -----
// expected-error @below {{coordinate 'code' needs a fixed number of entries: use 'structured<n>'}}
#a = #lacis.level<d0 mod 4 : structured<?>>
// -----
// expected-error @below {{coordinate 'code' needs groups of a known size: write 'mod m' behind the axis}}
#a = #lacis.level<d0 : structured<2>>
// -----
// expected-error @below {{a group has 256 codes at the most: block the axis}}
#a = #lacis.level<d0 mod 256 : structured<1>>
// -----
// expected-error @below {{a group of 4 coordinates does not hold 5 entries}}
#a = #lacis.level<d0 mod 4 : structured<5>>
// -----
// expected-error @below {{'link' has no digits: write 'link' alone}}
#a = #lacis.level<d0 : link>
// -----
// expected-error @below {{'var' and 'link' do not combine: one of them is an extent and a coordinate, and stands alone}}
#a = #lacis.level<d0 : var*link>
// -----
// expected-error @below {{level kind 'kind' needs a symbol: write '@name'}}
#a = #lacis.kind<4>
// -----
// expected-error @below {{expected a level kind}}
#a = #lacis.level<d0 : 4>
// -----
// expected-error @below {{'link' has no level above it: put it after the levels that are walked}}
#a = #lacis.format<(i) -> (link, i : dense)>
// -----
// expected-error @below {{'link' must come last, before the dense levels of the stored block only}}
#a = #lacis.format<(i, j) -> (i : dense, link, j : compressed)>
// -----
// expected-error @below {{'i : singleton' has no level above it to follow: put one before it}}
#a = #lacis.format<(i) -> (i : singleton)>
// -----
// expected-error @below {{'j : singleton' follows 'i : compressed', whose coordinates are unique: write 'pad=true' here or 'unique=false' there}}
#a = #lacis.format<(i, j) -> (i : compressed, j : singleton)>
// -----
// expected-error @below {{'j : singleton' follows 'i : dense', whose coordinates are unique}}
#a = #lacis.format<(i, j) -> (i : dense, j : singleton)>
