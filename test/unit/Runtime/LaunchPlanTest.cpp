// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a launch plan makes of an artifact and of tensors.
#include "lacis/Runtime/LaunchPlan.h"
#include "lacis/Target/Artifact.h"
#include "gtest/gtest.h"

using namespace lacis;
using namespace lacis::runtime;

namespace {

Artifact::Argument argument(const char *kind, int64_t operand, int64_t dim = 0, const char *name = "") {
  Artifact::Argument arg;
  arg.kind = kind;
  arg.operand = operand;
  arg.dim = dim;
  arg.name = name;
  return arg;
}

Artifact::Tensor tensor(int64_t operand, const char *name, std::vector<Size> dims) {
  Artifact::Tensor result;
  result.operand = operand;
  result.name = name;
  result.dtype = "f32";
  result.shaped = true;
  result.dims = std::move(dims);
  return result;
}

/// y[b, i] = sum over j of w[i, j] x[b, j], where operand 1 is the packed one.
Artifact linear() {
  Artifact artifact;
  artifact.target = "cpu";
  artifact.kind = "object";
  artifact.args = {argument("operand", 0),      argument("storage", 1, 0, "values"), argument("output", 0),
                   argument("dim", 0, 0),       argument("dim", 1, 0),               argument("stride", 0, 1),
                   argument("workspace", 0, 0), argument("operand", 2)};
  artifact.sizes = {{"b", 1, -1}, {"i", 2, -1}, {"j", 1, -1}, {"", 1, -1}};
  auto size = Size::argument;
  artifact.tensors = {tensor(0, "", {size(0), size(2)}), tensor(1, "", {size(1), size(2)}),
                      tensor(1, "values", {size(3)}), tensor(2, "", {size(1)}), tensor(-1, "", {size(0), size(1)})};
  artifact.output = {"f32", {size(3), size(4)}};
  artifact.workspace = {Size::product({Size::ceilDiv(size(3), 32), size(4), Size::constant(8)})};
  Artifact::Launch launch;
  launch.entry = "k";
  launch.units = Size::ceilDiv(size(4), 16);
  artifact.launches = {launch};
  return artifact;
}

struct Tensors {
  std::vector<int64_t> xSizes{33, 10}, xStrides{10, 1}, valueSizes{7}, valueStrides{1}, ySizes{33, 20},
      yStrides{20, 1}, biasSizes{20}, biasStrides{1}, packed{20, 10};
  float x[330], values[7], y[660], bias[20];
  lacis_tensor_view operands[2], storage[1], output;
  lacis_launch_args args = {};

