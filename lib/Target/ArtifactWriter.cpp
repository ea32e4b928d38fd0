// SPDX-License-Identifier: Apache-2.0
/// \file
/// An artifact's record to JSON.
#include "ArtifactJson.h"
#include "ArtifactSize.h"

using namespace lacis;
namespace json = llvm::json;
using llvm::StringRef;

static json::Array toJson(const std::vector<Size> &sizes) {
  json::Array result;
  for (const Size &size : sizes)
    result.push_back(sizeToJson(size));
  return result;
}

static json::Value toJson(const Artifact::Argument &arg) {
  json::Object object{{"kind", arg.kind}};
  if (!arg.name.empty())
    object["name"] = arg.name;
  if (arg.derived >= 0)
    object["derived"] = arg.derived;
  if (isNumbered(arg))
    object["index"] = arg.index;
  else if (arg.kind != "output" && arg.kind != "fault")
    object["operand"] = arg.operand;
  if (arg.kind == "dim" || arg.kind == "stride" || arg.kind == "storage_dim" || arg.dim)
    object["dim"] = arg.dim;
  if (arg.strided)
    object["strided"] = true;
  return object;
}

static json::Value toJson(const Artifact::Derived &derived) {
  json::Array arrays;
  for (const Artifact::Derived::Array &array : derived.arrays) {
    json::Object object{{"name", array.name}, {"dtype", array.dtype}};
    if (array.shaped)
      object["sizes"] = toJson(array.sizes);
    arrays.push_back(std::move(object));
  }
  json::Value source = derived.source;
  if (derived.source < 0)
    source = json::Object{{"operand", derived.operand}, {"part", derived.part}};
  return json::Object{{"function", derived.function},
                      {"parameters", json::Object(derived.parameters)},
                      {"source", std::move(source)},
                      {"arrays", std::move(arrays)}};
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
  if (!tensor.name.empty())
    object["name"] = tensor.name;
  if (tensor.derived >= 0)
    object["derived"] = tensor.derived;
  if (tensor.optional)
    object["optional"] = true;
  if (tensor.shaped)
    object["dims"] = toJson(tensor.dims);
  if (tensor.copies != 0)
    object["copies"] = tensor.copies;
  return object;
}

static json::Value toJson(const Artifact::Launch &launch) {
  json::Object object =
      launch.grid.empty()
          ? json::Object{{"entry", launch.entry}, {"units", sizeToJson(launch.units.value_or(Size()))}}
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
  for (const Size &bytes : artifact.workspace)
    workspaces.push_back(json::Object{{"bytes", sizeToJson(bytes)}});
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
  json::Array maps, derived;
  for (const Artifact::Derived &step : artifact.derived)
    derived.push_back(toJson(step));
  if (!derived.empty())
    header["derived"] = std::move(derived);
  for (const Artifact::TensorMap &map : artifact.tensorMaps)
    maps.push_back(toJson(map));
  if (!maps.empty())
    header["tensor_maps"] = std::move(maps);
  return header;
}
