// Values of all replicas joined, and the gradient that goes back to each one's rows.
#include "check.h"
#include "ops/attributes.h"
#include "ops/registry.h"
#include "runtime/threads.h"
#include "tracing.h"
#include "train/compiled_function.h"

using namespace samegrad;

namespace {

constexpr std::int64_t kColumns = 3;

Array rows_from(std::int64_t first, std::int64_t count) {
  Array array(DType::kFloat64, {count, kColumns});
  for (std::int64_t i = 0; i < array.size(); ++i) {
    array.data<double>()[i] = double(first * kColumns + i) / 8;
  }
  return array;
}

// everything = all_gather(x); the gradient of the sum of its squares for x.
std::unique_ptr<CompiledFunction> gather_step(int replicas) {
  register_all_ops();
  auto trace = std::make_shared<FunctionTrace>(host, replicas);
  const Scope scope(with_trace(trace));
  Tensor x = trace->tensor(
      trace->argument(PerReplica<Array>(std::size_t(replicas), rows_from(0, 2)), {0, 1, 0}));
  Tape tape(host, false);
  tape.start();
  tape.watch(x);
  const Tensor everything =
      op("all_gather", {x}, AllGatherAttrs{.axis = 0, .replicas = std::int64_t(replicas)});
  const Tensor y = op("reduce_sum", {op("square", {everything})}, ReduceAttrs{.axes = {0, 1}});
  tape.stop();
  const auto gradients = tape.gradient({&y}, {}, {{&x}});
  const Value outputs[] = {trace->lift(everything), trace->lift(*gradients[0])};
  return std::make_unique<CompiledFunction>(trace->finish({outputs[0], outputs[1]}), PlanOptions());
}

}  // namespace

TEST("replicas see the rows of all, whatever each one has, and send gradients back to them") {
  const std::vector<std::vector<std::int64_t>> splits = {
      {2, 2, 2}, {3, 0, 1}, {0, 0, 5}, {400, 1, 7}};
  const std::unique_ptr<CompiledFunction> step = gather_step(3);
  for (const int threads : {1, 4}) {
    set_thread_count(threads);
    for (const auto& split : splits) {
      std::vector<PerReplica<Array>> arguments(1);
      std::int64_t first = 0;
      for (const std::int64_t count : split) {
        arguments[0].push_back(rows_from(first, count));
        first += count;
      }
      const auto results = step->run(arguments, false);
      const Array expected = rows_from(0, first);
      CHECK(results[0][0].shape() == expected.shape());
      for (std::int64_t i = 0; i < expected.size(); ++i) {
        CHECK(results[0][0].data<double>()[i] == expected.data<double>()[i]);
      }
      for (std::size_t r = 0; r < split.size(); ++r) {
        const Array& own = arguments[0][r];
        CHECK(results[1][r].shape() == own.shape());
        for (std::int64_t i = 0; i < own.size(); ++i) {  // three replicas send 2 x each
          CHECK(results[1][r].data<double>()[i] == 6 * own.data<double>()[i]);
        }
      }
    }
  }
  set_thread_count(0);
}
