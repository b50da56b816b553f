"""Programs as users write them: layers, losses and learning rates."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras_user_parts import drawn, fitted, program, start


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
