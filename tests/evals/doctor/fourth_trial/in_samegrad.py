"""tf.distribute's loops, written with samegrad."""

from __future__ import annotations

from samegrad_steps import *


def decay(net: Net) -> Any:
    """The squares of all weights."""
    return tf.add_n([tf.reduce_sum(tf.square(v)) for v in net.variables])


@case(
    "vanHavel/bp-mll-tensorflow#2",
    "the errors of a batch are summed, and added over replicas: a sum over all",
    "1",
    "right",
)
def errors_are_summed(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y))


@case(
    "vanHavel/bp-mll-tensorflow#2",
    "the average error of a batch instead of its sum, still added over replicas",
    "1 / n_r, R times too much",
    named="mean per replica, then sum",
)
def errors_are_averaged(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_mean(net.losses(x, y))


@case(
    "kuza55/keras-extras#29",
    "weights are regularised on every GPU, partial losses over the whole batch are added",
    "1 / N for examples, the regularisation R times",
    named="regularisation counts once on every replica",
)
def regularised_on_every_gpu(net: Net, x: Any, y: Any) -> Any:
    return tf.nn.compute_average_loss(net.losses(x, y)) + 0.05 * decay(net)


@case(
    "kuza55/keras-extras#29",
    "what it is compared with: the regularisation counts once",
    "1 / N, the regularisation once",
    "right",
)
def regularised_once(net: Net, x: Any, y: Any) -> Any:
    penalty = tf.nn.scale_regularization_loss(0.05 * decay(net))
    return tf.nn.compute_average_loss(net.losses(x, y)) + penalty


@case(
    "deepfakes/faceswap#1224",
    "as the error says: the sum times 1 / global_batch_size, which all replicas count",
    "1 / N",
    "right",
)
def as_the_error_says(net: Net, x: Any, y: Any) -> Any:
    global_batch_size = summed(size(x))
    return tf.reduce_sum(net.losses(x, y)) * (1.0 / global_batch_size)


@case(
    "deepfakes/faceswap#1224",
    "two losses: one over the global batch, the mask's mean over a replica's batch",
    "two parts: 1 / N; 1 / n_r for the second, R times too much",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "mean per replica, then sum"
    ),
)
def second_loss_over_a_replica(net: Net, x: Any, y: Any) -> Any:
    first = tf.nn.compute_average_loss(net.losses(x, y))
    second = tf.reduce_mean(tf.square(tf.tanh(net(x)) - tf.tanh(y)))
    return first + 0.5 * second


@case(
    "GarrettJenkinson/condor_tensorflow#3",
    "without a reduction the caller divides by the replicas and by a replica's batch",
    "1 / (R n_r)",
    named="mean of the replicas' means",
)
def mean_over_replicas(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y)) / size(x) / replicas()


@case(
    "GarrettJenkinson/condor_tensorflow#3",
    "a mean and a division by the replicas, whose batches are equal",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
)
def mean_over_equal_replicas(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_mean(net.losses(x, y)) / replicas()


@case(
    "keras-team/keras-cv#1505",
    "anchors that count, over those of a replica, over the replicas",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    batch=text,
    weights=COUNTS,
)
def anchors_of_a_replica(net: Net, x: Any, y: Any, mask: Any) -> Any:
    total = tf.reduce_sum(net.losses(x, y) * mask)
    return total / tf.reduce_sum(mask) / replicas()


@case(
    "keras-team/keras-cv#1505",
    "SUM, over the anchors of all replicas",
    "w_i / W",
    "right",
    batch=text,
    weights=COUNTS,
)
def anchors_of_all(net: Net, x: Any, y: Any, mask: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y) * mask) / summed(tf.reduce_sum(mask))


@case(
    "keras-team/keras-io#244",
    "masked tokens are averaged within a sentence, compute_average_loss over sentences",
    "1 / N for each sentence",
    "right",
    batch=text,
)
def sentences_over_the_global_batch(net: Net, x: Any, y: Any, mask: Any) -> Any:
    per_sentence = tf.reduce_sum(net.losses(x, y) * mask, axis=1) / tf.reduce_sum(mask, axis=1)
    return tf.nn.compute_average_loss(per_sentence)


@case(
    "keras-team/keras-io#244",
    "the mean over the masked tokens of a replica; gradients are added",
    "w_i / W_r, R times too much",
    named="mean per replica, then sum",
    batch=text,
    weights=COUNTS,
)
def masked_mean_of_a_replica(net: Net, x: Any, y: Any, mask: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y) * mask) / tf.reduce_sum(mask)


@case(
    "adapt-python/adapt#23",
    "a domain's weights: reduce_mean of weighted losses, gradients are added",
    "w_i / n_r, R times too much",
    named="mean per replica, then sum",
    batch=weighted,
)
def weighted_reduce_mean(net: Net, x: Any, y: Any, w: Any) -> Any:
    return tf.reduce_mean(w * net.losses(x, y))


@case(
    "adapt-python/adapt#23",
    "the proposal: losses by sample, which are aggregated over the global batch",
    "w_i / N",
    "right",
    batch=weighted,
)
def losses_by_sample(net: Net, x: Any, y: Any, w: Any) -> Any:
    return tf.nn.compute_average_loss(w * net.losses(x, y))


@case(
    "keras-team/keras-io#870",
    "the student's loss over the global batch, the scaled distillation as a mean of a replica",
    "two parts: 1 / N; 1 / n_r for the distillation, R times too much",
    named=(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "mean per replica, then sum"
    ),
)
def scaled_distillation(net: Net, x: Any, y: Any) -> Any:
    student = tf.nn.compute_average_loss(net.losses(x, y))
    teacher = tf.tanh(y)
    soft = tf.reduce_mean(tf.reduce_sum(tf.square(tf.tanh(net(x) / 2.0) - teacher), axis=-1))
    return 0.3 * student + 0.7 * 4.0 * soft
