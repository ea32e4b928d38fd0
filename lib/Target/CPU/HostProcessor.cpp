// SPDX-License-Identifier: Apache-2.0
/// \file
/// The processor that runs this process, in LLVM's words.
#include "lacis/Target/CPU/HostProcessor.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/TargetParser/Host.h"

const std::string &lacis::hostName() {
  static const std::string name = llvm::sys::getHostCPUName().str();
  return name;
}

const std::string &lacis::hostFeatures() {
  static const std::string features = [] {
    std::vector<std::string> words;
    for (const auto &feature : llvm::sys::getHostCPUFeatures())
      words.push_back((feature.second ? "+" : "-") + feature.first().str());
    llvm::sort(words, [](llvm::StringRef a, llvm::StringRef b) { return a.drop_front() < b.drop_front(); });
    return llvm::join(words, ",");
  }();
  return features;
}
