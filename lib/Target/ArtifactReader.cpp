// SPDX-License-Identifier: Apache-2.0
/// \file
/// An artifact's record from JSON.
#include "ArtifactJson.h"
#include "JsonReader.h"
#include "ArtifactSize.h"

using namespace lacis;
namespace json = llvm::json;
using llvm::StringRef;

namespace {

/// Reads the records of a header.
struct HeaderReader {
  std::string error;

  std::vector<Size> sizes(JsonReader &reader, StringRef key, bool required) {
    std::vector<Size> result;
    reader.list(key, required, [&](const json::Value &value, const std::string &place) {
      result.push_back(sizeFromJson(value, place, error));
    });
    return result;
  }

  Artifact::Argument argument(const json::Value &value, const std::string &place) {
    JsonReader reader(value, place, error);
    Artifact::Argument arg;
    arg.kind = reader.text("kind", true);
    arg.operand = reader.integer("operand", 0, arg.kind != "output" && arg.kind != "fault" && !isNumbered(arg));
    arg.derived = reader.integer("derived", -1, arg.kind == "derived");
    arg.name = reader.text("name", arg.kind == "storage" || arg.kind == "storage_dim" || arg.kind == "derived");
    arg.dim = reader.integer("dim", 0, arg.kind == "dim" || arg.kind == "stride" || arg.kind == "storage_dim");
    arg.index = reader.integer("index", 0, isNumbered(arg));
    arg.strided = reader.boolean("strided", false);
    return arg;
  }

  Artifact::Derived derived(const json::Value &value, const std::string &place) {
    JsonReader reader(value, place, error);
    Artifact::Derived step;
    step.function = reader.text("function", true);
    const json::Value *parameters = reader.find("parameters", true), *source = reader.find("source", true);
    if (parameters && parameters->getAsObject())
      step.parameters = *parameters->getAsObject();
    else if (error.empty())
      error = place + ".parameters is no object";
    if (source && source->getAsInteger()) {
      step.source = *source->getAsInteger();
    } else if (source) {
      JsonReader operand(*source, place + ".source", error);
      step.operand = operand.integer("operand", 0, true);
      step.part = operand.text("part");
    }
    reader.list("arrays", true, [&](const json::Value &element, const std::string &where) {
      JsonReader array(element, where, error);
      step.arrays.push_back({array.text("name", true), array.text("dtype", true), array.find("sizes", false) != nullptr,
                             sizes(array, "sizes", false)});
    });
    return step;
  }

  Artifact::SharedSize sharedSize(const json::Value &value, const std::string &place) {
    JsonReader reader(value, place, error);
    return {reader.text("name", true), reader.integer("multiple", 1), reader.integer("value", -1),
            reader.integer("most", -1)};
  }

  Artifact::Tensor tensor(const json::Value &value, const std::string &place) {
    JsonReader reader(value, place, error);
    Artifact::Tensor tensor;
    tensor.operand = reader.integer("operand", 0, true);
    tensor.derived = reader.integer("derived", -1);
    tensor.name = reader.text("name");
    tensor.dtype = reader.text("dtype");
    tensor.optional = reader.boolean("optional", false);
    tensor.shaped = reader.find("dims", false) != nullptr;
    tensor.dims = sizes(reader, "dims", false);
    tensor.copies = reader.integer("copies", 0);
    return tensor;
  }

  void integers(JsonReader &reader, StringRef key, bool required, std::vector<int64_t> &result) {
    reader.list(key, required, [&](const json::Value &element, const std::string &where) {
      if (std::optional<int64_t> number = element.getAsInteger())
        result.push_back(*number);
      else if (error.empty())
        error = where + " is no integer";
    });
  }

  Artifact::TensorMap tensorMap(const json::Value &value, const std::string &place) {
    JsonReader reader(value, place, error);
    Artifact::TensorMap map;
    map.pointer = reader.integer("pointer", -1, true);
    map.shape = sizes(reader, "shape", true);
    integers(reader, "box", true, map.box);
    map.swizzle = reader.integer("swizzle", 0);
    map.dtype = reader.text("dtype", true);
    return map;
  }

  Artifact::Launch launch(const json::Value &value, const std::string &place) {
    JsonReader reader(value, place, error);
    Artifact::Launch launch;
    launch.entry = reader.text("entry", true);
    launch.grid = sizes(reader, "grid", false);
    launch.beside = sizes(reader, "beside", false);
    integers(reader, "block", !launch.grid.empty(), launch.block);
    launch.shared = reader.integer("shared", 0);
    launch.waits = reader.boolean("waits", false);
    if (const json::Value *units = reader.find("units", launch.grid.empty()))
      launch.units = sizeFromJson(*units, place + ".units", error);
    return launch;
  }

  Artifact header(const json::Value &value) {
    Artifact artifact;
    JsonReader reader(value, "artifact", error);
    int64_t version = reader.integer("format_version", -1, true);
    if (version != Artifact::currentVersion && error.empty())
      error = "artifact of format version " + std::to_string(version) + "; this build reads version " +
              std::to_string(Artifact::currentVersion);
    artifact.target = reader.text("target", true);
    artifact.kind = reader.text("kind", true);
    artifact.packed = reader.integer("packed", -1);
    artifact.indexBits = reader.integer("index_bits", 32, true);
    reader.list("args", true, [&](const json::Value &element, const std::string &place) {
      artifact.args.push_back(argument(element, place));
    });
    reader.list("derived", false, [&](const json::Value &element, const std::string &place) {
      artifact.derived.push_back(derived(element, place));
    });
    reader.list("sizes", false, [&](const json::Value &element, const std::string &place) {
      artifact.sizes.push_back(sharedSize(element, place));
    });
    reader.list("tensors", false, [&](const json::Value &element, const std::string &place) {
      artifact.tensors.push_back(tensor(element, place));
    });
    reader.list("launches", true, [&](const json::Value &element, const std::string &place) {
      artifact.launches.push_back(launch(element, place));
    });
    auto texts = [&](StringRef name, std::vector<std::string> &found) {
      reader.list(name, false, [&](const json::Value &element, const std::string &place) {
        if (std::optional<StringRef> text = element.getAsString())
          found.push_back(text->str());
        else if (error.empty())
          error = place + " is no string";
      });
    };
    texts("steps", artifact.steps);
    texts("remarks", artifact.remarks);
    reader.list("workspace", false, [&](const json::Value &element, const std::string &place) {
      JsonReader workspace(element, place, error);
      if (const json::Value *bytes = workspace.find("bytes", true))
        artifact.workspace.push_back(sizeFromJson(*bytes, place + ".bytes", error));
    });
    reader.list("tensor_maps", false, [&](const json::Value &element, const std::string &place) {
      artifact.tensorMaps.push_back(tensorMap(element, place));
    });
    if (const json::Value *element = reader.find("output", true)) {
      JsonReader output(*element, "artifact.output", error);
      artifact.output.dtype = output.text("dtype", true);
      artifact.output.shape = sizes(output, "shape", true);
      artifact.output.zero = output.boolean("zero", false);
    }
    return artifact;
  }
};

} // namespace

llvm::Expected<Artifact> lacis::headerFromJson(const json::Value &value) {
  HeaderReader reader;
  Artifact artifact = reader.header(value);
  if (!reader.error.empty())
    return llvm::createStringError(reader.error);
  return artifact;
}
