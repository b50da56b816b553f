"""What tf.keras has that training loops of authors need: layers, optimizers, metrics, losses."""

from __future__ import annotations

from typing import Any

import numpy as np
from manner_programs import manner, refused

TRUE = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], "float32")
GUESSED = np.array([[0.2, 0.7], [0.6, 0.4], [0.8, 0.3]], "float32")


def near(x: Any) -> Any:
    return np.round(np.asarray(x, np.float64), 4)


@manner
def layers_that_loops_need(tf: Any) -> Any:
    keras, ones = tf.keras, np.ones
    inputs = keras.Input((4,))
    penalized = keras.layers.Dense(3, activity_regularizer=keras.regularizers.L2(0.1))
    outputs = keras.layers.BatchNormalization()(penalized(inputs))
    model = keras.Model(inputs=inputs, outputs=outputs)
    whole = keras.layers.Dense(
        2, kernel_constraint=keras.constraints.NonNeg(), kernel_initializer="ones"
    )
    convolution = keras.layers.Conv2D(2, 3, activity_regularizer="l2")
    convolution(ones((1, 5, 5, 1), "float32"))

    class Sum(keras.Model):
        def call(self, x: Any, y: Any) -> Any:
            return x + y

    return [
        model(ones((2, 4), "float32")).shape.as_list(),
        keras.layers.LSTM(3)(ones((2, 4, 5), "float32")).shape.as_list(),
        whole(ones((2, 3), "int32")),
        Sum()(x=tf.ones([1]), y=tf.ones([1])),
        len(convolution.losses),
    ]


@manner
def steps_of_optimizers(tf: Any) -> Any:
    names = [
        "RMSprop", "Adagrad", "AdamW", "Adadelta", "Adamax", "Nadam", "Ftrl", "Lion", "Adafactor",
        "SGD", "Adam",
    ]  # fmt: skip
    optimizers = [getattr(tf.keras.optimizers, name)(0.1) for name in names]
    for options in ({"weight_decay": 0.1}, {"use_ema": True}, {"clipnorm": 0.1}):
        optimizers.append(tf.keras.optimizers.Adam(0.1, **options))
    found = []
    for optimizer in optimizers:
        v = tf.Variable([1.0, 2.0])
        for _ in range(3):
            optimizer.apply_gradients([(tf.constant([0.1, 0.2]), v)])
        found.append(near(v))
    return found


@manner
def steps_of_schedule_free_adamw(tf: Any) -> Any:
    optimizer, v = tf.keras.optimizers.ScheduleFreeAdamW(0.1), tf.Variable([1.0])
    found = []
    for slope in (0.1, 0.3, -0.2):
        optimizer.apply_gradients([(tf.constant([slope]), v)])
        found.append(near(v))
    return found


@manner
def rates_that_change(tf: Any) -> Any:
    schedules = tf.keras.optimizers.schedules
    made = [
        schedules.PolynomialDecay(0.1, 10),
        schedules.CosineDecay(0.1, 10),
        schedules.CosineDecayRestarts(0.1, 10),
        schedules.PiecewiseConstantDecay([3, 6], [0.1, 0.2, 0.3]),
        schedules.InverseTimeDecay(0.1, 10, 0.5),
        schedules.ExponentialDecay(0.1, 10, 0.5),
    ]
    return [[float(schedule(step)) for step in (0, 4, 9, 12)] for schedule in made]


@manner
def metrics_by_name(tf: Any) -> Any:
    names = [
        "AUC", "Precision", "Recall", "TruePositives", "TrueNegatives", "FalsePositives",
        "FalseNegatives", "BinaryCrossentropy", "CategoricalCrossentropy",
        "TopKCategoricalAccuracy", "RootMeanSquaredError", "MeanAbsolutePercentageError",
        "KLDivergence", "CosineSimilarity",
    ]  # fmt: skip
    metrics = [getattr(tf.keras.metrics, name)() for name in names]
    for name in ("PrecisionAtRecall", "RecallAtPrecision", "SensitivityAtSpecificity"):
        metrics.append(getattr(tf.keras.metrics, name)(0.5))
    found = []
    for metric in metrics:
        metric.update_state(TRUE, GUESSED)
        found.append([type(metric).__name__, near(metric.result())])
    return found


@manner
def losses_by_name(tf: Any) -> Any:
    names = [
        "Huber", "KLDivergence", "Hinge", "SquaredHinge", "CategoricalHinge", "LogCosh", "Poisson",
        "CosineSimilarity", "MeanAbsolutePercentageError", "MeanSquaredLogarithmicError",
        "BinaryFocalCrossentropy", "CategoricalFocalCrossentropy",
    ]  # fmt: skip
    losses = tf.keras.losses
    sparse = losses.SparseCategoricalCrossentropy(ignore_class=-1)
    return [
        *[near(getattr(losses, name)()(TRUE, GUESSED)) for name in names],
        near(sparse(np.array([1, -1, 0]), GUESSED)),
        near(losses.CategoricalCrossentropy(axis=0)(TRUE, GUESSED)),
        callable(losses.get("mse")),
        callable(tf.keras.metrics.get("mse")),
    ]


@manner
def no_gradients_at_all(tf: Any) -> Any:
    optimizer = tf.keras.optimizers.SGD(0.1)
    return refused(lambda: optimizer.apply_gradients([]), ValueError, IndexError)


@manner
def weights_have_shapes_with_methods(tf: Any) -> Any:
    layer = tf.keras.layers.Dense(2)
    layer.build((None, 3))
    kernel = layer.trainable_variables[0]
    return [
        kernel.shape.as_list(),
        kernel.shape.num_elements(),
        kernel.shape.rank,
        kernel.shape == (3, 2),
        sum(w.shape.num_elements() for w in layer.weights),
    ]
