// SPDX-License-Identifier: Apache-2.0
/// \file
/// An artifact's record to JSON and back.
#include "ArtifactJson.h"

using namespace lacis;
namespace json = llvm::json;
using llvm::StringRef;

//===- writing ------------------------------------------------------------===//

static json::Array toJson(const Artifact::Size &size) {
  json::Array factors;
  for (const Artifact::Factor &factor : size) {
    json::Object object{{"arg", factor.arg}, {"div", factor.div}, {"mul", factor.mul}};
    if (!factor.of.empty())
      object["of"] = toJson(factor.of);
    if (factor.add != 0)
      object["add"] = factor.add;
    if (factor.above >= 0)
      object["above"] = factor.above;
    if (factor.upto >= 0)
      object["upto"] = factor.upto;
    factors.push_back(std::move(object));
  }
  return factors;
}

static json::Array toJson(const std::vector<Artifact::Size> &sizes) {
  json::Array result;
  for (const Artifact::Size &size : sizes)
    result.push_back(toJson(size));
  return result;
}

/// These kinds have a number and no operand.
static bool isNumbered(const Artifact::Argument &arg) {
  return arg.kind == "workspace" || arg.kind == "tensor_map" || arg.kind == "bytes";
}

static json::Value toJson(const Artifact::Argument &arg) {
  json::Object object{{"kind", arg.kind}};
  auto text = [&](StringRef key, const std::string &value) {
    if (!value.empty())
      object[key] = value;
  };
  text("part", arg.part);
  text("format", arg.format);
  text("rule", arg.rule);
  text("name", arg.name);
  text("source", arg.source);
  if (isNumbered(arg))
    object["index"] = arg.index;
  else if (arg.kind != "output" && arg.kind != "fault")
    object["operand"] = arg.operand;
  if (arg.kind == "dim" || arg.kind == "stride" || arg.kind == "storage_dim" || arg.dim)
    object["dim"] = arg.dim;
  return object;
}

static json::Value toJson(const Artifact::SharedSize &size) {
  json::Object object{{"name", size.name}};
  if (size.multiple != 1)
    object["multiple"] = size.multiple;
  if (size.value >= 0)
    object["value"] = size.value;
  if (size.most >= 0)
    object["most"] = size.most;
  return object;
}

static json::Value toJson(const Artifact::Tensor &tensor) {
  json::Object object{{"operand", tensor.operand}, {"dtype", tensor.dtype}};
  for (auto [key, value] : {std::pair("part", &tensor.part),
                            {"format", &tensor.format},
                            {"rule", &tensor.rule},
                            {"name", &tensor.name}})
    if (!value->empty())
      object[key] = *value;
  if (tensor.optional)
    object["optional"] = true;
  if (!tensor.shaped)
    return object;
  json::Array dims;
  for (const Artifact::Dimension &dim : tensor.dims) {
    json::Object entry{{"size", toJson(dim.size)}};
    if (dim.plus != 0)
      entry["plus"] = dim.plus;
    dims.push_back(std::move(entry));
  }
  object["dims"] = std::move(dims);
  return object;
}

static json::Value toJson(const Artifact::Launch &launch) {
  json::Object object =
      launch.grid.empty()
          ? json::Object{{"entry", launch.entry}, {"units", toJson(launch.units)}}
          : json::Object{{"entry", launch.entry}, {"grid", toJson(launch.grid)},
                         {"block", json::Array(launch.block)}, {"shared", launch.shared}};
  if (!launch.beside.empty())
    object["beside"] = toJson(launch.beside);
  if (launch.waits)
    object["waits"] = true;
  return object;
}

static json::Value toJson(const Artifact::TensorMap &map) {
  return json::Object{{"pointer", map.pointer},
                      {"shape", toJson(map.shape)},
                      {"box", json::Array(map.box)},
                      {"swizzle", map.swizzle},
                      {"dtype", map.dtype}};
}

