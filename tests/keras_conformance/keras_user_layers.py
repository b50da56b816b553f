"""Programs as users write them: data, callbacks, convolutions, attention."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras_user_parts import drawn, fitted, program, start


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
