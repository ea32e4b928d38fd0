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

/// y[b, i] = sum over j of w[i, j] x[b, j], where operand 1 is the packed one.
Artifact linear() {
  Artifact artifact;
  artifact.target = "cpu";
  artifact.kind = "object";
  artifact.args = {argument("operand", 0),      argument("storage", 1, 0, "values"), argument("output", 0),
                   argument("dim", 0, 0),       argument("dim", 1, 0),               argument("stride", 0, 1),
                   argument("workspace", 0, 0), argument("operand", 2)};
  artifact.output = {"f32", {{{3, 1, 1}}, {{4, 1, 1}}}};
  artifact.workspace = {{{3, 32, 4}, {4, 1, 2}}};
  Artifact::Launch launch;
  launch.entry = "k";
  launch.units = {{4, 16, 1}};
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
  void *workspace[] = {&tensors};
  lacis_launch_args &args = tensors.get();
  args.workspace = workspace;
  ASSERT_FALSE(bool(plan.check(args)));
  ArgumentValues values;
  plan.evaluate(args, values);
  ArgumentValues expected = {address(tensors.x), address(tensors.values), address(tensors.y), 33, 20, 1,
                             address(&tensors),  address(tensors.bias)};
  EXPECT_EQ(values, expected);
  EXPECT_EQ(text(plan.checkValues(args, values)), "");
  EXPECT_EQ(plan.workspaceBytes(0, values), 2 * 4 * 20 * 2);
}

TEST(LaunchPlan, SmallProblemsStayOnOneThread) {
  LaunchPlan plan = llvm::cantFail(LaunchPlan::create(linear()));
  Tensors tensors;
  lacis_launch_args &args = tensors.get();
  ArgumentValues values;
  plan.evaluate(args, values);
  LaunchExtent extent = plan.extent(0, args, values);
  EXPECT_EQ(extent.units, 2);
  EXPECT_EQ(extent.grain, 2);
  EXPECT_FALSE(extent.empty());
}

TEST(LaunchPlan, EmptyProblemsLaunchNothing) {
  LaunchPlan plan = llvm::cantFail(LaunchPlan::create(linear()));
  Tensors tensors;
  tensors.packed[0] = tensors.ySizes[1] = tensors.biasSizes[0] = 0;
  lacis_launch_args &args = tensors.get();
  ArgumentValues values;
  plan.evaluate(args, values);
  EXPECT_TRUE(plan.extent(0, args, values).empty());
}

TEST(LaunchPlan, RefusesAStrideOfThePackedOperand) {
  Artifact artifact = linear();
  artifact.args[4] = argument("stride", 1, 0);
  EXPECT_NE(text(LaunchPlan::create(artifact).takeError()).find("only sizes of the packed operand"),
            std::string::npos);
}

TEST(LaunchPlan, RefusesASizeThatIsNoDimension) {
  Artifact artifact = linear();
  artifact.launches[0].units = {{0, 1, 1}};
  EXPECT_NE(text(LaunchPlan::create(artifact).takeError()).find("is no dimension"), std::string::npos);
}

TEST(LaunchPlan, RefusesTensorsOfTwoDevices) {
  LaunchPlan plan = llvm::cantFail(LaunchPlan::create(linear()));
  Tensors tensors;
  lacis_launch_args &args = tensors.get();
  tensors.operands[1].device = 0;
  EXPECT_EQ(text(plan.check(args)), "operand 2: the tensors of a launch lie on different devices");
}

} // namespace
