"""tf.distribute's loops, written with samegrad."""

from __future__ import annotations

from samegrad_steps import *

WEIGHTED: dict[str, Any] = {"batch": weighted, "weights": COUNTS}


@case(
    "tensorflow/ecosystem#181",
    "per-example losses over the global batch size, which replicas add up",
    "1 / N",
    "right",
)
def over_global_batch_size(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y)) / summed(size(x))


@case(
    "tensorflow/ecosystem#181",
    "BATCH_SIZE_PER_REPLICA in the place of GLOBAL_BATCH_SIZE",
    "1 / n_r, R times too much",
    named="mean per replica, then sum",
)
def over_batch_size_per_replica(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y)) / size(x)


@case(
    "golbin/TensorFlow-Multi-GPUs#5",
    "losses of GPUs are averaged rather than gradients: a mean of each GPU's mean",
    "1 / (R n_r)",
    named="mean of the replicas' means",
)
def mean_of_losses(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_mean(net.losses(x, y)) / replicas()


@case(
    "golbin/TensorFlow-Multi-GPUs#5",
    "the same for equal batches",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
)
def mean_of_equal_losses(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_mean(net.losses(x, y)) / replicas()


@case(
    "ildoonet/tf-pose-estimation#16",
    "losses of all towers are added, l2_loss each, and divided by the batch size of all",
    "1 / N",
    "right",
)
def towers_over_batch_size(net: Net, x: Any, y: Any) -> Any:
    return 0.5 * tf.reduce_sum(tf.square(net(x) - y)) / summed(size(x))


@case(
    "mozilla/DeepSpeech#61",
    "towers' sums of losses, then the average of towers' gradients",
    "1 / R instead of 1",
    named="divided by the global batch, then averaged",
)
def average_of_sums(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y)) / replicas()


@case(
    "google-research/batch-ppo#39",
    "regularization losses are added in every replica, to a loss over the whole batch",
    "1 / N for examples, the regularization R times",
    named="regularisation counts once on every replica",
)
def regularized_in_each(net: Net, x: Any, y: Any) -> Any:
    penalty = tf.add_n([tf.reduce_sum(tf.square(v)) for v in net.variables])
    return tf.nn.compute_average_loss(net.losses(x, y)) + 0.05 * penalty


@case(
    "AppliedDataSciencePartners/WorldModels#2",
    "the error is summed over pixels, and averaged over the examples of a replica",
    "1 / n_r, R times too much",
    named="mean per replica, then sum",
    equal_shards=True,
)
def summed_over_pixels(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_mean(tf.reduce_sum(tf.square(net(x) - y), axis=-1))


@case(
    "psiz-org/psiz#6",
    "weighted losses of a replica over its own sum of weights, by the replicas",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    **WEIGHTED,
)
def over_weights_of_a_replica(net: Net, x: Any, y: Any, w: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y) * w) / tf.reduce_sum(w) / replicas()


@case(
    "psiz-org/psiz#6",
    "weighted losses over the weights of all replicas",
    "w_i / W",
    "right",
    **WEIGHTED,
)
def over_weights_of_all(net: Net, x: Any, y: Any, w: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y) * w) / summed(tf.reduce_sum(w))


@case(
    "hiyoung123/SoftMaskedBert#20",
    "padding is ignored: the mean over a replica's tokens, by the replicas",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    batch=text, weights=COUNTS,
)  # fmt: skip
def padding_is_ignored(net: Net, x: Any, y: Any, mask: Any) -> Any:
    total = tf.reduce_sum(net.losses(x, y) * mask)
    return total / tf.reduce_sum(mask) / replicas()
