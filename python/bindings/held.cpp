// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whether tensors are those that a call was bound to.
#include "held.h"

enum State { Same = 0, Others = 1, Written = 2 };

/// The items of a tuple of so many; null, with an error, for anything else.
static PyObject **itemsOf(PyObject *tuple, Py_ssize_t count) {
  if (PyTuple_CheckExact(tuple) && PyTuple_GET_SIZE(tuple) == count)
    return &PyTuple_GET_ITEM(tuple, 0);
  PyErr_Format(PyExc_TypeError, "held: expected a tuple of %zd, got %R", count, tuple);
  return nullptr;
}

/// -1, with an error, where `each` is no (dictionary, key, tensor).
static int holdsOther(PyObject *each) {
  PyObject **items = itemsOf(each, 3);
  if (!items)
    return -1;
  if (!PyDict_Check(items[0])) {
    PyErr_Format(PyExc_TypeError, "held: expected a dictionary, got %R", items[0]);
    return -1;
  }
  PyObject *held = PyDict_GetItemWithError(items[0], items[1]);
  return !held && PyErr_Occurred() ? -1 : held != items[2];
}

/// -1, with an error, where `each` is no (tensor, number).
static int isWritten(PyObject *each) {
  static PyObject *name = PyUnicode_InternFromString("_version");
  PyObject **items = itemsOf(each, 2);
  PyObject *version = items ? PyObject_GetAttr(items[0], name) : nullptr;
  if (!version)
    return -1;
  int differs = PyObject_RichCompareBool(version, items[1], Py_NE);
  Py_DECREF(version);
  return differs;
}

/// The first answer but 0 of `test` for an item of the tuple.
template <int (*test)(PyObject *)> static int anyOf(PyObject *tuple) {
  if (!PyTuple_CheckExact(tuple)) {
    PyErr_Format(PyExc_TypeError, "held: expected a tuple, got %R", tuple);
    return -1;
  }
  for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(tuple); ++n)
    if (int found = test(PyTuple_GET_ITEM(tuple, n)))
      return found;
  return 0;
}

static PyObject *held(PyObject *, PyObject *const *given, Py_ssize_t count) {
  if (count != 2)
    return PyErr_Format(PyExc_TypeError, "held: expected 2 arguments, got %zd", count);
  int others = anyOf<holdsOther>(given[0]);
  int written = others == 0 ? anyOf<isWritten>(given[1]) : 0;
  if (others < 0 || written < 0)
    return nullptr;
  return PyLong_FromLong(others ? Others : written ? Written : Same);
}

PyMethodDef lacis::heldMethods[] = {
    {"held", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(held)), METH_FASTCALL,
     "Do the dictionaries hold the tensors that they held, and was none written into? 0, or 1 for others, 2 for written."},
    {nullptr, nullptr, 0, nullptr}};