  static lacis_tensor_view view(void *data, std::vector<int64_t> &sizes, std::vector<int64_t> &strides) {
    return {data, sizes.data(), strides.data(), int32_t(sizes.size()), LACIS_F32, LACIS_DEVICE_HOST};
  }
  lacis_launch_args &get() {
    operands[0] = view(x, xSizes, xStrides);
    operands[1] = view(bias, biasSizes, biasStrides);
    storage[0] = view(values, valueSizes, valueStrides);
    output = view(y, ySizes, yStrides);
    args.operands = operands;
    args.num_operands = 2;
    args.storage = storage;
    args.num_storage = 1;
    args.packed_sizes = packed.data();
    args.num_packed_sizes = 2;
    args.output = &output;
    return args;
  }
};

uint64_t address(const void *pointer) { return reinterpret_cast<uint64_t>(pointer); }

std::string text(llvm::Error error) { return llvm::toString(std::move(error)); }

TEST(LaunchPlan, EvaluatesEveryArgument) {
  LaunchPlan plan = llvm::cantFail(LaunchPlan::create(linear()));
  Tensors tensors;
  lacis_launch_args &args = tensors.get();
  ASSERT_EQ(text(plan.check(args)), "");
  ArgumentValues values;
  plan.evaluate(args, values);
  plan.placeWorkspaces(&tensors, plan.workspaceLayout(values), values);
  ArgumentValues expected = {address(tensors.x), address(tensors.values), address(tensors.y), 33, 20, 1,
                             address(&tensors),  address(tensors.bias)};
  EXPECT_EQ(values, expected);
  EXPECT_EQ(text(plan.checkValues(args, values)), "");
}

TEST(LaunchPlan, WorkspacesShareOnePieceOfMemory) {
  Artifact artifact = linear();
  artifact.workspace.push_back(Size::constant(100));
  artifact.args.push_back(argument("workspace", 0));
  artifact.args.back().index = 1;
  LaunchPlan plan = llvm::cantFail(LaunchPlan::create(artifact));
  Tensors tensors;
  ArgumentValues values;
  plan.evaluate(tensors.get(), values);
  WorkspaceLayout layout = plan.workspaceLayout(values);
  EXPECT_EQ(layout.offsets[1], 512) << "2 * 4 * 20 * 2 bytes, and on to the next multiple of 256";
  EXPECT_EQ(layout.bytes, 768);
  plan.placeWorkspaces(&tensors, layout, values);
  EXPECT_EQ(values[8], address(&tensors) + 512);
}

TEST(LaunchPlan, SmallProblemsStayOnOneThread) {
  LaunchPlan plan = llvm::cantFail(LaunchPlan::create(linear()));
  Tensors tensors;
  lacis_launch_args &args = tensors.get();
  ArgumentValues values;
  plan.evaluate(args, values);
  LaunchExtent extent = plan.extent(0, plan.steps(args), values);
  EXPECT_EQ(extent.units, 2);
  EXPECT_EQ(extent.grain, 2);
  EXPECT_FALSE(extent.empty());
}

TEST(LaunchPlan, EveryEntryMeetsEveryToken) {
  LaunchPlan plan = llvm::cantFail(LaunchPlan::create(linear()));
  Tensors tensors;
  int64_t elements = (330 + 20 + 660) / 16;
  EXPECT_EQ(plan.steps(tensors.get()), 7 * 3 + elements) << "33 tokens are three vectors";
  tensors.valueSizes[0] = 8000;
  ArgumentValues values;
  plan.evaluate(tensors.get(), values);
  EXPECT_EQ(plan.steps(tensors.get()), 8000 * 3 + elements);
  EXPECT_EQ(plan.extent(0, plan.steps(tensors.get()), values).grain, 1) << "of two units";
}

TEST(LaunchPlan, EmptyProblemsLaunchNothing) {
  LaunchPlan plan = llvm::cantFail(LaunchPlan::create(linear()));
  Tensors tensors;
  tensors.packed[0] = tensors.ySizes[1] = tensors.biasSizes[0] = 0;
  lacis_launch_args &args = tensors.get();
  ArgumentValues values;
  plan.evaluate(args, values);
  EXPECT_TRUE(plan.extent(0, plan.steps(args), values).empty());
}

TEST(LaunchPlan, LaunchesForOtherSizesAreEmpty) {
  Artifact artifact = linear();
  artifact.launches.push_back(artifact.launches[0]);
  auto where = [](Size &size, int64_t above, int64_t upto) {
    size = Size::product({Size::within(Size::argument(3), above, upto), size});
  };
  where(*artifact.launches[0].units, -1, 32);
  where(*artifact.launches[1].units, 32, -1);
  where(artifact.workspace[0], -1, 32);
  LaunchPlan plan = llvm::cantFail(LaunchPlan::create(artifact));
  Tensors tensors;
  lacis_launch_args &args = tensors.get();
  ArgumentValues values;
  plan.evaluate(args, values);
  EXPECT_TRUE(plan.extent(0, plan.steps(args), values).empty());
  EXPECT_EQ(plan.extent(1, plan.steps(args), values).units, 2);
  EXPECT_EQ(plan.workspaceLayout(values).bytes, 0);
}

/// `linear`, which reads operand 0 in boxes; a work list of 34 positions, the tokens and one, is its grid.
Artifact boxed() {
  Artifact artifact = linear();
  Artifact::Argument map;
  map.kind = "tensor_map";
  artifact.args.push_back(map);
  Artifact::TensorMap box;
  box.pointer = 0;
  box.shape = {Size::argument(4), Size::product({Size::argument(3), Size::constant(2)})};
  box.box = {64, 256};
  box.swizzle = 128;
  box.dtype = "bf16";
  artifact.tensorMaps = {box};
  artifact.launches[0].units.reset();
  artifact.launches[0].grid = {Size::sum(Size::argument(3), -1), {}, {}};
  artifact.launches[0].block = {384, 1, 1};
  return artifact;
}

TEST(LaunchPlan, DescribesMatricesForTheCopyEngine) {
  LaunchPlan plan = llvm::cantFail(LaunchPlan::create(boxed()));
  Tensors tensors;
  lacis_launch_args &args = tensors.get();
  ArgumentValues values;
  plan.evaluate(args, values);
  EXPECT_EQ(values.back(), 0u);
  auto maps = plan.tensorMaps(args, values);
  ASSERT_EQ(maps.size(), 1u);
  EXPECT_EQ(maps[0].argument, 8u);
  EXPECT_EQ(maps[0].pointer, address(tensors.x));
  EXPECT_EQ(maps[0].shape[0], 20);
  EXPECT_EQ(maps[0].shape[1], 66);
  EXPECT_EQ(maps[0].dtype, LACIS_BF16);
  EXPECT_TRUE(maps[0].strides.empty());
  EXPECT_EQ(plan.extent(0, plan.steps(args), values).grid[0], 32);
}

TEST(LaunchPlan, MapsTakeTheStridesOfTheirTensor) {
  Artifact artifact = boxed();
  artifact.args[0].strided = true;
  LaunchPlan plan = llvm::cantFail(LaunchPlan::create(artifact));
  ASSERT_TRUE(plan.isStrided(0));
  Tensors tensors;
  tensors.xStrides = {64, 1};
  lacis_launch_args &args = tensors.get();
  EXPECT_EQ(text(plan.check(args)), "");
  ArgumentValues values;
  plan.evaluate(args, values);
  EXPECT_EQ(plan.tensorMaps(args, values)[0].strides, (llvm::SmallVector<int64_t, 3>{64}));
  tensors.xStrides = {62, 1};
  EXPECT_EQ(text(plan.check(args)), "operand 0: expected rows of neighbours that begin at multiples of 16 bytes");
}

/// What a plan says of an artifact that `change` has made wrong.
template <typename Change> std::string objection(Change change) {
  Artifact artifact = linear();
  change(artifact);
  EXPECT_EQ(text(artifact.verify()), "");
  llvm::Expected<LaunchPlan> plan = LaunchPlan::create(artifact);
  std::string all = plan ? "" : text(plan.takeError());
  llvm::StringRef rest = all;
  EXPECT_TRUE(rest.empty() || rest.consume_front("malformed artifact: ")) << all;
  return rest.str();
}

TEST(LaunchPlan, RefusesRecordsThatContradictThemselves) {
  EXPECT_EQ(objection([](Artifact &) {}), "");
  EXPECT_EQ(objection([](Artifact &a) { a.output.dtype = "f8"; }), "output dtype 'f8'");
  EXPECT_EQ(objection([](Artifact &a) { a.tensors[0].dtype = "f8"; }), "dtype 'f8'");
  EXPECT_EQ(objection([](Artifact &a) { a.args[7] = argument("storage", 2, 0, "values"); }), "storage of two operands");
  EXPECT_EQ(objection([](Artifact &a) { a.args[5] = argument("stride", 1, 0); }),
            "only sizes of the packed operand exist");
  EXPECT_EQ(objection([](Artifact &a) { a.args[7] = argument("bytes", 0), a.args[7].index = 3; }),
            "bytes of argument 3, which is no array");
  EXPECT_EQ(objection([](Artifact &a) { a.tensors[2].name = "pos1"; }), "an array 'pos1' that no argument reads");
  EXPECT_EQ(objection([](Artifact &a) { a.tensors[0].dims.pop_back(); }), "operand 0 of rank 1");
  EXPECT_EQ(objection([](Artifact &a) { a.tensors[2].dims = {Size::ceilDiv(Size::argument(3), 2)}; }), "no dimension tells the size ''");
}

/// What a plan says of tensors that `change` has made wrong.
template <typename Change> std::string refusal(Change change, Artifact artifact = linear()) {
  LaunchPlan plan = llvm::cantFail(LaunchPlan::create(artifact));
  Tensors tensors;
  lacis_launch_args &args = tensors.get();
  change(tensors);
  return text(plan.check(args));
}

TEST(LaunchPlan, RefusesSizesThatContradictEachOther) {
  EXPECT_EQ(refusal([](Tensors &t) { t.xSizes[1] = 11, t.xStrides[0] = 11; }),
            "operand 0: expected size 10 in dimension 1 ('j', as in dimension 1 of operand 1), got 11");
  EXPECT_EQ(refusal([](Tensors &t) { t.biasSizes[0] = 19; }),
            "operand 2: expected size 20 in dimension 0 ('i', as in dimension 0 of operand 1), got 19");
  EXPECT_EQ(refusal([](Tensors &t) { t.ySizes[0] = 34; }),
            "output: expected size 33 in dimension 0 ('b', as in dimension 0 of operand 0), got 34");
}

TEST(LaunchPlan, RefusesSizesOfAnotherClass) {
  EXPECT_EQ(refusal([](Tensors &t) { t.packed[0] = 21; }),
            "operand 1: expected a multiple of 2 in dimension 0 ('i'), got 21");
  Artifact artifact = linear();
  artifact.sizes[2].value = 12;
  EXPECT_EQ(refusal([](Tensors &) {}, artifact), "operand 1: expected 12 in dimension 1 ('j'), got 10");
  EXPECT_EQ(refusal([](Tensors &t) { t.packed[0] = -2; }), "a negative size of the packed operand: -2");
}

/// An array with one element for each block of four rows, and one more.
TEST(LaunchPlan, RefusesStorageOfAnotherLength) {
  Artifact artifact = linear();
  artifact.tensors[2].dims = {Size::sum(Size::ceilDiv(Size::argument(1), 4), 1)};
  artifact.sizes.pop_back();
  EXPECT_EQ(refusal([](Tensors &t) { t.valueSizes[0] = 6; }, artifact), "");
  EXPECT_EQ(refusal([](Tensors &) {}, artifact), "values: expected size 6 in dimension 0, got 7");
}

TEST(LaunchPlan, RefusesFewerValuesThanEntries) {
  Artifact artifact = linear();
  artifact.sizes[2].most = 3;
  EXPECT_EQ(refusal([](Tensors &t) { t.valueSizes[0] = 10; }, artifact), "");
  EXPECT_EQ(refusal([](Tensors &) {}, artifact),
            "values: expected at least size 10 in dimension 0 (as operand 1 has entries), got 7");
}

TEST(LaunchPlan, RefusesTensorsOfAnotherKind) {
  EXPECT_EQ(refusal([](Tensors &) {}), "");
  EXPECT_EQ(refusal([](Tensors &t) { t.args.num_operands = 1; }), "expected 2 dense operands, got 1");
  EXPECT_EQ(refusal([](Tensors &t) { t.args.num_storage = 0; }), "expected 1 storage tensors (values), got 0");
  EXPECT_EQ(refusal([](Tensors &t) { t.args.num_packed_sizes = 1; }),
            "expected the 2 sizes of the packed operand, got 1");
  EXPECT_EQ(refusal([](Tensors &t) { t.operands[1].device = 0; }),
            "operand 2: the tensors of a launch lie on different devices");
  EXPECT_EQ(refusal([](Tensors &t) { t.operands[0].dtype = LACIS_F16; }), "operand 0: expected dtype f32, got f16");
  EXPECT_EQ(refusal([](Tensors &t) { t.operands[0].ndim = 1; }), "operand 0: expected 2 dimensions, got 1");
  EXPECT_EQ(refusal([](Tensors &t) { t.xStrides = {1, 33}; }), "operand 0: expected a contiguous tensor");
}

/// `linear`, whose record tells no shapes.
Artifact shapeless() {
  Artifact artifact = linear();
  artifact.tensors.clear();
  artifact.sizes.clear();
  return artifact;
}

TEST(LaunchPlan, RefusesTensorsWithoutADimensionThatItReads) {
  EXPECT_EQ(refusal([](Tensors &t) { t.operands[0].ndim = 1; }, shapeless()),
            "operand 0: expected at least 2 dimensions, got 1");
}

TEST(LaunchPlan, RefusesAFaultThatNoKernelWrites) {
  LaunchPlan plan = llvm::cantFail(LaunchPlan::create(linear()));
  Tensors tensors;
  EXPECT_EQ(text(plan.explainFault(~uint64_t(0) - 1, tensors.get(), {})),
            "the fault word of a checked kernel holds what no kernel writes");
}

TEST(LaunchPlan, RefusesSizesThatItCannotCount) {
  LaunchPlan plan = llvm::cantFail(LaunchPlan::create(shapeless()));
  auto refusal = [&](auto change) {
    Tensors tensors;
    lacis_launch_args &args = tensors.get();
    change(tensors);
    ArgumentValues values;
    plan.evaluate(args, values);
    return text(plan.checkValues(args, values));
  };
  constexpr int64_t many = int64_t(1) << 31;
  EXPECT_EQ(refusal([](Tensors &) {}), "");
  EXPECT_EQ(refusal([](Tensors &t) { t.ySizes[0] = 34; }), "output: expected shape [33, 20], got [34, 20]");
  EXPECT_EQ(refusal([](Tensors &t) { t.packed[0] = many; }),
            "a dimension of 2147483648 needs a kernel with 64-bit indices");
  EXPECT_EQ(refusal([](Tensors &t) { t.valueSizes[0] = many; }),
            "values: 2147483648 slots need a kernel with 64-bit indices");
  static const int64_t blocks[] = {many / 16, 4, 4};
  EXPECT_EQ(refusal([](Tensors &t) { t.storage[0].ndim = 3, t.storage[0].sizes = blocks; }),
            "values: 2147483648 slots need a kernel with 64-bit indices")
      << "the elements of stored blocks are counted";
  Artifact heads = shapeless();
  heads.tensors = {tensor(1, "values", {Size::argument(0), Size::argument(1)})};
  heads.tensors[0].copies = 1;
  heads.sizes = {{"h", 1, -1}, {"", 1, -1}};
  plan = llvm::cantFail(LaunchPlan::create(heads));
  static const int64_t copies[] = {8, many / 4};
  EXPECT_EQ(refusal([](Tensors &t) { t.storage[0].ndim = 2, t.storage[0].sizes = copies; }), "")
      << "positions run through one copy of the values";
}

} // namespace
