// SPDX-License-Identifier: Apache-2.0
/// \file
/// NVIDIA GPUs: PTX through LLVM, a cubin where an assembler is given.
#include "../ConvertToLLVM.h"
#include "../LLVMCode.h"
#include "Ptxas.h"
#include "lacis/Target/Target.h"

#include "mlir/Conversion/GPUCommon/GPUCommonPass.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace lacis;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace {

class CUDA final : public Target {
public:
  CUDA(StringRef name, StringRef chip, std::unique_ptr<llvm::TargetMachine> machine, const CodeOptions &options)
      : Target(name, options), machine(std::move(machine)), chip(chip) {}

  static Expected<std::unique_ptr<Target>> create(StringRef name, StringRef arch, const CodeOptions &options);

  StringRef getAssemblyStage() const override { return "ptx"; }
  void registerDialects(mlir::DialectRegistry &registry) const override;
  void addPasses(mlir::OpPassManager &pm) const override;
  Error optimise(llvm::Module &module) const override;
  Expected<Code> emit(llvm::Module &module, bool assembly) const override;
  Apart makesApart() const override { return Apart::Uncalled; }
  Expected<Code> join(std::vector<Code> pieces) const override;

private:
  const std::unique_ptr<llvm::TargetMachine> machine;
  const std::string chip;
};

} // namespace

static void initialiseOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

/// The first architecture that the assemblers of today know.
static constexpr unsigned kOldest = 75;

/// The number in sm_90a; 0 where there is none.
static unsigned architectureNumber(StringRef chip) {
  unsigned number = 0;
  if (!chip.consume_front("sm_") || chip.consumeInteger(10, number))
    return 0;
  return chip.empty() || chip == "a" || chip == "f" ? number : 0;
}

/// A PTX version that every driver takes under which PyTorch runs on that architecture; some are known from a later one
/// on.
static StringRef ptxFeature(unsigned number) {
  switch (number) {
  case 88:
  case 110:
    return "+ptx90";
  case 103:
  case 121:
    return "+ptx88";
  default:
    return number < 100 ? "+ptx83" : "+ptx87";
  }
}

Expected<std::unique_ptr<Target>> CUDA::create(StringRef name, StringRef arch, const CodeOptions &options) {
  initialiseOnce();
  unsigned number = architectureNumber(arch);
  if (number < kOldest)
    return llvm::createStringError("target '" + name +
                                   "' names no architecture from sm_75 up; write 'cuda:sm_80', 'cuda:sm_90a', ...");
  StringRef features = options.features.empty() ? ptxFeature(number) : StringRef(options.features);
  auto machine = createMachine(llvm::Triple("nvptx64-nvidia-cuda"), arch, features, options.optLevel);
  if (!machine)
    return machine.takeError();
  return std::make_unique<CUDA>(name, arch, std::move(*machine), options);
}

void CUDA::registerDialects(mlir::DialectRegistry &registry) const {
  registerCommonDialects(registry);
  registry.insert<mlir::gpu::GPUDialect, mlir::NVVM::NVVMDialect>();
  mlir::registerGPUDialectTranslation(registry);
  mlir::registerNVVMDialectTranslation(registry);
}

//===- operations ---------------------------------------------------------===//

namespace {

/// `fastmath<afn>` on f32, where the processor has an instruction that flushes what is smaller than a normal number.
template <typename Op> bool isApproximate(Op op) {
  return op.getType().isF32() && bitEnumContainsAll(op.getFastmath(), mlir::arith::FastMathFlags::afn);
}

struct ApproximateExp2ToNVVM : mlir::ConvertOpToLLVMPattern<mlir::math::Exp2Op> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  llvm::LogicalResult matchAndRewrite(mlir::math::Exp2Op op, OpAdaptor operands,
                                      mlir::ConversionPatternRewriter &rewriter) const override {
    if (!isApproximate(op))
      return mlir::failure();
    rewriter.replaceOpWithNewOp<mlir::LLVM::CallIntrinsicOp>(
        op, op.getType(), rewriter.getStringAttr("llvm.nvvm.ex2.approx.ftz"), operands.getOperand());
    return mlir::success();
  }
};

struct ApproximateDivisionToNVVM : mlir::ConvertOpToLLVMPattern<mlir::arith::DivFOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  llvm::LogicalResult matchAndRewrite(mlir::arith::DivFOp op, OpAdaptor operands,
                                      mlir::ConversionPatternRewriter &rewriter) const override {
    if (!isApproximate(op))
      return mlir::failure();
    mlir::Value inverse =
        mlir::NVVM::RcpApproxFtzF32Op::create(rewriter, op.getLoc(), op.getType(), operands.getRhs());
    rewriter.replaceOpWithNewOp<mlir::LLVM::FMulOp>(op, operands.getLhs(), inverse);
    return mlir::success();
  }
};

} // namespace

static void populateGpu(mlir::LLVMTypeConverter &converter, mlir::RewritePatternSet &patterns,
                        mlir::ConversionTarget &target) {
  constexpr unsigned beforeOthers = 3;
  patterns.add<ApproximateExp2ToNVVM, ApproximateDivisionToNVVM>(converter, beforeOthers);
  mlir::configureGpuToNVVMTypeConverter(converter);
  mlir::populateGpuToNVVMConversionPatterns(converter, patterns);
  target.addIllegalDialect<mlir::gpu::GPUDialect>();
  target.addLegalDialect<mlir::NVVM::NVVMDialect>();
}

