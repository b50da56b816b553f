"""Fixes, in the words of each framework.

Every dotted name in a text exists in its framework; a test looks each of them up.
"""

from __future__ import annotations

import re

FRAMEWORKS = ("samegrad", "pytorch", "jax", "tensorflow")

# The legend of the table.
WHERE = (
    "expected is the weight of an example in the update of one device, found is its mean weight in "
    "this step, and factor = found / expected"
)
_SYMBOLS = {
    "w_i": "w_i: weight of example i",
    "m_i": "m_i: times that example i is seen",
    "W": "W: sum of the weights",
    "C": "C: a constant",
    "W_r": "W_r: sum on replica r",
    "W_rk": "W_rk: sum in micro-batch k of replica r",
    "W_k": "W_k: sum in micro-batch k of all replicas",
    "N": "N: number of examples",
    "n_r": "n_r: number on replica r",
    "n_rk": "n_rk: number in micro-batch k of replica r",
    "n_k": "n_k: number in micro-batch k of all replicas",
    "R": "R: number of replicas",
    "K": "K: number of micro-batches",
    "Ω": "Ω: the term without examples",
}


def symbols_of(formula: str) -> str:
    """Return the meaning of the symbols of a formula.

    Example:
        >>> symbols_of("w_i / W")
        'w_i: weight of example i, W: sum of the weights'
    """
    found = set(re.findall(r"\b[A-Za-z]_[a-z]+|\b[A-Z]\b|Ω", formula))
    return ", ".join(text for symbol, text in _SYMBOLS.items() if symbol in found)


