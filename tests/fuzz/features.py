"""Switches for what the engine does not promise (yet), each with the reason."""

from __future__ import annotations

# Operations by the name of their feature. A switch that is off keeps them out of programs.
DRAWN = {
    # Sizes made of the number of examples: x·xᵀ, eye(n), / n.
    "counts_as_sizes": True,
    # A `tf.function` called under the tape.
    "calls": True,
    "while": True,
    # Factors, inverses and determinants.
    "matrices": True,
    # Random draws.
    "random": True,
    # Second derivatives of programs with a `while_loop`.
    "second_of_while": True,
}

# Comparisons bit by bit between ways to run a program.
EQUAL_BITS = {
    # 1, 2 and 4 replicas with equal shares, where explain() promises them.
    "replicas": True,
    # The same where the arrays that were distributed did not say which axis counts examples.
    "replicas_of_plain_arrays": True,
    # The same where explain() does not, though no example depends on another one.
    "replicas_without_promise": True,
    # That once more where there are branches or rounds. If their results are parts that leave the
    # step and are summed as well, the sum is taken of the results; explain() says so.
    "replicas_without_promise_of_control_flow": False,
    # That once more in bfloat16: a sum that needs all examples of a replica is rounded there,
    # before the replicas are added; explain() says so.
    "replicas_without_promise_of_bfloat16": False,
    # Divisions of programs that sum over the replicas what all of them have: explain() names it,
    # unless a branch or `all_gather` makes another summand.
    "summands_that_all_replicas_have": False,
    # Operations one at a time beside a traced function, with plain arrays and no strategy.
    "eager_and_function": True,
    # The same of second derivatives through branches and rounds. A traced branch is one operation,
    # whose derivative makes again what the branch had made: what flows back into that is added
    # after a product and not before it.
    "eager_second_of_control_flow": False,
    # The same where a loop begins with a value that something else uses. A traced loop is one
    # operation: what flows back into its beginning is summed before the other uses are added.
    "eager_beginnings_of_loops": False,
    # The same where a size is the number of examples. Eagerly it is a number like others, and what
    # is made of it has no examples: it is summed as a plain array.
    "eager_counts_as_sizes": False,
    # A traced function beside run on one replica.
    "function_and_run": True,
    # Kernel variants with fused multiply-add.
    "variants": True,
}

# What a program may be refused with: a part of the message.
REFUSALS: tuple[str, ...] = ("no variable has a gradient",)
# What a kernel variant may be refused with beside the usual one: that it was not built.
NOT_BUILT = "[kernels] cannot load"