namespace {

/// Says which functions are launched, and with how many threads, in NVVM's words.
class MarkKernels : public mlir::PassWrapper<MarkKernels, mlir::OperationPass<mlir::LLVM::LLVMFuncOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MarkKernels)
  StringRef getName() const override { return "lacis-mark-kernels"; }

  void getDependentDialects(mlir::DialectRegistry &registry) const override {
    registry.insert<mlir::NVVM::NVVMDialect>(); // the conversion before this pass makes its operations, too
  }

  void runOnOperation() override {
    mlir::LLVM::LLVMFuncOp function = getOperation();
    if (!function->removeAttr("lacis.gpu_kernel"))
      return;
    auto block = llvm::dyn_cast_or_null<mlir::DenseI64ArrayAttr>(function->removeAttr("lacis.block"));
    if (!block || block.size() != 3) {
      function.emitError("a GPU kernel needs 'lacis.block', the three extents of its blocks");
      return signalPassFailure();
    }
    mlir::Builder builder(&getContext());
    llvm::SmallVector<int32_t> extents(block.asArrayRef().begin(), block.asArrayRef().end());
    function->setAttr(mlir::NVVM::NVVMDialect::getKernelFuncAttrName(), builder.getUnitAttr());
    function->setAttr(mlir::NVVM::NVVMDialect::getMaxntidAttrName(), builder.getDenseI32ArrayAttr(extents));
    if (auto blocks = llvm::dyn_cast_or_null<mlir::IntegerAttr>(function->removeAttr("lacis.blocks_per_processor")))
      function->setAttr(mlir::NVVM::NVVMDialect::getMinctasmAttrName(), builder.getI32IntegerAttr(blocks.getInt()));
    for (unsigned n = 0; n < function.getNumArguments(); ++n) // a value that the kernel only reads, where it lies
      if (function.getArgAttr(n, "llvm.byval"))
        function.setArgAttr(n, mlir::NVVM::NVVMDialect::getGridConstantAttrName(), builder.getUnitAttr());
  }
};

} // namespace

namespace {

/// The products of a warp that steps ask for have no instruction before sm_80.
class RefuseProducts : public mlir::PassWrapper<RefuseProducts, mlir::OperationPass<mlir::LLVM::LLVMFuncOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RefuseProducts)
  StringRef getName() const override { return "lacis-refuse-products"; }

  void runOnOperation() override {
    getOperation().walk([&](mlir::NVVM::MmaOp product) {
      product.emitError("tensorize: 'mma' needs sm_80 or later; without a kind, tiles become plain loops here");
      signalPassFailure();
      return mlir::WalkResult::interrupt();
    });
  }
};

} // namespace

void CUDA::addPasses(mlir::OpPassManager &pm) const {
  addToLLVMPasses(pm, HalfTypes::Native, ApproximateExp2::Native, populateGpu);
  pm.addNestedPass<mlir::LLVM::LLVMFuncOp>(std::make_unique<MarkKernels>());
  if (architectureNumber(chip) < 80)
    pm.addNestedPass<mlir::LLVM::LLVMFuncOp>(std::make_unique<RefuseProducts>());
}

//===- code ---------------------------------------------------------------===//

Error CUDA::optimise(llvm::Module &module) const {
  return optimiseModule(module, *machine, options.optLevel);
}

/// Refuses PTX that calls a function which it does not contain.
static Error checkExterns(const llvm::Module &module) {
  for (const llvm::Function &function : module)
    if (function.isDeclaration() && !function.isIntrinsic() && !function.use_empty())
      return llvm::createStringError("the kernel calls '" + function.getName() + "', which no library of Lacis has");
  return Error::success();
}

Expected<Code> CUDA::emit(llvm::Module &module, bool assembly) const {
  if (Error error = checkExterns(module))
    return error;
  Expected<std::string> ptx = emitModule(module, *machine, llvm::CodeGenFileType::AssemblyFile);
  if (!ptx)
    return ptx.takeError();
  Code code;
  code.kind = "ptx";
  code.assembly = std::move(*ptx);
  return code;
}

/// Functions of several texts in one. What stands around functions, which is the version and what all may use, is a
/// statement of one line each, and there once.
static std::string joinTexts(llvm::ArrayRef<Code> pieces) {
  static constexpr StringRef headers[] = {"//", ".version", ".target", ".address_size"};
  llvm::StringSet<> around;
  std::string whole;
  llvm::raw_string_ostream out(whole);
  for (const Code &piece : pieces) {
    size_t opened = 0, closed = 0;
    for (StringRef line : llvm::split(piece.assembly, '\n')) {
      bool isHeader = llvm::any_of(headers, [&](StringRef word) { return line.starts_with(word); });
      bool isAround = opened == closed && (isHeader || (line.starts_with(".") && line.ends_with(";")));
      if (!isAround || around.insert(line).second)
        out << line << '\n';
      opened += line.count('{');
      closed += line.count('}');
    }
  }
  return whole;
}

Expected<Code> CUDA::join(std::vector<Code> pieces) const {
  Code code;
  code.kind = pieces.front().kind;
  code.assembly = pieces.size() == 1 ? std::move(pieces.front().assembly) : joinTexts(pieces);
  if (options.ptxas.empty()) {
    code.bytes = code.assembly;
    return code;
  }
  PtxasRequest request{options.ptxas, chip, options.ptxasOptions, options.optLevel, options.checkPtxas};
  Expected<PtxasResult> assembled = assemblePtx(code.assembly, request);
  if (!assembled)
    return assembled.takeError();
  code.kind = "cubin";
  code.bytes = std::move(assembled->cubin);
  code.log = std::move(assembled->log);
  return code;
}

static const TargetRegistration registration("cuda", CUDA::create);
