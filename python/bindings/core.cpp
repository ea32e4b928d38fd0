// SPDX-License-Identifier: Apache-2.0
/// \file
/// `lacis._core`: compile, inspect and load from Python, with the GIL released; of the launch path, what asks Python.
#include "held.h"
#include "lacis-c/lacis.h"
#include "lacis-c/lacis_runtime.h"
#include <memory>
#include <pybind11/pybind11.h>
#include <string>

namespace py = pybind11;

/// What compile() gives back.
struct Compiled {
  py::bytes artifact;
  py::dict stages;
};

struct BufferDeleter {
  void operator()(lacis_buffer *buffer) const { lacis_buffer_free(buffer); }
};
using Buffer = std::unique_ptr<lacis_buffer, BufferDeleter>;

static std::string text(const Buffer &buffer) {
  if (!buffer)
    return {};
  return std::string(static_cast<const char *>(lacis_buffer_data(buffer.get())), lacis_buffer_size(buffer.get()));
}

static py::object loadJson(const std::string &json) { return py::module_::import("json").attr("loads")(json); }

/// Raises a class of lacis.errors; `hasLocation` says that the message begins with the place it speaks of.
[[noreturn]] static void raise(const char *className, const std::string &message, bool hasLocation) {
  py::object type = py::module_::import("lacis.errors").attr(className);
  py::dict keywords;
  if (hasLocation)
    keywords["location"] = py::none();
  py::object error = type(message, **keywords);
  PyErr_SetObject(type.ptr(), error.ptr());
  throw py::error_already_set();
}

static void check(int status, char *error) {
  if (status == 0)
    return;
  std::string message = error ? error : "unknown error";
  lacis_string_free(error);
  raise("CompileError", message, /*hasLocation=*/false);
}

static Compiled compile(const std::string &source, const std::string &target, const py::dict &options) {
  std::string json = py::module_::import("json").attr("dumps")(options).cast<std::string>();
  lacis_buffer *artifact = nullptr, *stages = nullptr, *diagnostics = nullptr;
  int status;
  {
    py::gil_scoped_release release;
    status = lacis_compile(source.c_str(), target.c_str(), json.c_str(), &artifact, &stages, &diagnostics);
  }
  Buffer artifactOwner(artifact), stagesOwner(stages), diagnosticsOwner(diagnostics);
  if (status != 0)
    raise("CompileError", text(diagnosticsOwner), /*hasLocation=*/status == 1);
  std::string stageText = text(stagesOwner);
  py::dict stageTable = stageText.empty() ? py::dict() : py::dict(loadJson(stageText));
  return {py::bytes(text(artifactOwner)), stageTable};
}

static void load(const std::string &key, const py::bytes &artifact, int device) {
  std::string_view bytes = artifact;
  char *error = nullptr;
  int status;
  {
    py::gil_scoped_release release;
    status = lacis_kernel_load(key.c_str(), bytes.data(), bytes.size(), device, &error);
  }
  check(status, error);
}

static py::object artifactInfo(const py::bytes &artifact) {
  std::string_view bytes = artifact;
  char *error = nullptr;
  lacis_buffer *json = nullptr;
  check(lacis_artifact_describe(bytes.data(), bytes.size(), &json, &error), error);
  return loadJson(text(Buffer(json)));
}

static py::bytes artifactCode(const py::bytes &artifact) {
  std::string_view bytes = artifact;
  char *error = nullptr;
  lacis_buffer *code = nullptr;
  check(lacis_artifact_code(bytes.data(), bytes.size(), &code, &error), error);
  return py::bytes(text(Buffer(code)));
}

/// What a kernel stores that is loaded or lies in the search path, as a `lacis_dtype`; none of any other.
static int outputDtype(const std::string &key) {
  py::gil_scoped_release release;
  lacis_kernel *kernel = nullptr;
  char *error = nullptr;
  if (lacis_kernel_find(key.c_str(), key.size(), &kernel, &error) == 0)
    return lacis_kernel_signature(kernel)->output_dtype;
  lacis_string_free(error);
  return LACIS_DTYPE_NONE;
}

PYBIND11_MODULE(_core, m) {
  m.doc() = "The compiler core of Lacis.";
  py::class_<Compiled>(m, "Compiled")
      .def_readonly("artifact", &Compiled::artifact)
      .def_readonly("stages", &Compiled::stages);
  m.def("compile", &compile, py::arg("text"), py::arg("target"), py::arg("options") = py::dict(),
        "Compile the text of one kernel; raises lacis.errors.CompileError with the diagnostics.");
  m.def("load", &load, py::arg("key"), py::arg("artifact"), py::arg("device") = LACIS_DEVICE_HOST,
        "Register an artifact under a key and load it on a device (-1: the host).");
  m.def("set_kernel_path", [](const std::string &path) { lacis_kernel_set_path(path.c_str()); }, py::arg("path"),
        "Folders and files, separated by ':', with kernels to load on demand.");
  m.def("output_dtype", &outputDtype, py::arg("key"),
        "The number of the dtype that a kernel stores, 0 where none is known by the key.");
  m.def("artifact_info", &artifactInfo, py::arg("artifact"), "The artifact's header.");
  m.def("artifact_code", &artifactCode, py::arg("artifact"), "The artifact's code.");
  m.def("version", [] { return std::string(lacis_version()); }, "The release.");
  m.def("compiler_fingerprint", [] { return std::string(lacis_compiler_fingerprint()); },
        "Changes with anything that may change the code that compile() makes.");
  m.def("host_cpu", [] { return std::string(lacis_host_cpu()); }, "The processor that target 'cpu' means here.");
  if (PyModule_AddFunctions(m.ptr(), lacis::heldMethods) != 0)
    throw py::error_already_set();
  m.def("targets", [] { return std::string(lacis_targets()); }, "The backends of this build.");
}
