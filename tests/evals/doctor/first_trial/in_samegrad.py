"""tf.distribute's custom loops, written with samegrad: replicas apply their gradients."""

from __future__ import annotations

from samegrad_steps import *

RATE = 0.5


@case(
    "tensorflow/tensorflow#45923",
    "tf.reduce_mean over a replica's examples; gradients are added over replicas",
    "1 / n_r, R times too much",
    named="mean per replica, then sum",
)
def reduce_mean(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_mean(net.losses(x, y))


@case(
    "tensorflow/tensorflow#58938",
    "compute_average_loss over the global batch",
    "1 / N",
    "right",
)
def compute_average_loss(net: Net, x: Any, y: Any) -> Any:
    return tf.nn.compute_average_loss(net.losses(x, y))


@case(
    "tensorflow/tensorflow#33651",
    "reduce_sum times 1 / GLOBAL_BATCH_SIZE, a constant",
    "1 / 12, a constant",
    "right",
)
def constant_global_batch(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y)) * (1.0 / 12)


@case(
    "tensorflow/tensorflow#31317",
    "SUM_OVER_BATCH_SIZE of a replica, divided by the number of replicas, uneven batches",
    "1 / (R n_r)",
    named="mean of the replicas' means",
)
def sum_over_batch_size(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_mean(net.losses(x, y)) / replicas()


@case(
    "captain-pool/GSOC#57",
    "reduce_mean divided by the synced replicas, with batches of one size",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
)
def mean_by_synced_replicas(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_mean(net.losses(x, y)) / replicas()


@case(
    "keras-team/keras#16285",
    "the sum over the global batch, divided by the replicas again: 1/x on x GPUs",
    "1 / (R N)",
    named="divided by the global batch, then averaged",
)
def one_over_gpus(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y)) / summed(size(x)) / replicas()


@case(
    "tensorflow/tensorflow#28956",
    "the update is right; the loss of the snippet is the MEAN over replicas of parts of a sum",
    "the report counts 1 / (R N)",
    named="divided by the global batch, then averaged",
    where="report",
)
def reported_mean_of_parts(net: Net, x: Any, y: Any) -> Any:
    loss = tf.nn.compute_average_loss(net.losses(x, y))
    return loss, loss / replicas()


@case(
    "tensorflow/tensorflow#45923",
    "the update is right; each replica reports its mean, and reports are added",
    "the report counts 1 / n_r",
    named="mean per replica, then sum",
    where="report",
)
def reported_sum_of_means(net: Net, x: Any, y: Any) -> Any:
    losses = net.losses(x, y)
    return tf.nn.compute_average_loss(losses), tf.reduce_mean(losses)


@case(
    "tensorflow/docs#608",
    "update and report are shares of the global mean",
    "1 / N in both",
    "right",
)
def reported_shares(net: Net, x: Any, y: Any) -> Any:
    loss = tf.nn.compute_average_loss(net.losses(x, y))
    return loss, loss


@case(
    "tensorflow/models#6195",
    "before: the L2 loss is added on every replica as it is",
    "two parts: 1 / N; the decay counts R times",
    named="regularisation counts once on every replica",
)
def l2_on_every_replica(net: Net, x: Any, y: Any) -> Any:
    l2_loss = 0.05 * tf.add_n([tf.reduce_sum(tf.square(v)) for v in net.variables])
    return tf.nn.compute_average_loss(net.losses(x, y)) + l2_loss


@case(
    "tensorflow/models#6601",
    "scale_regularization_loss",
    "1 / N; the decay counts once",
    "right",
)
def scaled_regularization(net: Net, x: Any, y: Any) -> Any:
    l2_loss = 0.05 * tf.add_n([tf.reduce_sum(tf.square(v)) for v in net.variables])
    average = tf.nn.compute_average_loss(net.losses(x, y))
    return average + tf.nn.scale_regularization_loss(l2_loss)


@case(
    "vahidk/TensorflowFramework#3",
    "the regularisation loss is there for the first tower only, added once",
    "1 / N; the decay counts once",
    "right",
)
def regularised_on_first_tower(net: Net, x: Any, y: Any) -> Any:
    first = tf.distribute.get_replica_context().replica_id_in_sync_group == 0
    l2_loss = 0.05 * tf.add_n([tf.reduce_sum(tf.square(v)) for v in net.variables])
    return tf.nn.compute_average_loss(net.losses(x, y)) + l2_loss * tf.cast(first, "float32")


@case(
    "OpenNMT/OpenNMT-tf#820",
    "weighted losses over a replica's sentences, not over weights, by the replicas",
    "w_i / (R n_r)",
    named="mean of the replicas' means",
    batch=weighted,
)
def weighted_over_sentences(net: Net, x: Any, y: Any, w: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y) * w) / size(x) / replicas()


