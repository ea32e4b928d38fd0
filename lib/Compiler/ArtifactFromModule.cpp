// SPDX-License-Identifier: Apache-2.0
/// \file
/// The record of an artifact, from the module attribute `lacis.artifact` and back out of LLVM IR.
#include "ArtifactFromModule.h"
#include "lacis/Dialect/Lacis/IR/Lacis.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/IR/Metadata.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using lacis::Artifact;
namespace json = llvm::json;

static constexpr StringRef recordName = "lacis.artifact";
static constexpr StringRef noCodeYet = "pending";

/// See lib/Target/ArtifactSize.h.
static json::Value toJson(lacis::SizeAttr size) {
  using lacis::SizeKind;
  if (size.getKind() == SizeKind::Constant)
    return size.getNumber();
  if (size.getKind() == SizeKind::Argument)
    return json::Object{{"arg", size.getNumber()}};
  json::Array parts;
  for (lacis::SizeAttr part : size.getOf())
    parts.push_back(toJson(part));
  if (size.getKind() == SizeKind::Product)
    return json::Object{{"product", std::move(parts)}};
  if (size.getKind() == SizeKind::Min)
    return json::Object{{"min", std::move(parts)}};
  parts.push_back(size.getNumber());
  if (size.getKind() == SizeKind::Within)
    parts.push_back(size.getUpto());
  StringRef key = size.getKind() == SizeKind::Sum       ? "sum"
                  : size.getKind() == SizeKind::CeilDiv ? "ceildiv"
                                                        : "within";
  return json::Object{{key, std::move(parts)}};
}

/// Attributes that JSON can say; null otherwise.
static json::Value toJson(Attribute attribute) {
  if (auto size = dyn_cast<lacis::SizeAttr>(attribute))
    return toJson(size);
  if (auto flag = dyn_cast<BoolAttr>(attribute))
    return flag.getValue();
  if (auto number = dyn_cast<IntegerAttr>(attribute))
    return number.getValue().getSExtValue();
  if (auto text = dyn_cast<StringAttr>(attribute))
    return text.getValue().str();
  if (auto numbers = dyn_cast<DenseI64ArrayAttr>(attribute))
    return json::Array(numbers.asArrayRef());
  if (auto list = dyn_cast<ArrayAttr>(attribute)) {
    json::Array array;
    for (Attribute element : list)
      array.push_back(toJson(element));
    return array;
  }
  if (auto dictionary = dyn_cast<DictionaryAttr>(attribute)) {
    json::Object object;
    for (NamedAttribute entry : dictionary)
      if (auto step = dyn_cast<lacis::DerivedInterface>(entry.getValue())) {
        object["function"] = step.getFunction();
        object["parameters"] = toJson(step.getParameters());
      } else {
        object[entry.getName().getValue()] = toJson(entry.getValue());
      }
    return object;
  }
  return nullptr;
}

/// What a list of the kernel's functions says, as texts; each of them carries all of it.
static json::Array textsOf(ModuleOp module, StringRef name) {
  json::Array texts;
  for (Operation &op : *module.getBody())
    if (auto list = op.getAttrOfType<ArrayAttr>(name); list && texts.empty())
      for (Attribute entry : list) {
        std::string text;
        llvm::raw_string_ostream out(text);
        if (auto said = dyn_cast<StringAttr>(entry))
          out << said.getValue();
        else
          out << entry;
        texts.push_back(std::move(text));
      }
  return texts;
}

/// Refuses launches of functions that do not exist, or that take other arguments; `count` says how many one takes.
static llvm::Error checkLaunches(const Artifact &artifact, function_ref<std::optional<size_t>(StringRef name)> count) {
  for (const Artifact::Launch &launch : artifact.launches) {
    std::optional<size_t> taken = count(launch.entry);
    if (!taken)
      return llvm::createStringError("'" + recordName + "' launches '" + launch.entry + "', which is not defined");
    size_t expected = artifact.args.size() + (launch.grid.empty() ? 2 : 0);
    if (*taken != expected)
      return llvm::createStringError("'" + launch.entry + "' takes " + llvm::Twine(*taken) + " arguments; '" +
                                     recordName + "' lists " + llvm::Twine(expected));
  }
  return llvm::Error::success();
}

llvm::Expected<Artifact> lacis::artifactFromModule(ModuleOp module, StringRef target) {
  auto record = module->getAttrOfType<DictionaryAttr>(recordName);
  if (!record)
    return llvm::createStringError("the module has no '" + recordName +
                                   "' attribute, which tells a launcher about arguments and launches");
  json::Value value = toJson(record);
  json::Object &object = *value.getAsObject();
  object["format_version"] = Artifact::currentVersion;
  object["target"] = target;
  object["kind"] = noCodeYet;
  object["steps"] = textsOf(module, "lacis.steps");
  object["remarks"] = textsOf(module, "lacis.remarks"); // why rules of the default schedule did not apply
  std::string text;
  llvm::raw_string_ostream(text) << value;
  llvm::Expected<Artifact> artifact = Artifact::parseHeader(text);
  if (!artifact)
    return artifact;
  llvm::Error error = checkLaunches(*artifact, [&](StringRef name) -> std::optional<size_t> {
    auto function = module.lookupSymbol<FunctionOpInterface>(name);
    return function && !function.isExternal() ? std::optional<size_t>(function.getNumArguments()) : std::nullopt;
  });
  if (error)
    return error;
  return artifact;
}

void lacis::attachArtifact(llvm::Module &module, const Artifact &artifact) {
  llvm::LLVMContext &context = module.getContext();
  llvm::NamedMDNode *node = module.getOrInsertNamedMetadata(recordName);
  node->clearOperands();
  node->addOperand(llvm::MDNode::get(context, llvm::MDString::get(context, artifact.header())));
}

llvm::Expected<Artifact> lacis::artifactFromLLVM(const llvm::Module &module, StringRef target) {
  const llvm::NamedMDNode *node = module.getNamedMetadata(recordName);
  if (!node || node->getNumOperands() != 1 || node->getOperand(0)->getNumOperands() != 1)
    return llvm::createStringError("the LLVM IR has no '!" + recordName + "'");
  auto *text = llvm::dyn_cast_or_null<llvm::MDString>(node->getOperand(0)->getOperand(0).get());
  if (!text)
    return llvm::createStringError("'!" + recordName + "' is no text");
  llvm::Expected<Artifact> artifact = Artifact::parseHeader(text->getString());
  if (!artifact)
    return artifact.takeError();
  if (artifact->target != target)
    return llvm::createStringError("the LLVM IR was made for target '" + artifact->target + "', not for '" + target +
                                   "'");
  llvm::Error error = checkLaunches(*artifact, [&](StringRef name) -> std::optional<size_t> {
    const llvm::Function *function = module.getFunction(name);
    return function && !function->isDeclaration() ? std::optional<size_t>(function->arg_size()) : std::nullopt;
  });
  if (error)
    return error;
  return artifact;
}
