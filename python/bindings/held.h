// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a bound call asks Python's objects again and again; without pybind11, whose conversions take longer than the answer.
#ifndef LACIS_PYTHON_BINDINGS_HELD_H
#define LACIS_PYTHON_BINDINGS_HELD_H

#include <Python.h>

namespace lacis {

/// held(known, written) -> int: 0 where each dictionary holds the tensor that it held, and no tensor was written into; 1
/// where one holds another or none; else 2. `known` are (dictionary, key, tensor), `written` (tensor, its `_version`).
/// Raises `TypeError` for anything else.
extern PyMethodDef heldMethods[];

} // namespace lacis

#endif // LACIS_PYTHON_BINDINGS_HELD_H
