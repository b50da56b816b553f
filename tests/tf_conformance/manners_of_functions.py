"""How traced functions, loops and printing answer."""

from __future__ import annotations

from typing import Any

import numpy as np
from manner_programs import manner, refused


def traces(tf: Any, calls: list[Any], **options: Any) -> int:
    """How often a function is traced for calls with these arguments."""
    seen = []

    @tf.function(**options)
    def f(*args: Any, **kwargs: Any) -> Any:
        seen.append(1)
        return 1

    for args in calls:
        f(*args)
    return len(seen)


@manner
def a_signature_is_traced_once(tf: Any) -> Any:
    count = []

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def f(x: Any) -> Any:
        count.append(1)
        return tf.reduce_sum(x)

    sums = [f(tf.ones([n, 2])) for n in (1, 2, 5)]
    return [*sums, len(count)]


@manner
def a_signature_refuses_other_tensors(tf: Any) -> Any:
    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def f(x: Any) -> Any:
        return tf.reduce_sum(x)

    return [
        refused(lambda: f(tf.ones([2, 2], tf.int32)), TypeError, ValueError),
        refused(lambda: f(tf.ones([2])), TypeError, ValueError),
        refused(lambda: f(tf.ones([2, 3])), TypeError, ValueError),
        refused(lambda: f(tf.ones([2, 2]), 1), TypeError, ValueError),
        refused(lambda: f(), TypeError, ValueError),
    ]


@manner
def a_signature_converts_lists_and_numbers(tf: Any) -> Any:
    @tf.function(input_signature=[tf.TensorSpec([], tf.float32), tf.TensorSpec([None], tf.int32)])
    def f(x: Any, y: Any) -> Any:
        return tf.cast(y, tf.float32) * x

    return [f(2, [1, 2]), f(2.5, np.array([1], "int32")), f(x=tf.constant(1.0), y=[3])]


@manner
def a_signature_of_structures(tf: Any) -> Any:
    spec = tf.TensorSpec([None], tf.float32)

    @tf.function(input_signature=[{"a": spec, "b": (spec, spec)}])
    def f(parts: Any) -> Any:
        return parts["a"] + parts["b"][0] * parts["b"][1]

    one = tf.ones([2])
    return [f({"a": one, "b": (one, one)}), refused(lambda: f({"a": one}), TypeError, ValueError)]


@manner
def a_signature_of_any_rank(tf: Any) -> Any:
    @tf.function(input_signature=[tf.TensorSpec(None, tf.float32)])
    def f(x: Any) -> Any:
        return tf.reduce_sum(x)

    return [f(tf.ones([2])), f(tf.ones([2, 3])), f(3.0)]


