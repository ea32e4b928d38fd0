// SPDX-License-Identifier: Apache-2.0
/// \file
/// The interface of schedule steps, and the default schedules that targets register.
#include "lacis/Dialect/Lacis/IR/StepInterface.h"

#include "llvm/ADT/StringMap.h"

using namespace lacis;

#include "lacis/Dialect/Lacis/IR/StepInterface.cpp.inc"

static llvm::StringMap<CompleteFn> &schedules() {
  static llvm::StringMap<CompleteFn> map;
  return map;
}

void lacis::registerDefaultSchedule(llvm::StringRef family, CompleteFn complete) { schedules()[family] = complete; }

CompleteFn lacis::lookupDefaultSchedule(llvm::StringRef family) { return schedules().lookup(family); }
