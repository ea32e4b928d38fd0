// SPDX-License-Identifier: Apache-2.0
/// \file
/// One call instruction sequence per bucket of argument counts.
///
/// Every argument is one general-purpose word, which both supported calling conventions (System V x86-64, AAPCS64)
/// pass in the same registers and stack slots whatever its type; the caller pops the stack, so words beyond the
/// ones that the callee reads are harmless.
#include "HostCall.h"
#include <cstring>
#include <utility>

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "HostCall.cpp: state how this machine's calling convention passes words before allowing it"
#endif

using namespace lacis::runtime;

template <size_t> using Word = uint64_t;

template <size_t... Is>
static void callWords(HostFunction function, const uint64_t *words, std::index_sequence<Is...>) {
  reinterpret_cast<void (*)(Word<Is>...)>(function)(words[Is]...);
}

template <size_t Count>
static void callBucket(HostFunction function, const ArgumentValues &values, int64_t begin, int64_t end) {
  uint64_t words[Count] = {};
  std::memcpy(words, values.data(), values.size() * sizeof(uint64_t));
  words[values.size()] = uint64_t(begin);
  words[values.size() + 1] = uint64_t(end);
  callWords(function, words, std::make_index_sequence<Count>());
}

HostRange::HostRange(HostFunction function, const ArgumentValues &values) : function(function), values(values) {}

void HostRange::call(int64_t begin, int64_t end) const {
  size_t count = values.size() + 2;
  if (count <= 16)
    return callBucket<16>(function, values, begin, end);
  if (count <= 32)
    return callBucket<32>(function, values, begin, end);
  if (count <= 64)
    return callBucket<64>(function, values, begin, end);
  if (count <= 128)
    return callBucket<128>(function, values, begin, end);
  callBucket<maxHostArguments + 2>(function, values, begin, end);
}
