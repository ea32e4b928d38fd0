// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whether tensors are those that a call was bound to.
#include "held.h"

enum State { Same = 0, Others = 1, Written = 2 };

/// -1, with an error: `got` is not what the caller gives.
static int refuse(const char *expected, PyObject *got) {
  PyErr_Format(PyExc_TypeError, "held: %s, got %R", expected, got);
  return -1;
}

static bool isTuple(PyObject *object, Py_ssize_t count) {
  return PyTuple_CheckExact(object) && PyTuple_GET_SIZE(object) == count;
}

/// -1, with an error, where `each` is no (dictionary, key, tensor).
static int holdsOther(PyObject *each) {
  if (!isTuple(each, 3) || !PyDict_Check(PyTuple_GET_ITEM(each, 0)))
    return refuse("expected a dictionary, a key and a tensor", each);
  PyObject *held = PyDict_GetItemWithError(PyTuple_GET_ITEM(each, 0), PyTuple_GET_ITEM(each, 1));
  return !held && PyErr_Occurred() ? -1 : held != PyTuple_GET_ITEM(each, 2);
}

/// -1, with an error, where `each` is no (tensor, number).
static int isWritten(PyObject *each) {
  static PyObject *name = PyUnicode_InternFromString("_version");
  if (!isTuple(each, 2))
    return refuse("expected a tensor and its version", each);
  PyObject *version = PyObject_GetAttr(PyTuple_GET_ITEM(each, 0), name);
  if (!version)
    return -1;
  int differs = PyObject_RichCompareBool(version, PyTuple_GET_ITEM(each, 1), Py_NE);
  Py_DECREF(version);
  return differs;
}

/// The first answer but 0 of `test` for an item of the tuple.
template <int (*test)(PyObject *)> static int anyOf(PyObject *tuple) {
  if (!PyTuple_CheckExact(tuple))
    return refuse("expected two tuples", tuple);
  for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(tuple); ++n)
    if (int found = test(PyTuple_GET_ITEM(tuple, n)))
      return found;
  return 0;
}

static PyObject *held(PyObject *, PyObject *const *given, Py_ssize_t count) {
  int others = count == 2 ? anyOf<holdsOther>(given[0]) : refuse("expected two tuples", Py_None);
  int written = others == 0 ? anyOf<isWritten>(given[1]) : 0;
  if (others < 0 || written < 0)
    return nullptr;
  return PyLong_FromLong(others ? Others : written ? Written : Same);
}

PyMethodDef lacis::heldMethods[] = {
    {"held", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(held)), METH_FASTCALL,
     "Whether dictionaries hold what they held (else 1) and no tensor was written into (else 2): then 0."},
    {nullptr, nullptr, 0, nullptr}};
