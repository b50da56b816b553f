"""How loops answer whose tensors grow from round to round."""

from __future__ import annotations

from typing import Any

from manner_programs import manner, refused


def grown(tf: Any, n: Any, step: Any, start: Any, *shapes: Any) -> Any:
    """What a `while_loop` with these shape invariants makes of `start` in n rounds."""
    return tf.while_loop(
        lambda i, x: i < n,
        lambda i, x: (i + 1, step(i, x)),
        (tf.constant(0), start),
        shape_invariants=shapes,
    )[1]


@manner
def a_loop_whose_tensor_grows(tf: Any) -> Any:
    @tf.function
    def f(n: Any) -> Any:
        x = tf.constant([0])
        i = tf.constant(0)
        while i < n:
            tf.autograph.experimental.set_loop_options(
                shape_invariants=[(x, tf.TensorShape([None]))]
            )
            x = tf.concat([x, [i]], 0)
            i += 1
        return x

    return [f(tf.constant(n)) for n in (3, 0, 6)]


@manner
def a_for_loop_whose_tensors_grow(tf: Any) -> Any:
    @tf.function
    def f(rows: Any) -> Any:
        parts = {"sums": tf.zeros([1]), "all": tf.zeros([0, 2])}
        for row in rows:
            tf.autograph.experimental.set_loop_options(
                shape_invariants=[
                    (parts, {"all": tf.TensorShape([None, 2]), "sums": tf.TensorShape([None])})
                ]
            )
            parts = {
                "all": tf.concat([parts["all"], [row]], 0),
                "sums": tf.concat([parts["sums"], [tf.reduce_sum(row)]], 0),
            }
        return parts

    return f(tf.reshape(tf.range(6.0), [3, 2]))


@manner
def a_while_loop_whose_tensor_grows(tf: Any) -> Any:
    _, x = tf.while_loop(
        lambda i, x: i < 3,
        lambda i, x: (i + 1, tf.concat([x, [i]], 0)),
        (tf.constant(0), tf.constant([7])),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None])),
    )
    return x


@manner
def a_while_loop_whose_tensor_grows_in_a_function(tf: Any) -> Any:
    @tf.function
    def f(n: Any) -> Any:
        shapes = tf.TensorShape([]), tf.TensorShape([None])
        return grown(tf, n, lambda i, x: tf.concat([x, [i]], 0), tf.constant([7]), *shapes)

    return [f(tf.constant(3)), f(tf.constant(0))]


@manner
def gradients_through_a_loop_whose_tensor_grows(tf: Any) -> Any:
    v = tf.Variable(2.0)

    @tf.function
    def f(n: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            return tf.concat([x, x[-1:] * v], 0)

        return grown(tf, n, step, tf.constant([1.0]), tf.TensorShape([]), tf.TensorShape([None]))

    with tf.GradientTape() as tape:
        y = f(tf.constant(3))
        loss = tf.reduce_sum(y)
    return [y, tape.gradient(loss, v)]


@manner
def a_loop_in_a_function_of_a_dataset_grows(tf: Any) -> Any:
    def f(n: Any) -> Any:
        shapes = tf.TensorShape([]), tf.TensorShape([None])
        start = tf.constant([5])
        return grown(tf, tf.cast(n, tf.int32), lambda i, x: tf.concat([x, x], 0), start, *shapes)

    return list(tf.data.Dataset.range(3).map(f))


@manner
def a_loop_grows_only_as_it_says(tf: Any) -> Any:
    def run(start: Any, *shapes: Any) -> Any:
        f = tf.function(lambda n: grown(tf, n, lambda i, x: tf.concat([x, x], 0), start, *shapes))
        return refused(lambda: f(tf.constant(2)), ValueError)

    none, any_rows, one = tf.TensorShape([]), tf.TensorShape([None]), tf.constant([1])
    return [
        run(one, none, any_rows),
        run(one, none, tf.TensorShape(None)),
        run(one, none, tf.TensorShape([1])),  # it does not stay so
        run(one, none, tf.TensorShape([2])),  # it does not begin so
        run(one, none),  # not one for each
    ]


@manner
def loops_with_conditions_that_are_known(tf: Any) -> Any:
    @tf.function
    def broken(x: Any) -> Any:
        i = tf.constant(0)
        while tf.constant(True):
            i += 1
            if i > x:
                break
        return i

    @tf.function
    def counted() -> Any:
        i = tf.constant(0)
        while i < tf.constant(5):
            i += 1
        return i

    return [broken(tf.constant(4)), broken(tf.constant(0)), counted()]


@manner
def a_tensor_that_a_loop_makes_another_dtype(tf: Any) -> Any:
    @tf.function
    def f(k: Any) -> Any:
        n = tf.constant(0)
        while k > 0:
            n = tf.constant(0.0)
            k -= 1
        return n

    return refused(lambda: f(tf.constant(2)), TypeError)


@manner
def a_number_that_a_loop_makes_another_dtype(tf: Any) -> Any:
    @tf.function
    def f(k: Any) -> Any:
        n = 0
        while k > 0:
            n = tf.constant(1.5)
            k -= 1
        return n

    return [f(tf.constant(2)), f(tf.constant(0))]


@manner
def arrays_of_tensors_grow_in_loops_of_a_function(tf: Any) -> Any:
    v = tf.Variable(3.0)

    @tf.function
    def doubled(n: Any) -> Any:
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(n):
            array = array.write(i, tf.cast(i, tf.float32) * 2.0)
        return array.stack()

    @tf.function
    def powers(limit: Any) -> Any:
        array, i, power = tf.TensorArray(tf.float32, 0, True), 0, v * 1.0
        while power < limit:
            array = array.write(i, power)
            power, i = power * v, i + 1
        return tf.reduce_sum(array.stack())

    with tf.GradientTape() as tape:
        total = powers(tf.constant(100.0))
    return [doubled(tf.constant(3)), doubled(tf.constant(5)), total, tape.gradient(total, v)]
