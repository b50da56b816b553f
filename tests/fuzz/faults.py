"""Faults to plant: small patches of the sources, and the fuzzer must find each.

A patch is a short text that occurs once in its file, so that it stays where it belongs while the
file changes around it.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Fault:
    """One mistake.

    Args:
        name: What is wrong.
        file: Where.
        old: The text that is there.
        new: What it becomes.
    """

    name: str
    file: str
    old: str
    new: str


FAULTS = [
    Fault(
        "a use is dropped in a gradient",
        "cpp/autodiff/gradient.cpp",
        "sum = sum == kNoValue ? ct : add_cotangents(b_, sum, ct);",
        "sum = ct;",
    ),
    Fault(
        "the gradient of a broadcast operand is summed over too few axes",
        "cpp/autodiff/gradient.cpp",
        "const bool missing = axis < lead;",
        "const bool missing = axis < lead - 1;",
    ),
    Fault(
        "replicas are summed in another order",
        "cpp/runtime/steps/all_reduce.cpp",
        "x[i] = context_.term(input(slice), of.begin + std::int64_t(i))",
        "x[i] = context_.term(input(slice), of.begin + std::int64_t((i + 1) % count))",
    ),
    Fault(
        "the last block of an all-reduce is left out",
        "cpp/runtime/steps/all_reduce.cpp",
        "for (std::int64_t begin = 0; begin < n; begin += block)",
        "for (std::int64_t begin = 0; begin < std::max(n - 1, std::int64_t(1)); begin += block)",
    ),
    Fault(
        "the context of replica 0 in the loop of every replica",
        "cpp/runtime/steps/loop.cpp",
        ": run.context.of_replica(replica_)),",
        ": run.context.of_replica(0)),",
    ),
    Fault(
        "two chunks are not joined",
        "cpp/runtime/steps/loop_binding.cpp",
        "if (chunks < 2) continue;",
        "if (chunks < 3) continue;",
    ),
    Fault(
        "values overlap in the step in which one ends and the other begins",
        "cpp/plan/memory.cpp",
        "ends.top().first < interval.first",
        "ends.top().first <= interval.first",
    ),
    Fault(
        "a result takes the memory of an operand that is read later",
        "cpp/plan/memory.cpp",
        "from.home == kNoValue || from.last != step || from.first == step",
        "from.home == kNoValue || from.first == step",
    ),
    Fault(
        "values of an inner loop live too short",
        "cpp/runtime/layout.cpp",
        "life.first = std::min(life.first, inner.begin);",
        "(void)life;",
    ),
    Fault(
        "a variable is written before its last reader",
        "cpp/plan/buffers.cpp",
        "last_read_[old] > at || read_at_end_[old] != 0) return false;",
        "read_at_end_[old] != 0) return false;",
    ),
    Fault(
        "a fused loop writes over what it still reads",
        "cpp/plan/buffers.cpp",
        "if (!node.op->may_overwrite(node, k, result)) return false;",
        "(void)result;",
    ),
    Fault(
        "attributes do not count when equal nodes are merged",
        "cpp/passes/eliminate.cpp",
        """node->attrs == other.node->attrs && node->regions == other.node->regions;
  }
};
struct NodeKeyHash {
  std::size_t operator()(const NodeKey& call) const {
    std::size_t hash = std::hash<const OpDef*>()(call.node->op) ^ call.node->attrs.hash();""",
        """node->regions == other.node->regions;
  }
};
struct NodeKeyHash {
  std::size_t operator()(const NodeKey& call) const {
    std::size_t hash = std::hash<const OpDef*>()(call.node->op);""",
    ),
    Fault(
        "operands change places in a fused loop",
        "cpp/ops/fused.cpp",
        "(at(0).data, at(1).data, out.data, n,",
        "(at(1).data, at(0).data, out.data, n,",
    ),
    Fault(
        "all rows of a fused loop take what belongs to the first of some",
        "cpp/ops/fused_rows.cpp",
        "return {in_[k]->data, width, 0};",
        "return {in_[k]->data, 0, 0};",
    ),
    Fault(
        "relu is lost in the epilogue of a product",
        "cpp/ops/matmul_kernel.cpp",
        "epilogue{args.in[2].data, attrs.activation};",
        "epilogue{args.in[2].data, c.n > 1 ? attrs.activation : Activation::kNone};",
    ),
    Fault(
        "transpose goes back by the same permutation",
        "cpp/ops/permute.cpp",
        "inverse[std::size_t(perm[i])] = std::int64_t(i);",
        "inverse[i] = perm[i];",
    ),
    Fault(
        "the gradient of softmax lacks its mean",
        "cpp/ops/softmax.cpp",
        "y * (ct - sum_last(ct * y))",
        "y * ct",
    ),
    Fault(
        "relu lets a quarter of the gradient through where it is off",
        "cpp/kernels/unary.def",
        "select(y > 0.0, ct, zeros_like(ct)), -2.7",
        "select(y > 0.0, ct, ct * 0.25), -2.7",
    ),
    Fault(
        "the last row of a table cannot be looked up",
        "cpp/ops/index_kernel.cpp",
        "std::memcpy(y, x + index * bytes, std::size_t(bytes))",
        "std::memcpy(y, x + std::min(index, std::max(size - 2, std::int64_t(0))) * bytes, "
        "std::size_t(bytes))",
    ),
    Fault(
        "an extreme's gradient is a little small",
        "cpp/ops/reduce.cpp",
        "select(chosen, ct / count, 0.0)",
        "select(chosen, ct * count, 0.0) * 0.999",
    ),
    Fault(
        "images are padded at the wrong side",
        "cpp/ops/window.cpp",
        ".pad_top = padding[2 * at],",
        ".pad_top = padding[2 * at + 1],",
    ),
    Fault(
        "rounds of a loop are differentiated forwards",
        "cpp/runtime/steps/control.cpp",
        "const std::size_t k = attrs.forward ? i : iterations - 1 - i;",
        "const std::size_t k = i;",
    ),
    Fault(
        "replicas that are done take what further rounds make",
        "cpp/runtime/steps/control.cpp",
        "state[i] = after(active, next[i], state[i]);",
        "state[i] = next[i];",
    ),
    Fault(
        "a local mean for the mean over all replicas",
        "python/samegrad/nn/_loss_normalization.py",
        "count = _ops.global_size_of if of_all_replicas else _ops.size_of",
        "count = _ops.size_of",
    ),
    Fault(
        "the gradients of an optimizer stay those of a replica",
        "python/samegrad/_keras/optimizer.py",
        "sums = all_reduce_sum(present) if present else []",
        "sums = present",
    ),
    Fault(
        "assign_sub adds",
        "python/samegrad/_autodiff/variable.py",
        "_core.write_variable(self._cell, _ops.sub(self._as_tensor(), change))",
        "_core.write_variable(self._cell, _ops.add(self._as_tensor(), change))",
    ),
    Fault(
        "a step number is used twice",
        "cpp/train/compiled_function.cpp",
        "call.step = counter.fetch_add(1);",
        "call.step = counter.load();",
    ),
    Fault(
        "draws are keyed by the row within the replica",
        "cpp/runtime/execution_context_examples.cpp",
        "replica_context.first_example = first;",
        "replica_context.first_example = std::vector<std::int64_t>(first.size(), 0);",
    ),
    Fault(
        "every part of a concatenation gets the gradient of the first",
        "cpp/ops/concat.cpp",
        "begin[std::size_t(axis)] = dim_of(symbols, first);",
        "begin[std::size_t(axis)] = 0;",
    ),
    Fault(
        "the gradient of log_softmax forgets the size of what comes back",
        "cpp/ops/softmax.cpp",
        "ct - exp(y) * sum_last(ct)",
        "ct - exp(y)",
    ),
    Fault(
        "a squared difference pulls both sides the same way",
        "cpp/kernels/binary.def",
        "ct * -2.0 * (a - b)",
        "ct * 2.0 * (a - b)",
    ),
    Fault(
        "a thread's rows begin at the wrong place where an example has several",
        "cpp/runtime/steps/node.cpp",
        "+ begin * rows * row_bytes",
        "+ begin * row_bytes",
    ),
    Fault(
        "a view of a value of an inner loop begins with the tile",
        "cpp/plan/inner_loops.cpp",
        "if (plan.inner_value[plan.root[v]]) plan.inner_value[v] = true;",
        "",
    ),
    Fault(
        "replica 0's count is a size of every replica",
        "cpp/ops/replica_context.cpp",
        "differs_between_replicas(args.symbols, x.shape[axis])) {\n",
        "differs_between_replicas(args.symbols, x.shape[axis])) {\n"
        "      inferred.placements = {Placement::kReplicated};\n",
    ),
    Fault(
        "values are made in the sizes of replica 0",
        "cpp/runtime/execution_context.cpp",
        "shape_of_all(type) : shape_or_empty(type, counts_[r])",
        "shape_of_all(type) : shape_or_empty(type, counts_[0])",
    ),
    Fault(
        "constants are known by six digits",
        "cpp/passes/eliminate.cpp",
        "return {reinterpret_cast<const char*>(array.raw()), array.bytes()};",
        "if (array.dtype() == DType::kFloat64) return std::to_string(*array.data<double>());\n"
        "  return {reinterpret_cast<const char*>(array.raw()), array.bytes()};",
    ),
    Fault(
        "the share of a regularizer is all of it",
        "cpp/ops/collective.cpp",
        "if (args.replica_context.replicas == 1) return copy_bytes(args);",
        "if (args.replica_context.replicas >= 1) return copy_bytes(args);",
    ),
    Fault(
        "of a regularizer one share is added behind the all-reduce",
        "cpp/passes/hoist_all_reduce.cpp",
        "return rewrite_(node->inputs[0]);",
        'return rewrite_.builder()("div", {rewrite_(node->inputs[0]), replicas_as(value)});',
    ),
    # Last, as everything is compiled anew.
    Fault(
        "the smaller half of the tree is on the left",
        "cpp/base/reduction_order.h",
        "return (units(n) + 1) / 2 * kUnit;",
        "return units(n) / 2 * kUnit;",
    ),
]
