// Assertions of unions, views and kernels.
#ifdef SAMEGRAD_ASSERTIONS

#include "check.h"
#include "death.h"
#include "programs.h"
#include "runtime/check_kernel.h"

using namespace samegrad;

namespace {

// Return the message of a check of one kernel call.
std::string said_of(Kernel kernel, std::int64_t examples = 0, bool in_place = false,
                    unsigned type_only = 0, std::int64_t operand_examples = 8) {
  OpDef op = sum_op();
  op.name = "faulty";
  op.kernel = kernel;
  op.type_only = type_only;
  Node node;
  node.op = &op;
  node.locality = examples ? Locality::kPerExample : Locality::kFullBatch;
  std::vector<float> x(8, 1.f), y(8);
  const View in{x.data(), {operand_examples}, DType::kFloat32, examples ? 0 : -1};
  const View out{in_place ? x.data() : y.data(), {8}, DType::kFloat32, examples ? 0 : -1};
  ReplicaContext context;
  context.local_examples = {examples};
  Scratch scratch;
  const KernelArgs args{.attrs = node.attrs,
                        .in = {&in, 1},
                        .out = {&out, 1},
                        .examples = examples,
                        .replica_context = context,
                        .scratch = scratch};
  return said_before_abort([&] {
    const KernelCheck check(node, args);
    kernel(args);
    check.compare();
  });
}

void copy(const KernelArgs& args) {
  std::copy_n(args.in[0].as<float>(), args.in[0].size(), args.out[0].as<float>());
}

}  // namespace

TEST("the index of a value is read by its source") {
  ValueInfo argument;
  argument.source = Source::kArgument;
  argument.index = 0;
  CHECK_EQ(said_before_abort([&] { static_cast<void>(argument.argument()); }), "");
  CHECK(check::has(said_before_abort([&] { static_cast<void>(argument.node()); }), "source"));
}

TEST("elements are accessed as what they are, or as bytes") {
  const Array x = Array::zeros(DType::kInt32, {3});
  const View view{x.raw(), {3}, DType::kInt32};
  const auto said = [&]<class T>(T) {
    return said_before_abort([&] {
      static_cast<void>(x.data<T>());
      static_cast<void>(view.as<T>());
    });
  };
  CHECK_EQ(said(std::int32_t(0)), "");
  CHECK_EQ(said(std::uint32_t(0)), "");
  CHECK_EQ(said('a'), "");
  CHECK(check::has(said(0.f), "elements of int32"), said(0.f));
  CHECK(check::has(said(std::int64_t(0)), "elements of int32"));
}

TEST("a kernel that keeps its contract passes the check, in place too") {
  CHECK_EQ(said_of(copy), "");
  CHECK_EQ(said_of(copy, 8), "");
  CHECK_EQ(said_of(copy, 0, true), "");
}

TEST("an operand that is read has the examples of the call, one that gives its type need not") {
  const Kernel fill = [](const KernelArgs& args) {
    std::fill_n(args.out[0].as<float>(), args.out[0].size(), 1.f);
  };
  CHECK_EQ(said_of(fill, 8, false, 1u, 1), "");
  const std::string said = said_of(fill, 8, false, 0, 1);
  CHECK(check::has(said, "faulty: shape (1,) of 8 examples"), said);
}

TEST("a kernel that leaves an element unwritten is named") {
  const std::string said = said_of([](const KernelArgs& args) {
    std::copy_n(args.in[0].as<float>(), args.in[0].size() - 1, args.out[0].as<float>());
  });
  CHECK(check::has(said, "faulty: element 7 of result 0"), said);
}

TEST("a kernel that writes its operand, or behind its result or scratch, is named") {
  const std::string operand = said_of([](const KernelArgs& args) {
    copy(args);
    args.in[0].as<float>()[2] = 5;
  });
  CHECK(check::has(operand, "faulty writes its operand 0"), operand);
  const std::string behind = said_of([](const KernelArgs& args) {
    copy(args);
    args.out[0].as<float>()[args.out[0].size()] = 5;
  });
  CHECK(check::has(behind, "faulty writes behind result 0"), behind);
  const std::string scratch = said_of([](const KernelArgs& args) {
    const Scratch::Frame frame(args.scratch);
    static_cast<std::byte*>(args.scratch.take(64))[64] = std::byte(1);
    copy(args);
  });
  CHECK(check::has(scratch, "a kernel writes behind its scratch"), scratch);
}

TEST("a kernel that reads scratch before writing it is named") {
  const std::string said = said_of([](const KernelArgs& args) {
    const Scratch::Frame frame(args.scratch);
    args.out[0].as<float>()[0] = *static_cast<float*>(args.scratch.take(4));
    std::fill_n(args.out[0].as<float>() + 1, args.out[0].size() - 1, 0.f);
  });
  CHECK(check::has(said, "faulty: element 0 of result 0"), said);
}

TEST("a kernel whose result depends on where a call is cut is named") {
  const std::string said = said_of(
      [](const KernelArgs& args) {
        copy(args);
        args.out[0].as<float>()[0] += float(args.first_example == 0 ? 0 : 1);
      },
      8);
  CHECK(check::has(said, "depends on memory before the call, or on how calls are cut"), said);
}

TEST("a kernel whose result must not be on its operand is named where it does") {
  const std::string said = said_of(
      [](const KernelArgs& args) {
        const float* x = args.in[0].as<float>();
        float* y = args.out[0].as<float>();
        for (std::int64_t i = 0; i < 8; ++i) y[i] = x[i] + x[0];
      },
      0, true);
  CHECK(check::has(said, "lets results alias operands"), said);
}

#endif