json::Value lacis::headerToJson(const Artifact &artifact) {
  json::Array args, sizes, tensors, workspaces, launches;
  for (const Artifact::Argument &arg : artifact.args)
    args.push_back(toJson(arg));
  for (const Artifact::SharedSize &size : artifact.sizes)
    sizes.push_back(toJson(size));
  for (const Artifact::Tensor &tensor : artifact.tensors)
    tensors.push_back(toJson(tensor));
  for (const Artifact::Size &bytes : artifact.workspace)
    workspaces.push_back(json::Object{{"bytes", toJson(bytes)}});
  for (const Artifact::Launch &launch : artifact.launches)
    launches.push_back(toJson(launch));
  json::Object output{{"dtype", artifact.output.dtype},
                      {"shape", toJson(artifact.output.shape)},
                      {"zero", artifact.output.zero}};
  json::Object header{{"format_version", Artifact::currentVersion},
                      {"target", artifact.target},
                      {"kind", artifact.kind},
                      {"args", std::move(args)},
                      {"sizes", std::move(sizes)},
                      {"tensors", std::move(tensors)},
                      {"output", std::move(output)},
                      {"workspace", std::move(workspaces)},
                      {"launches", std::move(launches)},
                      {"packed", artifact.packed},
                      {"index_bits", artifact.indexBits},
                      {"steps", json::Array(artifact.steps)},
                      {"remarks", json::Array(artifact.remarks)}};
  json::Array maps;
  for (const Artifact::TensorMap &map : artifact.tensorMaps)
    maps.push_back(toJson(map));
  if (!maps.empty())
    header["tensor_maps"] = std::move(maps);
  return header;
}

//===- reading ------------------------------------------------------------===//

namespace {

/// Reads the fields of one object; the first problem stays in `error`.
class Reader {
public:
  Reader(const json::Value &value, std::string place, std::string &error) : place(std::move(place)), error(error) {
    object = value.getAsObject();
    if (!object)
      fail(" is no object");
  }

  ~Reader() {
    if (!object)
      return;
    for (const auto &entry : *object)
      if (!llvm::is_contained(known, StringRef(entry.first)))
        fail(" has an unknown key '" + entry.first.str() + "'");
  }

  std::string text(StringRef key, bool required = false) {
    const json::Value *value = find(key, required);
    if (!value)
      return "";
    if (std::optional<StringRef> result = value->getAsString())
      return result->str();
    fail("." + key.str() + " is no string");
    return "";
  }

  int64_t integer(StringRef key, int64_t fallback, bool required = false) {
    const json::Value *value = find(key, required);
    if (!value)
      return fallback;
    if (std::optional<int64_t> result = value->getAsInteger())
      return *result;
    fail("." + key.str() + " is no integer");
    return fallback;
  }

  bool boolean(StringRef key, bool fallback) {
    const json::Value *value = find(key, false);
    if (!value)
      return fallback;
    if (std::optional<bool> result = value->getAsBoolean())
      return *result;
    fail("." + key.str() + " is no boolean");
    return fallback;
  }

  /// Calls `visit(element, place of the element)`.
  template <typename Visit> void list(StringRef key, bool required, Visit visit) {
    const json::Value *value = find(key, required);
    if (!value)
      return;
    std::string name = place + "." + key.str();
    const json::Array *array = value->getAsArray();
    if (!array)
      return fail("." + key.str() + " is no list");
    for (size_t i = 0; i < array->size(); ++i)
      visit((*array)[i], name + "[" + std::to_string(i) + "]");
  }

  const json::Value *find(StringRef key, bool required) {
    known.push_back(key);
    const json::Value *value = object ? object->get(key) : nullptr;
    if (!value && required)
      fail(" has no key '" + key.str() + "'");
    return value;
  }

private:
  void fail(const std::string &what) {
    if (error.empty())
      error = place + what;
  }

  std::string place;
  std::string &error;
  const json::Object *object = nullptr;
  llvm::SmallVector<StringRef> known;
};

/// Reads the records of a header.
struct HeaderReader {
  std::string error;

  Artifact::Size size(const json::Value &value, const std::string &place) {
    Artifact::Size result;
    const json::Array *factors = value.getAsArray();
    if (!factors && error.empty())
      error = place + " is no list of factors";
    for (size_t i = 0; factors && i < factors->size(); ++i) {
      std::string where = place + "[" + std::to_string(i) + "]";
      Reader reader((*factors)[i], where, error);
      result.push_back({reader.integer("arg", -1, true), reader.integer("div", 1), reader.integer("mul", 1),
                        reader.integer("add", 0), {}, reader.integer("above", -1), reader.integer("upto", -1)});
      if (const json::Value *of = reader.find("of", false))
        result.back().of = size(*of, where + ".of");
    }
    return result;
  }

