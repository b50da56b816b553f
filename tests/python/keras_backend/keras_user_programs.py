"""Programs as users write them, which run with samegrad or with TensorFlow as `tf`.

Each takes `tf` and a strategy, and returns what three epochs of 8 examples in batches of 5 and 3
give: losses and metrics by name. Weights are drawn by NumPy, so that both begin with the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Program = Callable[[Any, Any], dict[str, Any]]
PROGRAMS: dict[str, Program] = {}


def program(function: Program) -> Program:
    """Lists a program under its name."""
    PROGRAMS[function.__name__] = function
    return function


def drawn(shape: Any, seed: int = 0) -> Any:
    """Numbers of a normal distribution."""
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def start(model: Any) -> Any:
    """The model with weights that NumPy draws."""
    rng = np.random.default_rng(1)
    for weight in model.trainable_weights:
        value = 0.3 * rng.normal(size=tuple(weight.shape))
        weight.assign(value + 1 if "gamma" in weight.path else value)
    return model


def fitted(model: Any, x: Any, y: Any = None, epochs: int = 3, **kwargs: Any) -> dict[str, Any]:
    """The history of a fit."""
    if "steps_per_epoch" not in kwargs and not hasattr(x, "element_spec"):
        kwargs = {"batch_size": 5, **kwargs}
    history = model.fit(x, y, epochs=epochs, shuffle=False, verbose=0, **kwargs).history
    return {key: [float(np.mean(v)) for v in values] for key, values in history.items()}


@program
def frozen_batch_normalization(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    with strategy.scope():
        base = keras.Sequential([
            keras.Input((6, 6, 2)), keras.layers.Conv2D(4, 3, padding="same"),
            keras.layers.BatchNormalization(), keras.layers.ReLU(), keras.layers.MaxPooling2D(),
        ])  # fmt: skip
        base.trainable = False
        inputs = keras.Input((6, 6, 2))
        x = base(inputs, training=False)
        x = keras.layers.GlobalAveragePooling2D()(x)
        model = keras.Model(inputs, keras.layers.Dense(3, activation="softmax")(x))
        base.trainable = True
        start(model)
        base.trainable = False
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    x, y = drawn((8, 6, 6, 2)), np.arange(8) % 3
    first = fitted(model, x, y)
    with strategy.scope():
        base.trainable = True
        model.compile(keras.optimizers.Adam(1e-2), "sparse_categorical_crossentropy")
    second = fitted(model, x, y)
    return {**first, "later": second["loss"]}


@program
def multi_output(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    with strategy.scope():
        inputs = keras.Input((4,), name="features")
        x = keras.layers.Dense(6, activation="tanh")(inputs)
        score = keras.layers.Dense(1, name="score")(x)
        kind = keras.layers.Dense(3, activation="softmax", name="kind")(x)
        model = start(keras.Model(inputs, {"score": score, "kind": kind}))
        model.compile(
            keras.optimizers.RMSprop(1e-2),
            loss={"score": "mse", "kind": "categorical_crossentropy"},
            loss_weights={"score": 0.5, "kind": 2.0},
            metrics={"score": ["mae"], "kind": ["acc"]},
        )
    targets = {"score": drawn((8, 1), 3), "kind": np.eye(3)[np.arange(8) % 3]}
    return fitted(model, {"features": drawn((8, 4))}, targets)


@program
def siamese(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras

    def contrastive(y: Any, distance: Any) -> Any:
        y = tf.cast(y, distance.dtype)
        near = y * tf.square(distance)
        far = (1.0 - y) * tf.square(tf.maximum(1.0 - distance, 0.0))
        return tf.reduce_mean(near + far)

    with strategy.scope():
        tower = keras.Sequential([keras.layers.Dense(5, activation="relu"), keras.layers.Dense(3)])
        left, right = keras.Input((4,)), keras.Input((4,))
        distance = keras.layers.Lambda(
            lambda t: tf.sqrt(
                tf.maximum(tf.reduce_sum(tf.square(t[0] - t[1]), axis=1, keepdims=True), 1e-7)
            ),
            output_shape=(1,),
        )([tower(left), tower(right)])
        model = start(keras.Model([left, right], distance))
        model.compile("sgd", contrastive)
    return fitted(model, [drawn((8, 4)), drawn((8, 4), 1)], (np.arange(8) % 2)[:, None])


@program
def nested_tapes(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras

    class Smooth(keras.Model):  # type: ignore[misc,name-defined]
        def train_step(self, data: Any) -> Any:
            x, y = data
            with tf.GradientTape() as outer:
                with tf.GradientTape() as inner:
                    inner.watch(x)
                    pred = self(x, training=True)
                slope = inner.gradient(pred, x)
                penalty = tf.reduce_sum(tf.square(slope), axis=1)
                loss = self.compute_loss(y=y, y_pred=pred, sample_weight=1.0 + 0.0 * penalty)
                extra = self.compute_loss(y=tf.zeros_like(penalty)[:, None], y_pred=slope)
                total = loss + 0.1 * extra
            grads = outer.gradient(total, self.trainable_variables)
            self.optimizer.apply_gradients(zip(grads, self.trainable_variables, strict=False))
            for metric in self.metrics:
                if metric.name == "loss":
                    metric.update_state(total)
                else:
                    metric.update_state(y, pred)
            return {m.name: m.result() for m in self.metrics}

    with strategy.scope():
        inputs = keras.Input((3,))
        x = keras.layers.Dense(8, activation="tanh")(inputs)
        model = start(Smooth(inputs, keras.layers.Dense(1)(x)))
        model.compile("sgd", "mse", metrics=["mae"])
    found = fitted(model, drawn((8, 3)), drawn((8, 1), 1))
    return {"mae": found["mae"], "out": model.predict(drawn((8, 3)), verbose=0).sum()}


@program
def gan(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras

    class Gan(keras.Model):  # type: ignore[misc,name-defined]
        def __init__(self, discriminator: Any, generator: Any) -> None:
            super().__init__()
            self.discriminator, self.generator = discriminator, generator

        def compile(self, d_optimizer: Any, g_optimizer: Any, loss_fn: Any) -> None:
            super().compile()
            self.d_optimizer, self.g_optimizer, self.loss_fn = d_optimizer, g_optimizer, loss_fn
            self.d_metric = keras.metrics.Mean(name="d_loss")
            self.g_metric = keras.metrics.Mean(name="g_loss")

        @property
        def metrics(self) -> Any:
            return [self.d_metric, self.g_metric]

        def train_step(self, data: Any) -> Any:
            real, noise = data
            fake = self.generator(noise)
            both = tf.concat([fake, real], axis=0)
            labels = tf.concat([tf.ones((tf.shape(noise)[0], 1)), tf.zeros((tf.shape(real)[0], 1))],
                               axis=0)  # fmt: skip
            with tf.GradientTape() as tape:
                d_loss = self.loss_fn(labels, self.discriminator(both))
            grads = tape.gradient(d_loss, self.discriminator.trainable_weights)
            self.d_optimizer.apply_gradients(
                zip(grads, self.discriminator.trainable_weights, strict=False)
            )
            wrong = tf.zeros((tf.shape(noise)[0], 1))
            with tf.GradientTape() as tape:
                g_loss = self.loss_fn(wrong, self.discriminator(self.generator(noise)))
            grads = tape.gradient(g_loss, self.generator.trainable_weights)
            self.g_optimizer.apply_gradients(
                zip(grads, self.generator.trainable_weights, strict=False)
            )
            self.d_metric.update_state(d_loss)
            self.g_metric.update_state(g_loss)
            return {"d_loss": self.d_metric.result(), "g_loss": self.g_metric.result()}

    with strategy.scope():
        discriminator = start(keras.Sequential([
            keras.Input((3,)), keras.layers.Dense(4), keras.layers.LeakyReLU(),
            keras.layers.Dense(1),
        ]))  # fmt: skip
        generator = start(keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)]))
        model = Gan(discriminator, generator)
        model.compile(
            keras.optimizers.Adam(1e-2), keras.optimizers.Adam(1e-2),
            keras.losses.BinaryCrossentropy(from_logits=True),
        )  # fmt: skip
    return fitted(model, drawn((5, 3)), drawn((5, 2), 1))


def _vae_layer(tf: Any) -> Any:
    class Sampling(tf.keras.layers.Layer):  # type: ignore[misc,name-defined]
        def call(self, inputs: Any) -> Any:
            mean, log_var, noise = inputs
            kl = -0.5 * tf.reduce_mean(1 + log_var - tf.square(mean) - tf.exp(log_var))
            self.add_loss(0.1 * kl)
            return mean + tf.exp(0.5 * log_var) * noise

    return Sampling()


@program
def vae_add_loss(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    with strategy.scope():
        inputs, noise = keras.Input((6,)), keras.Input((2,))
        h = keras.layers.Dense(5, activation="relu")(inputs)
        z = _vae_layer(tf)([keras.layers.Dense(2)(h), keras.layers.Dense(2)(h), noise])
        model = start(keras.Model([inputs, noise], keras.layers.Dense(6)(z)))
        model.compile(keras.optimizers.Adam(1e-2), "mse")
    x = drawn((8, 6))
    return fitted(model, [x, drawn((8, 2), 1)], x)


@program
def vae_train_step(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras

    class Vae(keras.Model):  # type: ignore[misc,name-defined]
        def __init__(self, encoder: Any, decoder: Any) -> None:
            super().__init__()
            self.encoder, self.decoder = encoder, decoder
            self.total = keras.metrics.Mean(name="total")

        @property
        def metrics(self) -> Any:
            return [self.total]

        def train_step(self, data: Any) -> Any:
            x, noise = data
            with tf.GradientTape() as tape:
                mean, log_var = self.encoder(x)
                out = self.decoder(mean + tf.exp(0.5 * log_var) * noise)
                rebuilt = tf.reduce_sum(keras.losses.binary_crossentropy(x, out), axis=(1, 2))
                kl = -0.5 * (1 + log_var - tf.square(mean) - tf.exp(log_var))
                total = tf.nn.compute_average_loss(rebuilt + tf.reduce_sum(kl, axis=1))
            grads = tape.gradient(total, self.trainable_weights)
            self.optimizer.apply_gradients(zip(grads, self.trainable_weights, strict=False))
            self.total.update_state(total)
            return {"total": self.total.result()}

    with strategy.scope():
        inputs = keras.Input((4, 4, 1))
        h = keras.layers.Flatten()(keras.layers.Conv2D(2, 3, activation="relu")(inputs))
        encoder = keras.Model(inputs, [keras.layers.Dense(2)(h), keras.layers.Dense(2)(h)])
        decoder = keras.Sequential([
            keras.Input((2,)), keras.layers.Dense(8, activation="relu"),
            keras.layers.Reshape((2, 2, 2)),
            keras.layers.Conv2DTranspose(1, 3, strides=2, padding="same", activation="sigmoid"),
        ])  # fmt: skip
        model = Vae(start(encoder), start(decoder))
        model.compile(keras.optimizers.Adam(1e-2))
    x = 1 / (1 + np.exp(-drawn((5, 4, 4, 1))))
    return fitted(model, x, drawn((5, 2), 1))


@program
def stateful_lstm(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    with strategy.scope():
        layer = keras.layers.LSTM(3, stateful=True)
        model = start(
            keras.Sequential([keras.Input(batch_shape=(5, 4, 2)), layer, keras.layers.Dense(1)])
        )
        model.compile("adam", "mse")
    x, y = drawn((10, 4, 2)), drawn((10, 1), 1)
    found = fitted(model, x, y)["loss"]
    layer.reset_states()
    return {"loss": found + fitted(model, x, y)["loss"]}


@program
def masks_through_wrappers(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    with strategy.scope():
        model = start(keras.Sequential([
            keras.Input((4,), dtype="int32"),
            keras.layers.Embedding(6, 3, mask_zero=True),
            keras.layers.Bidirectional(keras.layers.GRU(2, return_sequences=True)),
            keras.layers.TimeDistributed(keras.layers.Dense(2, activation="relu")),
            keras.layers.LSTM(3),
            keras.layers.Dense(1),
        ]))  # fmt: skip
        model.compile("sgd", "mse")
    x = np.random.default_rng(0).integers(0, 6, (8, 4))
    x[:, 0] = 1
    return fitted(model, x, drawn((8, 1)))


@program
def attention_seq2seq(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    with strategy.scope():
        source, target = keras.Input((5,)), keras.Input((4,))
        encoded, h, c = keras.layers.LSTM(4, return_sequences=True, return_state=True)(
            keras.layers.Embedding(7, 4, mask_zero=True)(source)
        )
        decoded = keras.layers.LSTM(4, return_sequences=True)(
            keras.layers.Embedding(7, 4, mask_zero=True)(target), initial_state=[h, c]
        )
        context = keras.layers.Attention()([decoded, encoded])
        joined = keras.layers.Concatenate()([decoded, context])
        model = start(
            keras.Model([source, target], keras.layers.Dense(7, activation="softmax")(joined))
        )
        model.compile(keras.optimizers.SGD(0.1), "sparse_categorical_crossentropy",
                      weighted_metrics=["accuracy"])  # fmt: skip
    rng = np.random.default_rng(2)
    source, target = rng.integers(1, 7, (8, 5)), rng.integers(1, 7, (8, 4))
    source[::2, 3:] = 0
    target[1::3, 2:] = 0
    return fitted(model, [source, target], np.roll(target, -1, axis=1))


@program
def own_metric(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras

    class Positives(keras.metrics.Metric):  # type: ignore[misc,name-defined]
        def __init__(self, name: str = "positives", **kwargs: Any) -> None:
            super().__init__(name=name, **kwargs)
            self.count = self.add_weight(name="count", initializer="zeros")

        def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
            hit = tf.cast(tf.equal(tf.cast(y_true, "int64"), tf.argmax(y_pred, axis=1)[:, None]),
                          "float32")  # fmt: skip
            if sample_weight is not None:
                hit = hit * tf.cast(sample_weight, "float32")[:, None]
            self.count.assign_add(tf.reduce_sum(hit))

        def result(self) -> Any:
            return self.count

        def reset_state(self) -> None:
            self.count.assign(0.0)

    with strategy.scope():
        model = start(keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)]))
        model.compile(
            keras.optimizers.SGD(0.1),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=[Positives(), keras.metrics.SparseTopKCategoricalAccuracy(2)],
        )
    return fitted(model, drawn((8, 4)), (np.arange(8) % 3)[:, None])


@program
def own_regularizer_constraint_initializer(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras

    class Spread(keras.regularizers.Regularizer):  # type: ignore[misc,name-defined]
        def __call__(self, x: Any) -> Any:
            return 0.01 * tf.reduce_sum(tf.square(tf.matmul(tf.transpose(x), x) - tf.eye(3)))

    class Short(keras.constraints.Constraint):  # type: ignore[misc,name-defined]
        def __call__(self, w: Any) -> Any:
            return w / tf.maximum(tf.norm(w, axis=0, keepdims=True), 1.0)

    class Steps(keras.initializers.Initializer):  # type: ignore[misc,name-defined]
        def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
            size = int(np.prod(shape))
            return tf.reshape(tf.cast(tf.range(size), dtype or "float32"), shape) / size

    with strategy.scope():
        model = keras.Sequential([
            keras.Input((4,)),
            keras.layers.Dense(3, kernel_initializer=Steps(), kernel_regularizer=Spread(),
                               kernel_constraint=Short(), bias_initializer=Steps()),
            keras.layers.Dense(1, kernel_initializer=Steps()),
        ])  # fmt: skip
        model.compile(keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True), "mae")
    return fitted(model, drawn((8, 4)), drawn((8, 1), 1))


@program
def learning_rates(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    with strategy.scope():
        model = start(keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)]))
        schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5, staircase=True)
        model.compile(keras.optimizers.Adam(schedule), "mse")
    x, y = drawn((8, 4)), drawn((8, 1), 1)
    found = fitted(model, x, y)["loss"]
    with strategy.scope():
        model.compile(keras.optimizers.SGD(0.1), "mse")
    model.optimizer.learning_rate.assign(0.05)
    found += fitted(model, x, y)["loss"]
    model.optimizer.learning_rate = 0.01
    calls = [
        keras.callbacks.LearningRateScheduler(lambda epoch, lr: lr * 0.5),
        keras.callbacks.ReduceLROnPlateau(monitor="loss", patience=1, min_delta=1.0, factor=0.1),
    ]
    found += fitted(model, x, y, callbacks=calls)["loss"]
    return {"loss": found, "rate": float(model.optimizer.learning_rate)}


@program
def weight_normalization(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras

    class WeightNorm(keras.layers.Wrapper):  # type: ignore[misc,name-defined]
        def build(self, input_shape: Any) -> None:
            self.layer.build(input_shape)
            self.g = self.add_weight(shape=(self.layer.units,), initializer="ones", name="gamma")
            self.built = True

        def call(self, x: Any) -> Any:
            v = self.layer.kernel
            kernel = self.g * v / tf.norm(v, axis=0)
            return tf.matmul(x, kernel) + self.layer.bias

    with strategy.scope():
        model = start(keras.Sequential([
            keras.Input((4,)), WeightNorm(keras.layers.Dense(5)), keras.layers.ReLU(),
            keras.layers.Dense(1),
        ]))  # fmt: skip
        model.compile("adam", "mse")
    return fitted(model, drawn((8, 4)), drawn((8, 1), 1))


@program
def spectral_normalization(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    with strategy.scope():
        wrapped = keras.layers.SpectralNormalization(keras.layers.Conv2D(3, 2), power_iterations=2)
        model = keras.Sequential(
            [keras.Input((4, 4, 2)), wrapped, keras.layers.Flatten(), keras.layers.Dense(1)]
        )
        start(model)
        wrapped.vector_u.assign(drawn(wrapped.vector_u.shape, 4))
        model.compile("sgd", "mse")
    return fitted(model, drawn((8, 4, 4, 2)), drawn((8, 1), 1))


@program
def gradient_accumulation(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    with strategy.scope():
        model = start(keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)]))
        model.compile(keras.optimizers.Adam(0.1, gradient_accumulation_steps=2), "mse")
    return fitted(model, drawn((10, 4)), drawn((10, 1), 1))


@program
def accumulated_by_hand(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras

    class Accumulating(keras.Model):  # type: ignore[misc,name-defined]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.seen = tf.Variable(0, trainable=False, dtype="int32")
            self.sums = [tf.Variable(tf.zeros(v.shape), trainable=False)
                         for v in self.trainable_variables]  # fmt: skip

        def train_step(self, data: Any) -> Any:
            self.seen.assign_add(1)
            x, y = data
            with tf.GradientTape() as tape:
                pred = self(x, training=True)
                loss = self.compute_loss(x, y, pred)
            for total, grad in zip(
                self.sums, tape.gradient(loss, self.trainable_variables), strict=False
            ):
                total.assign_add(grad)
            tf.cond(tf.equal(self.seen, 2), self.apply, lambda: None)
            for metric in self.metrics:
                if metric.name != "loss":
                    metric.update_state(y, pred)
            return {m.name: m.result() for m in self.metrics if m.name != "loss"}

        def apply(self) -> None:
            self.optimizer.apply_gradients(zip(self.sums, self.trainable_variables, strict=False))
            self.seen.assign(0)
            for total in self.sums:
                total.assign(tf.zeros_like(total))

    with strategy.scope():
        inputs = keras.Input((4,))
        model = start(Accumulating(inputs, keras.layers.Dense(1)(inputs)))
        model.compile(keras.optimizers.SGD(0.1), "mse", metrics=["mse"])
    return fitted(model, drawn((10, 4)), drawn((10, 1), 1))


@program
def mixed_precision(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    policy = keras.mixed_precision.Policy("mixed_float16")
    with strategy.scope():
        model = start(keras.Sequential([
            keras.Input((4,)), keras.layers.Dense(8, activation="relu", dtype=policy),
            keras.layers.Dense(1, dtype="float32"),
        ]))  # fmt: skip
        inner = keras.optimizers.SGD(0.1)
        model.compile(keras.mixed_precision.LossScaleOptimizer(inner, initial_scale=1024.0), "mse")
    return fitted(model, drawn((8, 4)), drawn((8, 1), 1))


@program
def model_surgery(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    with strategy.scope():
        inputs = keras.Input((6, 6, 1))
        x = keras.layers.Conv2D(3, 3, activation="relu", name="first")(inputs)
        x = keras.layers.BatchNormalization(name="norm")(x)
        x = keras.layers.Flatten()(x)
        whole = start(keras.Model(inputs, keras.layers.Dense(4, name="head")(x)))
        part = keras.Model(whole.input, whole.get_layer("norm").output)
        pooled = keras.layers.GlobalMaxPooling2D()(part.output)
        model = keras.Model(part.input, keras.layers.Dense(1, kernel_initializer="ones")(pooled))
        model.compile("adam", "mse")
    x = drawn((8, 6, 6, 1))
    found = fitted(model, x, drawn((8, 1), 1))
    return {**found, "whole": float(np.abs(whole.predict(x, verbose=0)).sum())}


@program
def cloned(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    with strategy.scope():
        model = start(keras.Sequential([
            keras.Input((4,)), keras.layers.Dense(5, activation="relu"), keras.layers.Dense(2),
        ]))  # fmt: skip

        def wide(layer: Any) -> Any:
            config = layer.get_config()
            if layer.__class__.__name__ == "Dense" and config["activation"] == "relu":
                config["activation"] = "tanh"
            return layer.__class__.from_config(config)

        clone = keras.models.clone_model(model, clone_function=wide)
        clone.set_weights(model.get_weights())
        clone.compile("rmsprop", "huber")
    return fitted(clone, drawn((8, 4)), drawn((8, 2), 1))


@program
def subclass_without_build(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras

    class Block(keras.layers.Layer):  # type: ignore[misc,name-defined]
        def __init__(self, units: int) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(units)
            self.norm = keras.layers.LayerNormalization()

        def call(self, x: Any, training: bool = False) -> Any:
            return tf.nn.relu(self.norm(self.dense(x))) + x

    class Net(keras.Model):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.blocks = [Block(4) for _ in range(2)]
            self.heads = {"a": keras.layers.Dense(1), "b": keras.layers.Dense(1)}

        def call(self, inputs: Any, training: bool = False) -> Any:
            x = inputs
            for block in self.blocks:
                x = block(x, training=training)
            return self.heads["a"](x) - self.heads["b"](x)

    with strategy.scope():
        model = Net()
        model(np.zeros((1, 4), "float32"))
        start(model)
        model.compile("adagrad", "mse")
    return fitted(model, drawn((8, 4)), drawn((8, 1), 1))


@program
def dict_inputs(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    with strategy.scope():
        age = keras.Input((1,), name="age")
        job = keras.Input((1,), name="job", dtype="int32")
        tags = keras.Input((3,), name="tags", dtype="int32")
        parts = [
            keras.layers.Normalization(mean=[40.0], variance=[100.0])(age),
            keras.layers.Flatten()(keras.layers.Embedding(5, 2)(job)),
            keras.layers.CategoryEncoding(4, output_mode="multi_hot")(tags),
        ]
        x = keras.layers.Dense(4, activation="relu")(keras.layers.Concatenate()(parts))
        model = keras.Model(
            {"age": age, "job": job, "tags": tags},
            keras.layers.Dense(1, activation="sigmoid")(x),
        )
        start(model)
        model.compile("adam", "binary_crossentropy", metrics=["AUC", "Precision"])
    rng = np.random.default_rng(0)
    inputs = {
        "age": rng.uniform(20, 60, (8, 1)).astype("float32"),
        "job": rng.integers(0, 5, (8, 1)),
        "tags": rng.integers(0, 4, (8, 3)),
    }
    return fitted(model, inputs, (np.arange(8) % 2)[:, None])


@program
def dict_dataset(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    with strategy.scope():
        a, b = keras.Input((2,), name="a"), keras.Input((3,), name="b")
        joined = keras.layers.concatenate([a, b])
        model = start(keras.Model([a, b], {"y": keras.layers.Dense(1, name="y")(joined)}))
        model.compile("sgd", {"y": "mse"})
    data = tf.data.Dataset.from_tensor_slices(
        ({"a": drawn((8, 2)), "b": drawn((8, 3), 1)}, {"y": drawn((8, 1), 2)}, np.arange(8.0) / 8)
    ).map(lambda x, y, w: ({**x, "a": x["a"] * 2.0}, y, w))
    return fitted(model, data.batch(5).prefetch(1))


@program
def class_weights(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    with strategy.scope():
        model = start(keras.Sequential([keras.Input((4,)), keras.layers.Dense(3),
                                        keras.layers.Softmax()]))  # fmt: skip
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"],
                      weighted_metrics=["sparse_categorical_crossentropy"])  # fmt: skip
    return fitted(model, drawn((8, 4)), np.arange(8) % 3, class_weight={0: 1.0, 1: 3.0, 2: 0.2})


@program
def sample_weights_and_validation(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    with strategy.scope():
        model = start(keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)]))
        model.compile("nadam", keras.losses.LogCosh(), weighted_metrics=["mse"])
    x, y, w = drawn((8, 4)), drawn((8, 1), 1), np.arange(8.0)
    return fitted(model, x, y, sample_weight=w, validation_data=(x[:7], y[:7], w[:7]),
                  validation_freq=2)  # fmt: skip


@program
def moving_average_of_weights(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    with strategy.scope():
        model = start(keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)]))
        model.compile(
            keras.optimizers.AdamW(0.1, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=3,
                                   global_clipnorm=0.5), "mse")  # fmt: skip
    return fitted(model, drawn((8, 4)), drawn((8, 1), 1))


@program
def own_losses(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras

    class Focal(keras.losses.Loss):  # type: ignore[misc,name-defined]
        def __init__(self, gamma: float = 2.0) -> None:
            super().__init__(name="focal")
            self.gamma = gamma

        def call(self, y_true: Any, y_pred: Any) -> Any:
            y_true = tf.cast(y_true, y_pred.dtype)
            p = tf.clip_by_value(y_pred, 1e-7, 1 - 1e-7)
            right = tf.where(tf.equal(y_true, 1.0), p, 1 - p)
            return tf.reduce_mean(-tf.pow(1 - right, self.gamma) * tf.math.log(right), axis=-1)

    def quantile(q: float) -> Any:
        def loss(y_true: Any, y_pred: Any) -> Any:
            error = y_true - y_pred
            return keras.backend.mean(tf.maximum(q * error, (q - 1) * error), axis=-1)

        return loss

    with strategy.scope():
        inputs = keras.Input((4,))
        x = keras.layers.Dense(4, activation="elu")(inputs)
        model = start(keras.Model(
            inputs, [keras.layers.Dense(2, activation="sigmoid", name="kind")(x),
                     keras.layers.Dense(1, name="size")(x)]
        ))  # fmt: skip
        model.compile("sgd", [Focal(), quantile(0.9)])
    return fitted(model, drawn((8, 4)), [np.arange(16).reshape(8, 2) % 2, drawn((8, 1), 1)])


@program
def residual_convolutions(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    with strategy.scope():
        inputs = keras.Input((8, 8, 3))
        x = keras.layers.Conv2D(4, 3, strides=2, padding="same", use_bias=False)(inputs)
        x = keras.layers.BatchNormalization(momentum=0.9)(x)
        y = keras.layers.SeparableConv2D(4, 3, padding="same", activation="relu")(x)
        y = keras.layers.DepthwiseConv2D(3, padding="same")(y)
        y = keras.layers.BatchNormalization()(y)
        x = keras.layers.ReLU(6.0)(keras.layers.Add()([x, y]))
        x = keras.layers.GlobalAveragePooling2D()(x)
        model = start(keras.Model(inputs, keras.layers.Dense(3)(x)))
        model.compile(
            keras.optimizers.SGD(0.1, momentum=0.9, weight_decay=1e-3),
            keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1),
        )
    return fitted(model, drawn((8, 8, 8, 3)), np.eye(3)[np.arange(8) % 3])


@program
def transformer_block(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras

    class Block(keras.layers.Layer):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.attend = keras.layers.MultiHeadAttention(2, 3)
            self.ffn = keras.Sequential([keras.layers.Dense(8, activation="gelu"),
                                         keras.layers.Dense(6)])  # fmt: skip
            self.first, self.second = (keras.layers.LayerNormalization(epsilon=1e-6)
                                       for _ in range(2))  # fmt: skip

        def call(self, x: Any, training: Any = None) -> Any:
            length = x.shape[1]
            mask = tf.range(length)[:, None] >= tf.range(length)[None, :]
            x = self.first(x + self.attend(x, x, attention_mask=mask[None]))
            return self.second(x + self.ffn(x))

    class Positions(keras.layers.Layer):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens = keras.layers.Embedding(9, 6)
            self.places = keras.layers.Embedding(5, 6)

        def call(self, x: Any) -> Any:
            return self.tokens(x) + self.places(tf.range(tf.shape(x)[-1]))

    with strategy.scope():
        inputs = keras.Input((5,), dtype="int32")
        x = Block()(Positions()(inputs))
        model = start(keras.Model(inputs, keras.layers.Dense(9)(x)))
        model.compile(keras.optimizers.SGD(0.1),
                      keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                      metrics=["accuracy"])  # fmt: skip
    x = np.random.default_rng(0).integers(0, 9, (8, 5))
    return fitted(model, x, np.roll(x, -1, axis=1))


@program
def distillation(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras

    class Distiller(keras.Model):  # type: ignore[misc,name-defined]
        def __init__(self, student: Any, teacher: Any) -> None:
            super().__init__()
            self.student, self.teacher = student, teacher

        def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None,
                         sample_weight: Any = None, allow_empty: bool = False,
                         **kwargs: Any) -> Any:  # fmt: skip
            teach = self.teacher(x, training=False)
            hard = super().compute_loss(x, y, y_pred, sample_weight)
            soft = keras.losses.KLDivergence()(
                tf.nn.softmax(teach / 3.0), tf.nn.softmax(y_pred / 3)
            )
            return 0.1 * hard + 0.9 * 9.0 * soft

        def call(self, x: Any) -> Any:
            return self.student(x)

    with strategy.scope():
        student = start(keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)]))
        teacher = start(keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, "relu"),
                                          keras.layers.Dense(3)]))  # fmt: skip
        teacher.trainable = False
        model = Distiller(student, teacher)
        model.compile(keras.optimizers.Adam(1e-2),
                      keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                      metrics=["sparse_categorical_accuracy"])  # fmt: skip
    return fitted(model, drawn((8, 4)), np.arange(8) % 3)


@program
def own_test_step(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras

    class Own(keras.Model):  # type: ignore[misc,name-defined]
        def test_step(self, data: Any) -> Any:
            x, y = data
            pred = self(x, training=False)
            self.compute_loss(y=y, y_pred=pred)
            for metric in self.metrics:
                if metric.name != "loss":
                    metric.update_state(y, pred)
            return {m.name: m.result() for m in self.metrics if m.name != "loss"}

    with strategy.scope():
        inputs = keras.Input((4,))
        model = start(Own(inputs, keras.layers.Dense(1)(inputs)))
        model.compile("sgd", "mse", metrics=["mae", "mape"])
    x, y = drawn((8, 4)), drawn((8, 1), 1)
    found = model.evaluate(x, y, batch_size=5, verbose=0, return_dict=True)
    return {**fitted(model, x, y), **{f"test_{k}": float(v) for k, v in found.items()}}


@program
def activity_and_added_losses(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras

    class Sparse(keras.layers.Layer):  # type: ignore[misc,name-defined]
        def call(self, x: Any) -> Any:
            self.add_loss(1e-1 * tf.reduce_mean(tf.abs(x)))
            return x

    with strategy.scope():
        inputs = keras.Input((4,))
        x = keras.layers.Dense(5, activation="relu", activity_regularizer="l2",
                               kernel_regularizer=keras.regularizers.L1(0.01))(inputs)  # fmt: skip
        model = start(keras.Model(inputs, keras.layers.Dense(1)(Sparse()(x))))
        model.compile("sgd", "mse")
    return fitted(model, drawn((8, 4)), drawn((8, 1), 1))


@program
def own_masked_pooling(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras

    class Pool(keras.layers.Layer):  # type: ignore[misc,name-defined]
        supports_masking = True

        def call(self, x: Any, mask: Any = None) -> Any:
            kept = tf.cast(mask, x.dtype)[:, :, None]
            return tf.reduce_sum(x * kept, axis=1) / tf.maximum(tf.reduce_sum(kept, axis=1), 1.0)

        def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
            return None

    with strategy.scope():
        model = start(keras.Sequential([
            keras.Input((4,), dtype="int32"), keras.layers.Embedding(6, 3, mask_zero=True),
            keras.layers.TimeDistributed(keras.layers.Dense(3)), Pool(), keras.layers.Dense(1),
        ]))  # fmt: skip
        model.compile("sgd", "mse")
    return fitted(model, np.random.default_rng(0).integers(0, 6, (8, 4)), drawn((8, 1)))


@program
def one_batch_at_a_time(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    with strategy.scope():
        model = start(keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)]))
        model.compile("sgd", "mse", metrics=["mae"])
    x, y = drawn((8, 4)), drawn((8, 1), 1)
    found: list[float] = []
    for _ in range(2):
        for part in (slice(0, 5), slice(5, 8)):
            found += [float(v) for v in model.train_on_batch(x[part], y[part])]
    found += [float(v) for v in model.test_on_batch(x, y)]
    return {"found": found, "sum": float(model.predict_on_batch(x).sum())}


@program
def gradient_penalty_gan(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras

    class Critic(keras.Model):  # type: ignore[misc,name-defined]
        seen = keras.metrics.Mean(name="seen")

        def train_step(self, data: Any) -> Any:
            real, fake = data
            mixed = 0.3 * real + 0.7 * fake
            with tf.GradientTape() as outer:
                with tf.GradientTape() as tape:
                    tape.watch(mixed)
                    scores = self(mixed, training=True)
                slope = tape.gradient(scores, [mixed])[0]
                length = tf.sqrt(tf.reduce_sum(tf.square(slope), axis=[1]))
                gap = self(fake)[:, 0] - self(real)[:, 0]
                loss = tf.nn.compute_average_loss(gap + 10.0 * (length - 1.0) ** 2)
            grads = outer.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(grads, self.trainable_variables, strict=False))
            self.seen.update_state(loss)
            return {"seen": self.seen.result()}

        @property
        def metrics(self) -> Any:
            return [self.seen]

    with strategy.scope():
        inputs = keras.Input((3,))
        x = keras.layers.LeakyReLU(negative_slope=0.2)(keras.layers.Dense(6)(inputs))
        model = start(Critic(inputs, keras.layers.Dense(1)(x)))
        model.compile(keras.optimizers.Adam(1e-2, beta_1=0.5, beta_2=0.9))
    return fitted(model, drawn((5, 3)), drawn((5, 3), 1))


@program
def running_sum_layer(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras

    class Standard(keras.layers.Layer):  # type: ignore[misc,name-defined]
        def build(self, shape: Any) -> None:
            self.mean = self.add_weight(shape=(shape[-1],), initializer="zeros", trainable=False,
                                        aggregation="mean", name="mean")  # fmt: skip

        def call(self, x: Any, training: bool = False) -> Any:
            if training:
                self.mean.assign(0.9 * self.mean + 0.1 * tf.reduce_mean(x, axis=0))
            return x - self.mean

    with strategy.scope():
        model = start(keras.Sequential([keras.Input((4,)), Standard(), keras.layers.Dense(1)]))
        model.compile("sgd", "mse")
    return fitted(model, drawn((6, 4)), drawn((6, 1), 1), batch_size=6)


@program
def own_cell(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras

    class Leaky(keras.layers.Layer):  # type: ignore[misc,name-defined]
        def __init__(self, units: int) -> None:
            super().__init__()
            self.units = self.state_size = self.output_size = units

        def build(self, shape: Any) -> None:
            self.kernel = self.add_weight(shape=(shape[-1], self.units), name="kernel")
            self.leak = self.add_weight(shape=(self.units,), name="leak")

        def call(self, x: Any, states: Any) -> Any:
            keep = tf.sigmoid(self.leak)
            new = keep * states[0] + (1.0 - keep) * tf.tanh(tf.matmul(x, self.kernel))
            return new, [new]

    with strategy.scope():
        model = start(keras.Sequential([
            keras.Input((5, 2)), keras.layers.Masking(),
            keras.layers.RNN(Leaky(3), return_sequences=True), keras.layers.Dense(1),
        ]))  # fmt: skip
        model.compile("adam", "mse")
    x = drawn((8, 5, 2))
    x[::2, 3:] = 0
    return fitted(model, x, drawn((8, 5, 1), 1))


@program
def early_stopping(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    with strategy.scope():
        model = start(keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)]))
        model.compile(keras.optimizers.SGD(2.0), "mse")
    stop = keras.callbacks.EarlyStopping("loss", patience=1, restore_best_weights=True)
    x, y = drawn((8, 4)), drawn((8, 1), 1)
    found = fitted(model, x, y, epochs=6, callbacks=[stop, keras.callbacks.TerminateOnNaN()])
    return {**found, "best": float(model.evaluate(x, y, verbose=0))}


@program
def autoencoder(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    with strategy.scope():
        model = start(keras.Sequential([
            keras.Input((8, 8, 1)), keras.layers.Conv2D(3, 3, strides=2, padding="same"),
            keras.layers.PReLU(shared_axes=[1, 2]), keras.layers.GroupNormalization(3),
            keras.layers.UpSampling2D(interpolation="bilinear"),
            keras.layers.Conv2D(1, 3, padding="same", activation="sigmoid"),
        ]))  # fmt: skip
        model.compile("adamax", "binary_crossentropy")
    x = 1 / (1 + np.exp(-drawn((8, 8, 8, 1))))
    return fitted(model, x, x)


@program
def figures_of_a_classifier(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    with strategy.scope():
        model = start(keras.Sequential([
            keras.Input((4,)), keras.layers.Dense(3, activation="softmax"),
        ]))  # fmt: skip
        m = keras.metrics
        model.compile("ftrl", "categorical_crossentropy", metrics=[
            m.AUC(name="auc"), m.Precision(name="p"), m.Recall(name="r"), m.F1Score(name="f"),
            m.TopKCategoricalAccuracy(2, name="top"), m.CosineSimilarity(name="cos"),
        ])  # fmt: skip
    return fitted(model, drawn((8, 4)), np.eye(3, dtype="float32")[np.arange(8) % 3])


@program
def unrolled_steps(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    with strategy.scope():
        model = start(keras.Sequential([
            keras.Input((4, 2)), keras.layers.SimpleRNN(3, unroll=True, return_sequences=True),
            keras.layers.GRU(2, reset_after=False),
            keras.layers.Dense(1),
        ]))  # fmt: skip
        model.compile("adam", "mse", steps_per_execution=2)
    return fitted(model, drawn((8, 4, 2)), drawn((8, 1), 1))


@program
def two_rates(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras

    class Two(keras.Model):  # type: ignore[misc,name-defined]
        def compile(self, slow: Any, fast: Any, **kwargs: Any) -> None:
            super().compile(optimizer=slow, **kwargs)
            self.fast = fast

        def train_step(self, data: Any) -> Any:
            x, y = data
            with tf.GradientTape(persistent=True) as tape:
                pred = self(x, training=True)
                loss = self.compute_loss(x=x, y=y, y_pred=pred)
            body, head = self.layers[1].trainable_variables, self.layers[2].trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, body), body, strict=False))
            self.fast.apply_gradients(zip(tape.gradient(loss, head), head, strict=False))
            del tape
            for metric in self.metrics:
                if metric.name != "loss":
                    metric.update_state(y, pred)
            return {m.name: m.result() for m in self.metrics if m.name != "loss"}

    with strategy.scope():
        inputs = keras.Input((4,))
        x = keras.layers.Dense(5, activation="tanh")(inputs)
        model = start(Two(inputs, keras.layers.Dense(1)(x)))
        model.compile(keras.optimizers.SGD(0.01), keras.optimizers.SGD(0.1), loss="mse",
                      metrics=["mse"])  # fmt: skip
    return fitted(model, drawn((8, 4)), drawn((8, 1), 1))


def main(path: str) -> None:
    """Writes what TensorFlow gives."""
    import json

    import tensorflow as tf

    found = {name: run(tf, tf.distribute.get_strategy()) for name, run in PROGRAMS.items()}
    text = json.dumps(found, indent=1, default=float)
    Path(path).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