_TORCH_COUNT = (
    "torch.distributed.all_reduce(count); loss = loss_sum * torch.distributed.get_world_size() / "
    "count, for DistributedDataParallel averages the ranks"
)
_JAX_COUNT = (
    'differentiate the sum of the losses, then jax.lax.psum(gradient, "i") / jax.lax.psum(count, '
    '"i")'
)
_TF_COUNT = (
    "tf.nn.compute_average_loss(losses, global_batch_size=count), with count = "
    'tf.distribute.get_replica_context().all_reduce("SUM", rows)'
)
_DIVISORS = "what divides (positives, the examples of a class)"
_WINDOW_FIRST = f"sum over the window first {_DIVISORS}, or give one micro-batch all examples"
# What to do, and how: samegrad, PyTorch, JAX, TensorFlow and Keras.
REMEDIES: dict[str, tuple[str, str, str, str]] = {
    "count": (
        "divide by the true count of all replicas, once: nn.compute_average_loss(losses)",
        f"divide by the true count of all ranks, once: {_TORCH_COUNT}",
        f"divide by the true count of all devices, once: {_JAX_COUNT}",
        f"divide by the true count of all replicas, once: {_TF_COUNT}",
    ),
    "weights": (
        "divide by the sum of the weights of all replicas: nn.compute_weighted_mean_loss(losses, "
        "weights)",
        f"count what is real (mask.sum()) on all ranks: {_TORCH_COUNT}",
        f"count what is real (mask.sum()) on all devices: {_JAX_COUNT}",
        'divide tf.reduce_sum(losses * mask) by tf.distribute.get_replica_context().all_reduce('
        '"SUM", tf.reduce_sum(mask))',
    ),
    "sum": (
        "sum the per-replica losses (reduce SUM), and divide each loss by the global batch size, "
        "once",
        f"undo the mean over ranks, or remove the other division: {_TORCH_COUNT}",
        "per-replica parts of a global mean are summed: jax.lax.psum, not jax.lax.pmean",
        "per-replica parts of a global mean are summed: "
        'tf.distribute.get_replica_context().all_reduce("SUM", gradients)',
    ),
    "factor": (
        "remove the factor: nothing divides by it again",
        "remove the factor: nothing divides by it again",
        "remove the factor; take gradients of per-device losses, outside of jax.lax.psum",
        "remove the factor: nothing divides by it again",
    ),
    "reduce": (
        "sum the gradients over the replicas before the update",
        "call the wrapped module, torch.nn.parallel.DistributedDataParallel(model), under no "
        "no_sync in the last backward",
        "reduce before the update: jax.lax.psum(gradients, \"i\")",
        'reduce before the update: tf.distribute.get_replica_context().all_reduce("SUM", '
        "gradients)",
    ),
    "accumulate": (
        "accumulate sums and counts, and divide once: "
        "keras.optimizers.Adam(gradient_accumulation_steps=N)",
        "count the whole window first (all micro-batches of all ranks); then in each micro-batch: "
        "(loss_sum * torch.distributed.get_world_size() / count).backward()",
        "accumulate sums and counts in jax.lax.scan, and divide once after it",
        "accumulate sums and counts over the window, and divide once before apply_gradients",
    ),
    "window": (  # for "count" and others on one device
        "accumulate sums and counts, and divide once: "
        "keras.optimizers.Adam(gradient_accumulation_steps=N)",
        "count the whole window first (all micro-batches); then in each micro-batch: "
        "(loss_sum / count).backward()",
        "accumulate sums and counts in jax.lax.scan, and divide once after it",
        "accumulate sums and counts over the window, and divide once before apply_gradients",
    ),
    "keep": (
        "accumulate the gradients, and reset them only after the update",
        "call optimizer.zero_grad() after optimizer.step() only",
        "carry the sum of the gradients through jax.lax.scan",
        "add to the accumulated variables, and reset them after apply_gradients only",
    ),
    "once": (
        "accumulate locally, and reduce once after the last micro-batch",
        "torch.nn.parallel.DistributedDataParallel.no_sync for all but the last micro-batch",
        "accumulate locally, and jax.lax.psum once after the last micro-batch",
        "accumulate locally, and all_reduce once after the last micro-batch",
    ),
    "sampler": (
        "keep shards unequal and divide by the true count, or give repeated examples the weight 0",
        "torch.utils.data.DistributedSampler repeats or drops examples: mask repeated ones, and "
        f"divide by the count of the others: {_TORCH_COUNT}",
        "mask what fills the last batch up, and divide by jax.lax.psum(mask.sum(), \"i\")",
        "leave the last batch short, and divide by its count over all replicas",
    ),
    "clip": (
        "reduce first, then clip, then update: samegrad's optimizers take clipnorm and "
        "global_clipnorm",
        "torch.nn.utils.clip_grad_norm_ after the last backward (which reduces), before "
        "optimizer.step()",
        "jax.lax.psum first, then clip, then update",
        "reduce first, then tf.clip_by_global_norm, then "
        "apply_gradients(…, skip_gradients_aggregation=True)",
    ),
    "clip window": (
        "accumulate and reduce first, then clip, then update: "
        "keras.optimizers.Adam(gradient_accumulation_steps=N)",
        "torch.nn.utils.clip_grad_norm_ once per window, before optimizer.step()",
        "clip once, after the sum over micro-batches",
        "tf.clip_by_global_norm once per window, before apply_gradients",
    ),
    "unscale": (
        "divide gradients by the loss scale before they are clipped: "
        "keras.optimizers.LossScaleOptimizer does",
        "scaler.unscale_(optimizer) of torch.amp.GradScaler before "
        "torch.nn.utils.clip_grad_norm_",
        "divide gradients by the loss scale before they are clipped",
        "tf.keras.mixed_precision.LossScaleOptimizer around an optimizer with clipnorm or "
        "global_clipnorm unscales first",
    ),
    "statistics": (
        "use count-weighted moments of all replicas (keras.layers.BatchNormalization does), gather "
        f"outputs with their gradients, and sum over the replicas first {_DIVISORS}",
        "torch.nn.SyncBatchNorm.convert_sync_batchnorm(model); torch.distributed.nn.all_gather "
        f"for pairs; torch.distributed.all_reduce first {_DIVISORS}",
        "moments of jax.lax.psum over the devices; jax.lax.all_gather for pairs; jax.lax.psum "
        f"first {_DIVISORS}",
        "tf.keras.layers.BatchNormalization(synchronized=True); "
        "tf.distribute.get_replica_context().all_gather for pairs, and its all_reduce first "
        f"{_DIVISORS}",
    ),
    "statistics of a window": (
        f"{_WINDOW_FIRST}; moments of batch normalization: freeze them, or normalize by layer or "
        "group",
        f"{_WINDOW_FIRST}; moments: torch.nn.GroupNorm, or freeze them",
        _WINDOW_FIRST,
        f"{_WINDOW_FIRST}; moments: tf.keras.layers.GroupNormalization, or freeze them",
    ),
    "term": (
        "divide it by the number of replicas on each of them: "
        "nn.scale_regularization_loss(losses)",
        "add the term to the loss of every rank once, for the ranks are averaged, and not to the "
        "part that is multiplied by torch.distributed.get_world_size()",
        "add its gradient once, after jax.lax.psum",
        "tf.nn.scale_regularization_loss(losses) on each replica",
    ),
    "draw": (
        "draw for the rows of the global batch: random.uniform((tf.shape(x)[0], 1, 1, 1))",
        "torch.manual_seed(seed + torch.distributed.get_rank()), and draw for each example",
        "jax.random.fold_in(key, jax.lax.axis_index(\"i\")), and draw for each example",
        "tf.random.uniform((tf.shape(x)[0], 1, 1, 1)) on each replica",
    ),
    "step": (
        "apply once per window: keras.optimizers.Adam(gradient_accumulation_steps=N)",
        "call optimizer.step() once, after the backward of the last micro-batch",
        "accumulate gradients in jax.lax.scan, and apply the update once after it",
        "accumulate gradients, and call apply_gradients once after the last micro-batch",
    ),
    "pairs": (
        "make the pairs in the dataset, before the batch is distributed: Dataset.batch, then map",
        "make the pairs in collate_fn of torch.utils.data.DataLoader from whole batches, or gather "
        "the partners by torch.distributed.nn.all_gather",
        "make the pairs before the batch is sharded, or gather partners by jax.lax.all_gather",
        "make the pairs in the dataset, before "
        "tf.distribute.Strategy.experimental_distribute_dataset distributes the batch",
    ),
    "moments": (
        "reduce gradients first, and let the optimizer see the sum only",
        "no torch.optim step in hooks of backward: step after the all-reduce",
        "reduce gradients before the optimizer's update",
        "reduce gradients before the optimizer's update",
    ),
    "size": (
        "look for a division or multiplication by a size of another run (a world size kept from "
        "before, a number of devices, a configured batch size)",
        "take torch.distributed.get_world_size() and the count of this step, not sizes of the "
        "configuration",
        'take jax.lax.psum(1, "i") and the count of this step, not sizes of the configuration',
        "take tf.distribute.get_strategy().num_replicas_in_sync and the count of this step",
    ),
}  # fmt: skip


ONE_DEVICE = ("count", "weights", "sum", "accumulate", "size")  # keys that name all ranks


def remedy(key: str, framework: str = "samegrad") -> str:
    """Return the fix of a key in the words of a framework.

    Raises:
        ValueError: There are no words for the framework, or no remedy of that key.

    Example:
        >>> remedy("factor")
        'remove the factor: nothing divides by it again'
    """
    if framework not in FRAMEWORKS:
        known = ", ".join(FRAMEWORKS)
        raise ValueError(f"[remedy] framework must be one of {known}: got {framework!r}.")
    if not isinstance(key, str) or key not in REMEDIES:
        raise ValueError(f"[remedy] key must be one of {', '.join(REMEDIES)}: got {key!r:.80}.")
    return REMEDIES[key][FRAMEWORKS.index(framework)]
