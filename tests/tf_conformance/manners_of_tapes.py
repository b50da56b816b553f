"""What tapes say that they watch."""

from __future__ import annotations

from typing import Any

from manner_programs import manner, refused


def names(tape: Any) -> list[str]:
    return [variable.name for variable in tape.watched_variables()]


@manner
def a_tape_knows_what_it_watches(tf: Any) -> Any:
    v, w = tf.Variable(1.0, name="v"), tf.Variable(2.0, name="w")
    tf.Variable(3.0, name="unused")
    fixed = tf.Variable(4.0, name="fixed", trainable=False)
    with tf.GradientTape() as tape:
        before = names(tape)
        y = w * v * v + fixed
        within = names(tape)
    return [before, within, names(tape), tape.gradient(y, tape.watched_variables()), names(tape)]


@manner
def a_tape_watches_what_it_is_told(tf: Any) -> Any:
    v, fixed = tf.Variable(1.0, name="v"), tf.Variable(4.0, name="fixed", trainable=False)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(fixed)
        _ = v * fixed
    with tf.GradientTape() as both:
        both.watch(fixed)
        _ = v * 1.0
    return [names(tape), names(both), names(tf.GradientTape())]


@manner
def tapes_in_tapes_watch_on_their_own(tf: Any) -> Any:
    v, w, x = (tf.Variable(1.0, name=name) for name in "vwx")
    with tf.GradientTape() as outer:
        _ = v * 1.0
        with tf.GradientTape() as inner:
            _ = w * 1.0
        with outer.stop_recording():
            _ = x * 1.0
        inside = names(inner)
    return [names(outer), inside, names(inner)]


@manner
def a_tape_watches_what_functions_read(tf: Any) -> Any:
    v, w, x = (tf.Variable(1.0 + i, name=name) for i, name in enumerate("vwx"))
    f = tf.function(lambda: v * w)
    f()
    with tf.GradientTape() as tape:
        y = f() * x
    return [names(tape), tape.gradient(y, tape.watched_variables())]


@manner
def a_tape_in_a_function_watches(tf: Any) -> Any:
    v, w, x = (tf.Variable(1.0 + i, name=name) for i, name in enumerate("vwx"))
    seen = []

    @tf.function
    def f(n: Any) -> Any:
        y = v * 1.0
        with tf.GradientTape() as tape:
            z = tf.while_loop(lambda i, z: i < n, lambda i, z: (i + 1, z * w), (0, y))[1]
            z = tf.cond(z > 1.0, lambda: z * x, lambda: z)
        seen.append(names(tape))
        return tape.gradient(z, tape.watched_variables())

    return [f(tf.constant(2)), seen]


@manner
def a_tape_watches_the_weights_of_a_model(tf: Any) -> Any:
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    frozen = tf.keras.layers.Dense(1, trainable=False)
    with tf.GradientTape() as tape:
        y = frozen(model(tf.ones([3, 2])))
    gradients = tape.gradient(y, tape.watched_variables())
    return [[tuple(v.shape.as_list()) for v in tape.watched_variables()], len(gradients)]


@manner
def gradients_in_a_function_without_a_tape(tf: Any) -> Any:
    v = tf.Variable([2.0, 3.0])

    @tf.function
    def f(x: Any) -> Any:
        y = x * x * v
        z = tf.exp(-y)
        (first,) = tf.gradients(tf.reduce_sum(x**3), x)
        weights = [tf.ones_like(y) * 2.0, tf.zeros_like(z)]
        return [
            tf.gradients(y, [x, v]),
            tf.gradients(z, y),
            tf.gradients([y, z], x, grad_ys=weights),
            tf.gradients(first, x),
            tf.gradients(x, [v])[0] is None,
            tf.gradients(x, v, unconnected_gradients=tf.UnconnectedGradients.ZERO),
            tf.hessians(tf.reduce_sum(x**3 * x[0]), x),
        ]

    x = tf.constant([1.0, 2.0])
    return [*f(x), refused(lambda: tf.gradients(x * x, x), RuntimeError)]
