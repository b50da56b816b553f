"""Programs as users write them: models and their training steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras_user_parts import drawn, fitted, program, start


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


def _gan_of(tf: Any) -> Any:
    keras = tf.keras

    class Gan(keras.Model):  # type: ignore[misc,name-defined]
        def __init__(self, discriminator: Any, generator: Any) -> None:
            super().__init__()
            self.discriminator, self.generator = discriminator, generator

        def compile(self, d_optimizer: Any, g_optimizer: Any, loss_fn: Any) -> None:
            super().compile()
            self.d_optimizer, self.g_optimizer, self.loss_fn = d_optimizer, g_optimizer, loss_fn
            names = ("d_loss", "g_loss")
            self.d_metric, self.g_metric = (keras.metrics.Mean(name=name) for name in names)

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
            with tf.GradientTape() as tape:
                out = self.discriminator(self.generator(noise))
                g_loss = self.loss_fn(tf.zeros_like(out), out)
            grads = tape.gradient(g_loss, self.generator.trainable_weights)
            self.g_optimizer.apply_gradients(
                zip(grads, self.generator.trainable_weights, strict=False)
            )
            for metric, loss in zip(self.metrics, (d_loss, g_loss), strict=True):
                metric.update_state(loss)
            return {metric.name: metric.result() for metric in self.metrics}

    return Gan


@program
def gan(tf: Any, strategy: Any) -> dict[str, Any]:
    keras = tf.keras
    with strategy.scope():
        discriminator = start(keras.Sequential([
            keras.Input((3,)), keras.layers.Dense(4), keras.layers.LeakyReLU(),
            keras.layers.Dense(1),
        ]))  # fmt: skip
        generator = start(keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)]))
        model = _gan_of(tf)(discriminator, generator)
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
