// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// Passes take the attributes of the dialect for what they are, so they are that.

// expected-error @below {{'lacis.name' is text; got 5 : i64}}
func.func private @name(tensor<?xf32> {lacis.name = 5})

// -----

// expected-error @below {{'lacis.axes' is a list of names; got ["i", 1]}}
func.func private @axes(tensor<?x?xf32> {lacis.axes = ["i", 1]})

// -----

// expected-error @below {{'lacis.classes' is a list of lists of names; got ["long"]}}
func.func private @row_classes() attributes {lacis.classes = ["long"]}

// -----

// expected-error @below {{argument 0: "lacis.axes" is of each axis; got ["i"]}}
func.func private @few_axes(tensor<?x?xf32> {lacis.axes = ["i"]})

// -----

// expected-error @below {{argument 0: "lacis.divisible" is of each axis; got array<i64: 4>}}
func.func private @few_classes(tensor<?x?xf32> {lacis.divisible = array<i64: 4>})

// -----

// expected-error @below {{'lacis.divisible' is sizes from 1 on; got array<i64: 0, 4>}}
func.func private @classes(tensor<?x?xf32> {lacis.divisible = array<i64: 0, 4>})

// -----

// expected-error @below {{'lacis.sample' is the number of an argument; got -1}}
func.func private @sample(tensor<?xf32> {lacis.sample = -1})

// -----

// expected-error @below {{argument 0: 'lacis.sample' names argument 1, which does not exist}}
func.func private @no_sample(tensor<?xf32> {lacis.sample = 1})

// -----

// expected-error @below {{'lacis.regroup' is a '#lacis.layout'; got 1 : i64}}
func.func private @regroup(tensor<?xf32> {lacis.regroup = 1 : i64})

// -----

// expected-error @below {{'lacis.cases' is a list of cases with name, argument, axis and upto; got [{upto = 1 : i64}]}}
func.func private @cases() attributes {lacis.cases = [{upto = 1 : i64}]}

// -----

// expected-error @below {{'lacis.cases': there is no axis 1 of argument 0}}
func.func private @no_case(tensor<?xf32>)
    attributes {lacis.cases = [{name = "few", argument = 0 : i64, axis = 1 : i64, upto = 1 : i64}]}

// -----

// expected-error @below {{'lacis.steps' is a list of steps; got "split"}}
func.func private @steps() attributes {lacis.steps = "split"}

// -----

// expected-error @below {{'lacis.blocks_per_processor' is a number from 1 on; got 0}}
func.func private @blocks() attributes {lacis.blocks_per_processor = 0 : i64}

// -----

// expected-error @below {{'lacis.artifact' is a record of 'args', each with its 'kind', and of 'launches', each with its 'entry'; got {args = [{}]}}}
module attributes {lacis.artifact = {args = [{}]}} {}

// -----

// expected-error @below {{'lacis.pipeline' is a number of stages, from 2 to 256; got 257}}
func.func private @of_0() attributes {lacis.pipeline = 257 : i64}

// -----

// expected-error @below {{'lacis.rounds' is a number of rounds, from 1 to 1024; got 1025}}
func.func private @of_1() attributes {lacis.rounds = 1025 : i64}

// -----

// expected-error @below {{'lacis.sums' is a number of sums, from 1 to 1024; got 0}}
func.func private @of_2() attributes {lacis.sums = 0 : i64}

// -----

// expected-error @below {{'lacis.rounds' are a multiple of 'lacis.sums'}}
func.func private @of_3() attributes {lacis.sums = 2 : i64, lacis.rounds = 3 : i64}

// -----

// expected-error @below {{'lacis.size' is a '#lacis.size'; got [1]}}
func.func private @of_4() attributes {lacis.size = [1]}

// -----

// expected-error @below {{'lacis.when' is a '#lacis.size'; got 4 : i64}}
func.func private @of_5() attributes {lacis.when = 4}

// -----

// expected-error @below {{'lacis.bind' is the name of a unit, as in 'bind' of a loop; got "blocks"}}
func.func private @of_6() attributes {lacis.bind = "blocks"}

// -----

// expected-error @below {{'lacis.remarks' is a list of sentences; got [1]}}
func.func @remarks() attributes {lacis.remarks = [1]} { return }

// -----

// expected-error @below {{'lacis.scan' is a mark without a value; got 3}}
func.func @value() attributes {lacis.scan = 3 : i64} {
  return
}
