"""tf.distribute's loops, written with samegrad."""

from __future__ import annotations

from samegrad_steps import *


@case(
    "tensorflow/community#25",
    "reduce_mean of a replica's batch; gradients are added",
    "1 / n_r, R times too much",
    named="mean per replica, then sum",
)
def mean_of_a_replica(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_mean(net.losses(x, y))


@case(
    "lululxvi/deepxde#1285",
    "means of replicas over their number, replicas have different sizes",
    "1 / (R n_r)",
    named="mean of the replicas' means",
)
def mean_over_workers(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_mean(net.losses(x, y)) / replicas()


@case(
    "tensorflow/probability#651",
    "the divergence of the kernels is added once by every replica, data terms over all examples",
    "1 / N for examples, the divergence R times",
    named="regularisation counts once on every replica",
)
def divergence_by_replicas(net: Net, x: Any, y: Any) -> Any:
    divergence = tf.add_n([tf.reduce_sum(tf.square(v)) for v in net.variables])
    return tf.nn.compute_average_loss(net.losses(x, y)) + 0.05 * divergence


@case(
    "sql-machine-learning/elasticdl#2409",
    "the sum over the global count, divided by the number of workers once more",
    "1 / (R N)",
    named="divided by the global batch, then averaged",
)
def divided_by_workers_again(net: Net, x: Any, y: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y)) / summed(size(x)) / replicas()


@case(
    "VladimirLi/tfVideoResearch#35",
    "the normalization for distributed training: masked sums over the frames of all replicas",
    "w_i / W",
    "right",
    batch=text,
    weights=COUNTS,
)
def frames_of_all(net: Net, x: Any, y: Any, mask: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y) * mask) / summed(tf.reduce_sum(mask))


@case(
    "VladimirLi/tfVideoResearch#35",
    "the normalization before: the clips' weights of a replica, over the replicas",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    batch=weighted,
    weights=COUNTS,
)
def weights_of_a_replica(net: Net, x: Any, y: Any, w: Any) -> Any:
    return tf.reduce_sum(net.losses(x, y) * w) / tf.reduce_sum(w) / replicas()