  std::vector<Artifact::Size> sizes(Reader &reader, StringRef key, bool required) {
    std::vector<Artifact::Size> result;
    reader.list(key, required,
                [&](const json::Value &value, const std::string &place) { result.push_back(size(value, place)); });
    return result;
  }

  Artifact::Argument argument(const json::Value &value, const std::string &place) {
    Reader reader(value, place, error);
    Artifact::Argument arg;
    arg.kind = reader.text("kind", true);
    arg.operand = reader.integer("operand", 0, arg.kind != "output" && arg.kind != "fault" && !isNumbered(arg));
    arg.part = reader.text("part");
    arg.format = reader.text("format", arg.kind == "derived");
    arg.name = reader.text("name", arg.kind == "storage" || arg.kind == "storage_dim" || arg.kind == "derived");
    arg.source = reader.text("source");
    arg.dim = reader.integer("dim", 0, arg.kind == "dim" || arg.kind == "stride" || arg.kind == "storage_dim");
    arg.rule = reader.text("rule");
    arg.index = reader.integer("index", 0, isNumbered(arg));
    return arg;
  }

  Artifact::SharedSize sharedSize(const json::Value &value, const std::string &place) {
    Reader reader(value, place, error);
    return {reader.text("name", true), reader.integer("multiple", 1), reader.integer("value", -1),
            reader.integer("most", -1)};
  }

  Artifact::Tensor tensor(const json::Value &value, const std::string &place) {
    Reader reader(value, place, error);
    Artifact::Tensor tensor;
    tensor.operand = reader.integer("operand", 0, true);
    tensor.part = reader.text("part");
    tensor.format = reader.text("format");
    tensor.rule = reader.text("rule");
    tensor.name = reader.text("name");
    tensor.dtype = reader.text("dtype");
    tensor.optional = reader.boolean("optional", false);
    tensor.shaped = reader.find("dims", false) != nullptr;
    reader.list("dims", false, [&](const json::Value &element, const std::string &where) {
      Reader dim(element, where, error);
      Artifact::Dimension result;
      if (const json::Value *factors = dim.find("size", true))
        result.size = size(*factors, where + ".size");
      result.plus = dim.integer("plus", 0);
      tensor.dims.push_back(std::move(result));
    });
    return tensor;
  }

  void integers(Reader &reader, StringRef key, bool required, std::vector<int64_t> &result) {
    reader.list(key, required, [&](const json::Value &element, const std::string &where) {
      if (std::optional<int64_t> number = element.getAsInteger())
        result.push_back(*number);
      else if (error.empty())
        error = where + " is no integer";
    });
  }

  Artifact::TensorMap tensorMap(const json::Value &value, const std::string &place) {
    Reader reader(value, place, error);
    Artifact::TensorMap map;
    map.pointer = reader.integer("pointer", -1, true);
    map.shape = sizes(reader, "shape", true);
    integers(reader, "box", true, map.box);
    map.swizzle = reader.integer("swizzle", 0);
    map.dtype = reader.text("dtype", true);
    return map;
  }

  Artifact::Launch launch(const json::Value &value, const std::string &place) {
    Reader reader(value, place, error);
    Artifact::Launch launch;
    launch.entry = reader.text("entry", true);
    launch.grid = sizes(reader, "grid", false);
    launch.beside = sizes(reader, "beside", false);
    integers(reader, "block", !launch.grid.empty(), launch.block);
    launch.shared = reader.integer("shared", 0);
    launch.waits = reader.boolean("waits", false);
    if (const json::Value *units = reader.find("units", launch.grid.empty()))
      launch.units = size(*units, place + ".units");
    return launch;
  }

  Artifact header(const json::Value &value) {
    Artifact artifact;
    Reader reader(value, "artifact", error);
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
      Reader workspace(element, place, error);
      if (const json::Value *bytes = workspace.find("bytes", true))
        artifact.workspace.push_back(size(*bytes, place + ".bytes"));
    });
    reader.list("tensor_maps", false, [&](const json::Value &element, const std::string &place) {
      artifact.tensorMaps.push_back(tensorMap(element, place));
    });
    if (const json::Value *element = reader.find("output", true)) {
      Reader output(*element, "artifact.output", error);
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