@case(
    "OpenNMT/OpenNMT-tf#820",
    "the fix: over the weights of all replicas",
    "w_i / W",
    "right",
    batch=weighted,
    weights=COUNTS,
)
def weighted_over_weights(net: Net, x: Any, y: Any, w: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y) * w) / summed(tf.reduce_sum(w))


@case(
    "fizyr/keras-retinanet#339",
    "each replica divides by its positive anchors, by the replicas",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    batch=text,
    weights=COUNTS,
)
def positive_anchors(net: Net, x: Any, y: Any, mask: Any) -> Any:
    normalizer = tf.maximum(1.0, tf.reduce_sum(mask))
    return tf.reduce_sum(net.losses(x, y) * mask) / normalizer / replicas()


@case(
    "fizyr/keras-retinanet#709",
    "positive anchors of all replicas",
    "w_i / W",
    "right",
    batch=text,
    weights=COUNTS,
)
def positive_anchors_of_all(net: Net, x: Any, y: Any, mask: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y) * mask) / summed(tf.reduce_sum(mask))


@case(
    "tensorflow/tensorflow#33651",
    "masks: reduce_mean over all positions, padding included, times the share of the global batch",
    "1 / N for the mean over 5 positions of each example",
    "right",
    batch=text,
)
def mean_over_positions(net: Net, x: Any, y: Any, mask: Any) -> Any:
    return tf.nn.compute_average_loss(tf.reduce_mean(net.losses(x, y) * mask, axis=1))


@case(
    "tensorflow/tensorflow#35093",
    "a loss class that takes tf.math.reduce_mean of masked tokens on each replica, added",
    "w_i / W_r, R times too much",
    named="mean per replica, then sum",
    batch=text,
)
def masked_mean_added(net: Net, x: Any, y: Any, mask: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y) * mask) / tf.reduce_sum(mask)


@case(
    "horovod/horovod#1240",
    "Sum of the workers' means: Horovod with op=Sum",
    "1 / n_r, R times too much",
    named="mean per replica, then sum",
    equal_shards=True,
)
def sum_over_workers(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_mean(net.losses(x, y))


@case(
    "tensorflow/tensorflow#48912",
    "gradients are right; the loss that is tracked is multiplied by the replicas, a mean of means",
    "1 / (R n_r) in both, which is 1 / N for equal shares",
    "even",
)
def tracked_times_replicas(net: Net, x: Any, y: Any) -> Any:
    loss = tf.reduce_mean(net.losses(x, y)) / replicas()
    return loss, loss


@case(
    "keras-team/keras#15509",
    "custom train_step: fit reports the first replica's part of the global mean",
    "the report counts 1 / N for the first replica's examples, 0 for others",
    named="the replicas are not reduced, though divided by all",
    where="report",
)
def reported_first(net: Net, x: Any, y: Any) -> Any:
    loss = tf.nn.compute_average_loss(net.losses(x, y))
    first = tf.distribute.get_replica_context().replica_id_in_sync_group == 0
    return loss, loss * tf.cast(first, "float32")
