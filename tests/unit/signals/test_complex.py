"""Complex tensors where structures are walked: functions, loops, datasets, replicas, gradients."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from signal_programs import complex_wave, wave

import samegrad as tf

Z = np.array([1 + 2j, 3, 4j], np.complex64)


@pytest.fixture
def z():
    return tf.constant(Z)


def test_it_is_one_value_with_tensorflows_words(z):
    assert z.dtype == tf.complex64 == "complex64" and z.dtype == np.complex64
    assert z.dtype.is_complex and not tf.float32.is_complex
    assert z.dtype.real_dtype == tf.float32 and tf.complex128.real_dtype == tf.float64
    assert not z.dtype.is_floating and tf.complex64.size == 8 and tf.complex64 != tf.complex128
    assert tf.as_dtype("complex128") is tf.dtypes.complex128 and tf.as_dtype(complex).is_complex
    assert z.shape == (3,) and len(z) == 3 and z.ndim == 1 and tf.is_tensor(z)
    text = "array([1.+2.j, 3.+0.j, 0.+4.j], dtype=complex64)"
    assert repr(z) == f"<samegrad.Tensor: shape=(3,), dtype=complex64, numpy={text}>"
    assert str(z) == "samegrad.Tensor([1.+2.j 3.+0.j 0.+4.j], shape=(3,), dtype=complex64)"
    assert f"{z[0]}" == "(1+2j)" and complex(z[0]) == 1 + 2j
    assert [complex(row) for row in z] == Z.tolist()
    assert bool(z[2]) and not bool(tf.constant(0j))
    assert z is not None and (z == None) is False and (z != None) is True  # noqa: E711
    assert {z: 1}[z] == 1 and tf.nest.flatten([z, {"a": z}])[1] is z


def test_numpy_takes_and_gives_it(z):
    assert z.numpy().dtype == np.complex64 and np.array_equal(np.asarray(z), Z)
    assert np.array_equal(np.abs(z), np.abs(Z)) and np.asarray(z, complex).dtype == complex
    assert isinstance(np.ones(3) * z, type(z)) and np.array_equal((Z + z).numpy(), 2 * Z)
    assert tf.constant(1 + 2j).dtype == tf.complex128  # as NumPy and TensorFlow have it
    assert tf.constant(1j, shape=(2, 1)).shape == (2, 1)
    assert np.array_equal(tf.stack([z[0], 2.0, 1j]).numpy(), np.complex64([1 + 2j, 2, 1j]))


def test_it_is_copied_and_pickled(z):
    for made in (copy.copy(z), copy.deepcopy(z), pickle.loads(pickle.dumps(z))):
        assert type(made) is type(z) and np.array_equal(made.numpy(), Z)


def test_arguments_and_results_of_functions(z):
    traces = []

    @tf.function
    def step(a, options):
        traces.append(repr(a))
        return {"square": a * a, "half": (a / options["by"],)}, tf.math.real(a)

    for rows in (3, 2, 0):
        found, real = step(z[:rows], {"by": 2.0})
        assert np.array_equal(found["square"].numpy(), Z[:rows] ** 2)
        assert np.array_equal(found["half"][0].numpy(), Z[:rows] / 2)
        assert np.array_equal(real.numpy(), Z[:rows].real)
    step(z, {"by": 2.0})
    assert traces[0] == "<samegrad.Tensor: shape=(3,), dtype=complex64, traced>"
    assert len(traces) == 3
    assert np.array_equal(step(Z, {"by": 2.0})[1].numpy(), Z.real)  # of NumPy


def test_specs_of_complex_numbers_are_two(z):
    spec = tf.TensorSpec([None], tf.complex64)
    assert repr(spec) == "TensorSpec(shape=(None,), dtype=samegrad.complex64)"
    assert spec.shape == (None,) and spec.dtype == tf.complex64
    assert pickle.loads(pickle.dumps(spec)) == spec == tf.TensorSpec(spec.shape, "complex64")
    assert spec != tf.TensorSpec([None], tf.complex128)
    for made in (tf.TensorSpec([2], tf.int32), tf.TensorSpec.from_tensor(z)):
        assert pickle.loads(pickle.dumps(made)) == made == copy.deepcopy(made)

    size = tf.function(lambda a: tf.reduce_sum(tf.abs(a)), input_signature=[spec])
    assert [float(size(Z[:n])) for n in (3, 2, 0)] == [
        float(np.abs(Z[:n]).sum()) for n in (3, 2, 0)
    ]
    assert size.experimental_get_tracing_count() == 1 and float(size([3j, 4])) == 7.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="complex numbers are needed"):
        size(tf.ones([3]))
    with pytest.raises(TypeError, match=r"signature TensorSpec.* got shape \(1, 3\)"):
        size(z[None])

    data = tf.data.Dataset.from_generator(
        lambda: iter([(1j, 1), (2.0, 2)]),
        output_signature=(tf.TensorSpec([], tf.complex64), tf.TensorSpec([], tf.int32)),
    )
    assert [complex(a) for a, _ in data] == [1j, 2.0]
    assert data.element_spec[0] == tf.TensorSpec([], tf.complex64)
    rows = tf.ones([2, 4])
    for options in (
        {"dtype": tf.complex64},
        {"fn_output_signature": tf.TensorSpec([3], "complex64")},
    ):
        assert tf.map_fn(tf.signal.rfft, rows, **options).shape == (2, 3)


def test_loops_and_branches(z):
    @tf.function
    def grown(a):
        while tf.reduce_max(tf.abs(a)) < 100.0:
            a = a * 2j
        return a

    @tf.function
    def turned(a):
        total = tf.constant(0j, tf.complex64)
        for row in a:
            if tf.math.imag(row) > 0.0:
                total += row
            else:
                total -= row
        return total

    assert np.array_equal(grown(z).numpy(), Z * (2j) ** 5)
    assert complex(turned(z)) == 1 + 2j - 3 + 4j
    assert np.array_equal(tf.scan(lambda a, b: a + b, z).numpy(), np.cumsum(Z))
    assert np.array_equal(tf.map_fn(lambda a: a * a, z).numpy(), Z**2)
    assert np.array_equal(tf.cond(tf.constant(True), lambda: z, lambda: -z).numpy(), Z)
    last = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 1j), [0, z])
    assert np.array_equal(last[1].numpy(), Z * (1j) ** 3)


def test_elements_of_datasets(z):
    data = tf.data.Dataset.from_tensor_slices((z, [1, 2, 3]))
    assert repr(data.element_spec[0]) == "TensorSpec(shape=(), dtype=samegrad.complex64)"
    batches = list(data.map(lambda a, n: (a * 2, n)).batch(2).as_numpy_iterator())
    assert [b[0].tolist() for b in batches] == [(2 * Z[:2]).tolist(), (2 * Z[2:]).tolist()]
    assert batches[0][0].dtype == np.complex64
    of_numpy = tf.data.Dataset.from_tensor_slices(Z).shuffle(3, seed=1).repeat(2).cache()
    assert sorted(complex(e).imag for e in of_numpy) == [0, 0, 2, 2, 4, 4]
    made = tf.data.Dataset.range(3).map(lambda n: complex(0, int(n)))
    assert [complex(e) for e in made] == [0j, 1j, 2j]
    assert complex(made.reduce(tf.constant(0j), lambda a, b: a + b)) == 3j
    assert len(list(data.filter(lambda a, n: tf.abs(a) > 2.5))) == 2
    assert next(iter(tf.data.Dataset.from_tensors(Z))).shape == (3,)
    assert not list(tf.data.Dataset.from_tensor_slices(Z[:0]).batch(2))


def test_files_of_elements_hold_it(tmp_path):
    data = tf.data.Dataset.from_tensor_slices({"a": Z, "b": [1, 2, 3]})
    kept = data.cache(str(tmp_path / "kept"))
    for _ in range(2):
        assert [complex(e["a"]) for e in kept] == Z.tolist()
    data.save(str(tmp_path / "saved"))
    loaded = tf.data.Dataset.load(str(tmp_path / "saved"))
    assert [complex(e["a"]) for e in loaded] == Z.tolist()
    assert loaded.element_spec["a"].dtype == tf.complex64


def test_replicas_give_the_sum_of_one_device(z):
    data = tf.data.Dataset.from_tensor_slices(wave(12, 30, kind="float32")).batch(12)

    def step(x):
        spectrum = tf.signal.rfft(x)
        sizes = tf.abs(tf.signal.stft(x, 8, 4, pad_end=True))
        return tf.reduce_sum(spectrum), tf.reduce_sum(sizes) + tf.reduce_sum(tf.signal.dct(x))

    found = []
    for replicas in (1, 2, 3):
        strategy = tf.distribute.MirroredStrategy(replicas=replicas)
        batch = next(iter(strategy.experimental_distribute_dataset(data)))
        total, size = strategy.run(step, args=(batch,))
        found.append([strategy.reduce("SUM", each, axis=None).numpy() for each in (total, size)])
    assert found[0][0].dtype == np.complex64
    for others in found[1:]:
        assert [a.tobytes() for a in others] == [a.tobytes() for a in found[0]]


def test_gradients_of_functions_are_those_of_eager_code(z):
    def loss(a):
        return tf.reduce_sum(tf.abs(tf.signal.fft(a) * a) ** 2)

    with tf.GradientTape() as tape:
        tape.watch(z)
        value = loss(z)
    eager = tape.gradient(value, z)

    @tf.function
    def inside(a):
        with tf.GradientTape() as tape:
            tape.watch(a)
            value = loss(a)
        return tape.gradient(value, a)

    with tf.GradientTape() as tape:
        tape.watch(z)
        value = tf.function(loss)(z)
    for found in (inside(z), tape.gradient(value, z)):
        assert np.allclose(found.numpy(), eager.numpy(), rtol=1e-6)


def test_what_is_not_connected_has_no_gradient_or_zeros(z):
    x = tf.constant(1.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, z])
        real, other = tf.reduce_sum(tf.math.real(z)), x * 2.0
    assert np.array_equal(tape.gradient(real, z).numpy(), np.ones(3, np.complex64))
    assert tape.gradient(other, z) is None
    zeros = tape.gradient(other, [x, z], unconnected_gradients="zero")[1]
    assert np.array_equal(zeros.numpy(), np.zeros(3, np.complex64))


def test_jacobians_by_complex_sources(z):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(z)
        power, real = tf.abs(z) ** 2, tf.math.real(z)
    assert np.allclose(tape.jacobian(power, z).numpy(), np.diag(2 * Z))
    assert np.array_equal(tape.jacobian(real, z).numpy(), np.eye(3, dtype=np.complex64))
    assert tape.jacobian(tf.ones([2]), z) is None


def test_second_derivatives_go_through_it():
    x = tf.constant(wave(4))
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            value = tf.reduce_sum(tf.abs(tf.signal.rfft(x)) ** 4)
        slope = inner.gradient(value, x)
    found = outer.jacobian(slope, x).numpy()
    columns = []
    for step in np.eye(4) * 1e-5:
        sides = []
        for sign in (1, -1):
            moved = tf.constant(x.numpy() + sign * step)
            with tf.GradientTape() as tape:
                tape.watch(moved)
                value = tf.reduce_sum(tf.abs(tf.signal.rfft(moved)) ** 4)
            sides.append(tape.gradient(value, moved).numpy())
        columns.append((sides[0] - sides[1]) / 2e-5)
    assert np.allclose(found, np.stack(columns, 1), rtol=1e-6, atol=1e-6)


def test_no_number_overflows_on_the_way():
    large = tf.constant([3e38 + 1e38j, 1e-38 + 1e-38j, 0j], tf.complex64)
    assert np.allclose(tf.abs(large).numpy(), np.abs(large.numpy()), rtol=1e-6)
    assert np.allclose((large[:2] / large[:2]).numpy(), [1, 1], rtol=1e-6)
    odd = tf.abs(tf.constant([complex(np.inf, 1), complex(np.nan, 0)])).numpy()
    assert odd[0] == np.inf and np.isnan(odd[1])
    w = complex_wave(50) * 10
    roots = tf.sqrt(tf.constant(w)).numpy()
    assert np.allclose(roots, np.sqrt(w), rtol=1e-13)


def test_layers_of_keras_pass_it_on():
    class Spectrum(tf.keras.layers.Layer):
        def call(self, x):
            return tf.signal.rfft(x)

    class Size(tf.keras.layers.Layer):
        def call(self, z):
            return tf.abs(z)

    x = wave(6, 16, kind="float32")
    inputs = tf.keras.Input((16,))
    spectrum = Spectrum()(inputs)
    assert spectrum.dtype == "complex64" and spectrum.shape == (None, 9)
    model = tf.keras.Model(inputs, Size()(spectrum))
    assert np.allclose(model.predict(x, verbose=0), np.abs(np.fft.rfft(x)), atol=1e-5)
    found = tf.keras.Sequential([Spectrum()]).predict(x, batch_size=4, verbose=0)
    assert found.dtype == np.complex64 and np.allclose(found, np.fft.rfft(x), atol=1e-5)
    trained = tf.keras.Sequential([Spectrum(), Size(), tf.keras.layers.Dense(1)])
    trained.compile(tf.keras.optimizers.SGD(1e-3), "mse")
    losses = trained.fit(x, x[:, :1], epochs=2, verbose=0).history["loss"]
    assert losses[1] < losses[0]
    z = tf.constant([1 + 2j])
    parts = [getattr(tf.keras.ops, name)(z).numpy()[0] for name in ("real", "imag", "conj")]
    assert parts == [1.0, 2.0, 1 - 2j]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda z: tf.nn.relu(z), TypeError, r"\[relu\] real .*complex64 of shape \(3,\).*abs"),
        (lambda z: tf.reduce_max(z), TypeError, r"\[reduce_max\] real numbers"),
        (lambda z: tf.Variable(z), TypeError, r"\[Variable\] real numbers are needed"),
        (lambda z: tf.ones([3]) * z, TypeError, r"real numbers.*cast\(x, samegrad\.complex64"),
        (lambda z: z * tf.ones([3]), tf.errors.InvalidArgumentError, r"\[mul\].*float32.*cast"),
        (lambda z: z + tf.constant(1j), TypeError, r"\[add\] complex64 is needed: got complex128"),
        (lambda z: z < 1.0, TypeError, r"\[lt\] complex numbers have no order"),
        (lambda z: z // 2, TypeError, r"\[floordiv\] complex"),
        (lambda z: 1.0 in z, TypeError, r"reduce_any"),
        (lambda z: z[7], IndexError, r"index must lie in \[-3, 3\)"),
        (lambda z: tf.complex(1, 2), TypeError, r"\[complex\] both parts must be float32.*int32"),
        (lambda z: tf.complex([1.0, 2.0], [1.0, 2.0, 3.0]), tf.errors.InvalidArgumentError,
         r"\[complex\] both parts must have one shape.*\(2,\) and \(3,\)"),
        (lambda z: tf.constant(1j, tf.float32), TypeError, r"\[constant\] real numbers"),
        (lambda z: tf.constant([[1j], [1, 2]]), ValueError, r"\[constant\] .* one shape"),
        (lambda z: tf.random.normal([1], dtype=tf.complex64), TypeError, r"\[normal\] real"),
        (lambda z: tf.train.Checkpoint(z=z), TypeError, r"\[checkpoint\] a part must be an array"),
        (lambda z: tf.function(lambda p: tf.cond(p, lambda: z, lambda: 1.0))(tf.constant(True)),
         tf.errors.InvalidArgumentError, r"got complex numbers of parts float32 \(3,\) and"),
        (lambda z: tf.GradientTape().jacobian(z, z), TypeError, r"jacobian\] real numbers"),
    ],
)  # fmt: skip
def test_what_takes_real_numbers_alone_says_so(z, call, error, words):
    with pytest.raises(error, match=words):
        call(z)
