// SPDX-License-Identifier: Apache-2.0
/// \file
/// Runs NVIDIA's assembler, a program of its own.
#include "Ptxas.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace lacis;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace {

/// A file of the temporary folder that goes with this object.
class TemporaryFile {
public:
  static Expected<TemporaryFile> create(StringRef suffix, StringRef content = "") {
    TemporaryFile file;
    int descriptor = -1;
    if (std::error_code code = llvm::sys::fs::createTemporaryFile("lacis", suffix, descriptor, file.path))
      return llvm::createStringError(code, "cannot create a temporary file");
    file.remover = std::make_unique<llvm::FileRemover>(file.path);
    llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
    stream << content;
    stream.close();
    if (stream.has_error()) {
      std::error_code code = stream.error();
      stream.clear_error();
      return llvm::createStringError(code, "cannot write " + file.path);
    }
    return file;
  }

  StringRef name() const { return path; }

  std::string read() const {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    return buffer ? (*buffer)->getBuffer().str() : "";
  }

private:
  llvm::SmallString<128> path;
  std::unique_ptr<llvm::FileRemover> remover;
};

} // namespace

std::string lacis::findPtxasProblem(StringRef log) {
  llvm::SmallVector<StringRef> lines;
  log.split(lines, '\n');
  for (StringRef line : lines) {
    size_t code = line.find("C75");
    if (code != StringRef::npos && line.size() >= code + 5 && llvm::isDigit(line[code + 3]) &&
        llvm::isDigit(line[code + 4]))
      return line.trim().str();
    size_t spill = line.find(" bytes spill");
    if (spill == StringRef::npos)
      continue;
    StringRef number = line.take_front(spill).rsplit(' ').second;
    if (number != "0")
      return line.trim().str();
  }
  return "";
}

static Error execute(const PtxasRequest &request, const TemporaryFile &input, const TemporaryFile &output,
                     const TemporaryFile &log) {
  std::string arch = "-arch=" + request.chip;
  std::string level = "-O" + std::to_string(request.optLevel);
  llvm::SmallVector<StringRef> arguments{request.program, arch, level, "-v", input.name(), "-o", output.name()};
  llvm::SmallVector<StringRef> words;
  StringRef(request.words).split(words, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  arguments.append(words);
  std::optional<StringRef> redirects[] = {StringRef(""), log.name(), log.name()};
  std::string message;
  int status = llvm::sys::ExecuteAndWait(request.program, arguments, std::nullopt, redirects,
                                         /*SecondsToWait=*/300, /*MemoryLimit=*/0, &message);
  if (status == 0)
    return Error::success();
  std::string text = log.read();
  return llvm::createStringError(request.program + " failed (" + std::to_string(status) +
                                 "): " + (message.empty() ? text : message + " " + text));
}

Expected<PtxasResult> lacis::assemblePtx(StringRef ptx, const PtxasRequest &request) {
  Expected<TemporaryFile> input = TemporaryFile::create("ptx", ptx);
  if (!input)
    return input.takeError();
  Expected<TemporaryFile> output = TemporaryFile::create("cubin");
  if (!output)
    return output.takeError();
  Expected<TemporaryFile> log = TemporaryFile::create("log");
  if (!log)
    return log.takeError();
  if (Error error = execute(request, *input, *output, *log))
    return error;
  PtxasResult result{output->read(), log->read()};
  if (request.check)
    if (std::string problem = findPtxasProblem(result.log); !problem.empty())
      return llvm::createStringError("ptxas: " + problem);
  if (result.cubin.empty())
    return llvm::createStringError(request.program + " wrote nothing");
  return result;
}
