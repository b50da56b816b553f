"""Keras's losses and metrics of ragged tensors, for TensorFlow to record and samegrad to run."""

from __future__ import annotations

from typing import Any

REDUCTIONS = ("sum_over_batch_size", "sum", "none", "mean_with_sample_weight")
# Labels and predictions: vectors, and rows of vectors.
LABELS = {
    "vectors": [[1.0, 0.0, 1.0], [0.0], [1.0, 1.0]],
    "matrices": [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0]], [[1.0, 1.0], [0.0, 0.0], [1.0, 0.0]]],
}
PREDICTIONS = {
    "vectors": [[0.5, 0.25, 0.75], [0.4], [0.9, 0.3]],
    "matrices": [[[0.5, 0.25], [0.75, 0.1]], [[0.4, 0.9]], [[0.3, 0.6], [0.2, 0.8], [0.7, 0.35]]],
}
WEIGHTS = [1.0, 2.0, 3.0]
REFUSED = "refused"


def operands(tf: Any, kind: str) -> tuple[Any, Any]:
    """Return the ragged labels and predictions of a kind."""
    ranks = {} if kind == "vectors" else {"inner_shape": (2,)}
    return tuple(tf.ragged.constant(rows[kind], **ranks) for rows in (LABELS, PREDICTIONS))


def classes(module: Any, base: str) -> list[str]:
    """Return the names of a module's classes of losses or metrics."""
    above = getattr(module, base)
    found = {name: getattr(module, name) for name in dir(module) if name[:1].isupper()}
    return [
        name
        for name, thing in found.items()
        if isinstance(thing, type) and issubclass(thing, above) and thing.__name__ == name != base
    ]


def losses(keras: Any) -> list[str]:
    """Return what `loss` takes: class, reduction, kind of operands and weights."""
    names = classes(keras.losses, "Loss")
    of_all = [f"{name} {reduction}" for name in names for reduction in REDUCTIONS]
    cases = [f"{one} {kind}" for one in of_all for kind in LABELS]
    return cases + [f"{name} {REDUCTIONS[0]} vectors weighted" for name in names]


def metrics(keras: Any) -> list[str]:
    """Return what `metric` takes: class, kind of operands and weights."""
    names = classes(keras.metrics, "Metric")
    cases = [f"{name} {kind}" for name in names for kind in LABELS]
    return cases + [f"{name} vectors weighted" for name in names]


def loss(tf: Any, keras: Any, case: str, scale: Any = None) -> Any:
    """Return a loss of ragged labels and predictions, these times a scale."""
    name, reduction, kind, *weighted = case.split()
    labels, predictions = operands(tf, kind)
    if scale is not None:
        predictions = predictions * scale
    weights = tf.constant(WEIGHTS) if weighted else None
    made = getattr(keras.losses, name)(reduction=reduction)
    return made(labels, predictions, sample_weight=weights)


def update(tf: Any, metric: Any, case: str) -> None:
    """Update a metric with ragged labels and predictions, or with the predictions alone."""
    name, kind, *weighted = case.split()
    labels, predictions = operands(tf, kind)
    weights = tf.constant(WEIGHTS) if weighted else None
    given = (predictions,) if name in ("Mean", "Sum") else (labels, predictions)
    metric.update_state(*given, sample_weight=weights)


def metric(tf: Any, keras: Any, case: str) -> Any:
    """Return the result of a metric of ragged labels and predictions."""
    made = getattr(keras.metrics, case.split()[0])()
    update(tf, made, case)
    return made.result()


def plain(value: Any) -> Any:
    """Return a number or a list of numbers."""
    return value.to_list() if hasattr(value, "to_list") else value.numpy().tolist()
