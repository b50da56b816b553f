"""tf.distribute's custom loops of the second trial, written with samegrad."""

from __future__ import annotations

from samegrad_steps import *


def squares(net: Net) -> Any:
    """L2 of all variables."""
    return 0.05 * tf.add_n([tf.reduce_sum(tf.square(v)) for v in net.variables])


@case(
    "tensorflow/recommenders#222",
    "Reduction.SUM, divided by the global batch size",
    "1 / N",
    "right",
)
def sum_over_global_batch(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y)) / summed(size(x))


@case(
    "tensorflow/recommenders#222",
    "the default reduction of the task, a mean over what a replica has, added over replicas",
    "1 / n_r, R times too much",
    named="mean per replica, then sum",
    equal_shards=True,
)
def default_reduction(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_mean(net.losses(x, y))


@case(
    "keras-team/tf-keras#610",
    "average over the global batch, and regularization losses of the layers as they are",
    "two parts: 1 / N; the penalty counts R times",
    named="regularisation counts once on every replica",
)
def regularization_as_it_is(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y)) / summed(size(x)) + squares(net)


@case(
    "keras-team/tf-keras#610",
    "regularization losses are divided by the number of replicas",
    "1 / N; the penalty counts once",
    "right",
)
def regularization_over_replicas(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y)) / summed(size(x)) + squares(net) / replicas()


@case(
    "google/edward2#428",
    "the scaled loss: likelihood and L2 are divided by the replicas, equal batches",
    "1 / (R n_r), which is 1 / N for equal shares; the penalty counts once",
    "even",
)
def scaled_loss(net: Net, x: Any, y: Any) -> Any:
    return (tf.reduce_mean(net.losses(x, y)) + squares(net)) / replicas()


@case(
    "google/edward2#428",
    "what the question would have done: likelihood and L2 times the replicas",
    "R / n_r, R^2 times too much; the penalty, too",
    named="the whole update is multiplied by the replicas twice",
    equal_shards=True,
)
def times_the_replicas(net: Net, x: Any, y: Any) -> Any:
    return (tf.reduce_mean(net.losses(x, y)) + squares(net)) * float(replicas())


@case(
    "google/edward2#428",
    "the other guess: the likelihood times the replicas, and L2 as it is",
    "two parts: R / n_r; the penalty counts R times",
    named=(
        "regularisation counts once on every replica; and the data: the whole update is "
        "multiplied by the replicas twice"
    ),
    equal_shards=True,
)
def likelihood_times_the_replicas(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_mean(net.losses(x, y)) * float(replicas()) + squares(net)


@case(
    "XMUNLP/XMUNMT#8",
    "an arithmetic average of the devices' losses, each over its own tokens",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    batch=text,
    weights=COUNTS,
)
def average_of_devices(net: Net, x: Any, y: Any, mask: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y) * mask) / tf.reduce_sum(mask) / replicas()


@case(
    "XMUNLP/XMUNMT#8",
    "the proposal: weighted by the valid tokens of each device",
    "w_i / W",
    "right",
    batch=text,
    weights=COUNTS,
)
def weighted_by_tokens(net: Net, x: Any, y: Any, mask: Any) -> Any:
    tokens = tf.reduce_sum(mask)
    mean = tf.reduce_sum(net.losses(x, y) * mask) / tokens
    return mean * tokens / summed(tokens)


@case(
    "fastestimator/fastestimator#323",
    "a replica's mean is scaled by its share of the global batch; the report adds the parts",
    "1 / N in both",
    "right",
)
def share_of_the_batch(net: Net, x: Any, y: Any) -> Any:
    loss = tf.reduce_mean(net.losses(x, y)) * size(x) / summed(size(x))
    return loss, loss


@case(
    "fastestimator/fastestimator#323",
    "before: the update is that of all, the loss which is shown adds the replicas' means",
    "the report counts 1 / n_r, R times too much",
    named="mean per replica, then sum",
    where="report",
    equal_shards=True,
)
def shown_sum_of_means(net: Net, x: Any, y: Any) -> Any:
    values = net.losses(x, y)
    return tf.reduce_sum(values) / summed(size(x)), tf.reduce_mean(values)


@case(
    "https-deeplearning-ai/tensorflow-3#3",
    "np.mean of the parts' mean losses, where the last part has fewer examples",
    "the report counts 1 / (R n_r)",
    named="mean of the replicas' means",
    where="report",
)
def mean_of_part_means(net: Net, x: Any, y: Any) -> Any:
    values = net.losses(x, y)
    return tf.reduce_sum(values) / summed(size(x)), tf.reduce_mean(values) / replicas()


@case(
    "TensorSpeech/TensorFlowASR#43",
    "losses of utterances over a constant global batch size",
    "1 / 12, a constant",
    "right",
)
def constant_batch_of_speech(net: Net, x: Any, y: Any) -> Any:
    return tf.nn.compute_average_loss(net.losses(x, y), global_batch_size=12)


@case(
    "TensorSpeech/TensorFlowTTS#377",
    "masked mel losses over the frames of a replica, divided by nothing else and added",
    "w_i / W_r, R times too much",
    named="mean per replica, then sum",
    batch=text,
    weights=COUNTS,
)
def frames_of_a_replica(net: Net, x: Any, y: Any, mask: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y) * mask) / tf.reduce_sum(mask)


@case(
    "Shmuma/rl#1",
    "the question's weighted average, over the sum of a replica's weights, by the replicas",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    batch=weighted,
    weights=COUNTS,
)
def weighted_average(net: Net, x: Any, y: Any, w: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y) * w) / tf.reduce_sum(w) / replicas()