@manner
def a_signature_of_a_method(tf: Any) -> Any:
    class Net(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def __call__(self, x: Any) -> Any:
            return x * 2.0

    net = Net()
    return [
        net(tf.constant([1.0])),
        net([1.0, 2.0]),
        refused(lambda: net(tf.ones([1, 1])), TypeError, ValueError),
    ]


@manner
def unknown_options_are_refused(tf: Any) -> Any:
    return refused(lambda: tf.function(lambda: 1, nonsense=3), TypeError)


@manner
def options_of_functions(tf: Any) -> Any:
    f = tf.function(
        lambda x: x + 1,
        autograph=False,
        reduce_retracing=True,
        jit_compile=None,
        experimental_autograph_options=None,
    )
    return f(tf.constant(1))


@manner
def a_concrete_function(tf: Any) -> Any:
    f = tf.function(lambda x: x * 2.0)
    concrete = f.get_concrete_function(tf.TensorSpec([None], tf.float32))
    return [concrete(tf.constant([1.0, 2.0])), concrete(tf.constant([3.0]))]


@manner
def a_concrete_function_of_a_value(tf: Any) -> Any:
    f = tf.function(lambda x, n: x * n)
    concrete = f.get_concrete_function(tf.constant(2.0), 3)
    return [concrete(tf.constant(5.0)), f.python_function(2, 3)]


@manner
def a_concrete_function_refuses_other_tensors(tf: Any) -> Any:
    concrete = tf.function(lambda x: x * 2.0).get_concrete_function(tf.TensorSpec([2], tf.float32))
    return [
        refused(lambda: concrete(tf.constant([1, 2])), TypeError, ValueError),
        refused(lambda: concrete(tf.ones([3])), TypeError, ValueError),
        refused(lambda: concrete(), TypeError, ValueError),
    ]


@manner
def a_concrete_function_knows_its_tensors(tf: Any) -> Any:
    concrete = tf.function(lambda x: (x * 2.0, x)).get_concrete_function(
        tf.TensorSpec([2], tf.float32)
    )
    return [
        [tuple(s.as_list()) for s in concrete.output_shapes],
        [d.name for d in concrete.output_dtypes],
        len(concrete.inputs),
        len(concrete.outputs),
    ]


@manner
def tensors_of_one_shape_are_traced_once(tf: Any) -> Any:
    return [
        traces(tf, [(tf.constant(float(i)),) for i in range(5)]),
        traces(tf, [(i,) for i in range(3)]),
        traces(tf, [(tf.ones([2]),), (tf.ones([2], tf.int32),)]),
        traces(tf, [(np.float32(i),) for i in range(3)]),
        traces(tf, [("a",), ("b",), ("a",)]),
        traces(tf, [(True,), (False,), (True,)]),
    ]


@manner
def traces_are_counted(tf: Any) -> Any:
    f = tf.function(lambda x: x)
    before = f.experimental_get_tracing_count()
    for value in (1, 2, 1):
        f(value)
    return [before, f.experimental_get_tracing_count()]


@manner
def functions_are_named_after_theirs(tf: Any) -> Any:
    @tf.function
    def train_step(x: Any) -> Any:
        """One step."""
        return x

    return [train_step.__name__, train_step.__doc__, callable(train_step.python_function)]


@manner
def methods_are_functions(tf: Any) -> Any:
    class Counter:
        def __init__(self) -> None:
            self.v = tf.Variable(1.0)

        @tf.function
        def add(self, x: Any) -> Any:
            return self.v.assign_add(x)

    a, b = Counter(), Counter()
    a.add(1.0)
    b.add(tf.constant(5.0))
    return [a.v, b.v, a.add.python_function is not None]


@manner
def variables_are_made_once(tf: Any) -> Any:
    @tf.function
    def f(x: Any) -> Any:
        return tf.Variable(1.0) * x

    return f(tf.constant(1.0))


@manner
def variables_made_of_what_the_first_call_computes(tf: Any) -> Any:
    class Line(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = None

        @tf.function
        def __call__(self, x: Any) -> Any:
            if self.w is None:
                self.w = tf.Variable(tf.reduce_sum(x, 0, keepdims=True))
                self.b = tf.Variable(2.0 * self.w)
            return x * self.w + self.b

    one, two, x = Line(), Line(), tf.constant([[1.0, 2.0]])
    return [
        one(x),
        one(x + 1.0),
        one(tf.ones([3, 2])),
        two(x + 1.0),
        one.w,
        two.w,
        len(one.variables),
    ]


@manner
def variables_made_anew_of_what_each_call_computes(tf: Any) -> Any:
    f = tf.function(lambda x: tf.Variable(x * 2.0) * 1.0)

    def twice() -> None:
        f(tf.constant(1.0))
        f(tf.constant(2.0))

    return refused(twice, ValueError)


@manner
def a_function_under_a_tape(tf: Any) -> Any:
    v = tf.Variable(3.0)
    f = tf.function(lambda: v * v)
    with tf.GradientTape() as tape:
        y = 2.0 * v + f()
    return tape.gradient(y, v)


@manner
def iterators_among_the_arguments(tf: Any) -> Any:
    @tf.function
    def f(numbers: Any, rows: Any) -> Any:
        out = 0
        for n in numbers:
            out = 10 * out + n
        for _ in range(2):
            out = 10 * out + tf.cast(next(rows), tf.int32)
        return out

    return f(iter([1, 2]), iter(tf.data.Dataset.from_tensor_slices([1, 2])))


@manner
def datasets_are_arguments(tf: Any) -> Any:
    total = tf.function(lambda ds: ds.reduce(0, lambda a, b: a + b))
    count = [tf.data.Dataset.range(n).map(lambda x: tf.cast(x, tf.int32)) for n in (2, 3, 4)]
    return [total(ds) for ds in count]


@manner
def a_function_of_datasets_is_traced_once(tf: Any) -> Any:
    seen = []

    @tf.function
    def total(ds: Any) -> Any:
        seen.append(1)
        return ds.reduce(np.int64(0), lambda a, b: a + b)

    @tf.function
    def looped(ds: Any) -> Any:
        seen.append(1)
        sum_ = tf.constant(0, tf.int64)
        for x in ds:
            sum_ += x
        return sum_

    counts = []
    for f in (total, looped):
        seen.clear()
        assert [int(f(tf.data.Dataset.range(n))) for n in (2, 3, 4, 5)] == [1, 3, 6, 10]
        counts.append(len(seen))
    return counts


@manner
def prints_of_python_reach_standard_output(tf: Any) -> Any:
    import contextlib
    import io

    @tf.function
    def f(x: Any) -> Any:
        print("traced", x.shape)
        return x

    with contextlib.redirect_stdout(io.StringIO()) as out:
        f(tf.constant(1.0))
        f(tf.constant(2.0))
    return out.getvalue()


@manner
def a_loop_that_may_not_run_needs_a_value(tf: Any) -> Any:
    @tf.function
    def f(n: Any) -> Any:
        i = tf.constant(0)
        while i < n:
            new = i * 2
            i += 1
        return new

    return refused(lambda: f(tf.constant(3)), ValueError, UnboundLocalError, TypeError)


@manner
def a_loop_over_a_range_of_a_tensor(tf: Any) -> Any:
    @tf.function
    def f(n: Any) -> Any:
        total = 0
        for i in tf.range(n):
            if i == 2:
                continue
            total += i
        return total

    return f(tf.constant(5))


SIZES = {
    "a_range_of_the_count": lambda tf, x, n: tf.range(n),
    "a_unit_matrix_of_the_count": lambda tf, x, n: tf.eye(n),
    "one_hot_of_the_count": lambda tf, x, n: tf.one_hot([0, 1], n),
    "a_line_of_the_count": lambda tf, x, n: tf.linspace(0.0, 1.0, n),
    "repeats_of_the_count": lambda tf, x, n: tf.repeat([1, 2], n),
    "padding_by_the_count": lambda tf, x, n: tf.pad([1, 2], [[0, n]]),
    "the_last_of_the_count": lambda tf, x, n: x[n - 1],
    "a_slice_to_the_count": lambda tf, x, n: x[: n - 1],
    "gathered_at_the_count": lambda tf, x, n: tf.gather(x, n - 1),
    "filled_to_the_count": lambda tf, x, n: tf.fill([2, n], 1.0),
    "zeros_of_the_count": lambda tf, x, n: tf.zeros([n, n]),
    "a_permutation_of_the_count": lambda tf, x, n: tf.gather(x, tf.range(n)[::-1]),
    "a_reshape_to_the_count": lambda tf, x, n: tf.reshape(x, [2, n]),
    "tiles_of_the_count": lambda tf, x, n: tf.tile(x, [1, n]),
    "numbers_of_the_count": lambda tf, x, n: tf.cast(n, tf.float32) / 2.0,
    "split_of_the_count": lambda tf, x, n: tf.split(tf.concat([x, x], 0), [n, n])[1],
}


def _of_the_count(name: str) -> Any:
    def program(tf: Any) -> Any:
        f = tf.function(lambda x: SIZES[name](tf, x, tf.shape(x)[0]))
        return [f(tf.reshape(tf.range(2.0 * n), [n, 2])) for n in (3, 2)]

    program.__name__ = name
    return program


for _name in SIZES:
    manner(_of_the_count(_name))


@manner
def stack_traces_of_errors_in_a_function(tf: Any) -> Any:
    @tf.function
    def f(x: Any) -> Any:
        raise KeyError("mine")

    return refused(lambda: f(tf.constant(1.0)), KeyError)


@manner
def a_none_argument(tf: Any) -> Any:
    f = tf.function(lambda x, mask=None: x if mask is None else x * mask)
    return [
        f(tf.constant(2.0)),
        f(tf.constant(2.0), tf.constant(3.0)),
        f(tf.constant(2.0), mask=None),
    ]


@manner
def results_keep_their_structure(tf: Any) -> Any:
    return tf.function(lambda x: {"a": (x, [x + 1]), "b": None})(tf.constant(1))


@manner
def a_function_without_a_result(tf: Any) -> Any:
    return tf.function(lambda x: None)(tf.constant(1))


@manner
def whether_code_runs_eagerly(tf: Any) -> Any:
    seen = []

    @tf.function
    def f() -> Any:
        seen.append(tf.executing_eagerly())
        return tf.constant(1)

    f()
    return [tf.executing_eagerly(), *seen, tf.inside_function()]
