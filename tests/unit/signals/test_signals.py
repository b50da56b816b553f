"""tf.signal and complex numbers: TensorFlow's results, and what they may and may not do."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest
from signal_programs import complex_wave, plain, programs, wave

import samegrad as tf
from samegrad.signal import _fourier

RECORDED = json.loads(pathlib.Path(__file__).with_name("tensorflow_signals.json").read_text())
PROGRAMS = programs(tf)
# What TensorFlow refuses and we do not: other windows of no numbers are empty there.
EMPTY_HERE = "kaiser_window 0"
# Relative to the largest number: those of 32 bits are rounded in another order.
TOLERANCE = {"float32": 3e-6, "complex64": 3e-6, "float64": 1e-12, "complex128": 1e-12}


def compare(found, expected, name):
    if isinstance(expected, list):
        assert len(found) == len(expected), name
        for one, other in zip(found, expected, strict=True):
            compare(one, other, name)
        return
    if expected is None:
        assert found is None, name
        return
    assert (found["dtype"], found["shape"]) == (expected["dtype"], expected["shape"]), name
    ours, theirs = (np.asarray(each["values"], np.float64) for each in (found, expected))
    assert np.array_equal(np.isnan(ours), np.isnan(theirs)), name
    largest = np.nanmax(np.abs(theirs), initial=1e-300)
    wrong = np.nanmax(np.abs(ours - theirs), initial=0.0) / largest
    assert wrong <= TOLERANCE.get(expected["dtype"], 0), (name, wrong, found, expected)


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_tensorflow(name):
    expected = RECORDED["results"][name]
    if name == EMPTY_HERE:
        assert expected == "refused" and PROGRAMS[name]().shape == (0,)
    elif expected == "refused":
        with pytest.raises((ValueError, TypeError), match=r"^\[[\w.]+\] .*[;:]"):
            PROGRAMS[name]()
    else:
        compare(plain(PROGRAMS[name]()), expected, name)


def test_every_recorded_program_is_there():
    assert set(RECORDED["results"]) == set(PROGRAMS)


@pytest.mark.parametrize("size", [255, 256, 257, 509, 521, 1000, 2053, 16_000, 16_001, 2 * 5003])
def test_long_transforms_are_those_of_numpy(size):
    x, z = wave(2, size), complex_wave(2, size)
    bound = 1e-14 * size**0.5 * np.abs(z).max() * 20
    for found, expected in (
        (tf.signal.fft(z), np.fft.fft(z)),
        (tf.signal.ifft(z) * size, np.fft.ifft(z) * size),
        (tf.signal.rfft(x), np.fft.rfft(x)),
        (tf.signal.irfft(z) * (2 * size - 2), np.fft.irfft(z) * (2 * size - 2)),
        (
            tf.signal.irfft(z, [2 * size - 1]) * (2 * size - 1),
            np.fft.irfft(z, 2 * size - 1) * (2 * size - 1),
        ),
    ):
        assert found.shape == expected.shape
        assert np.abs(found.numpy() - expected).max() <= bound


def test_transforms_of_float32_lose_little():
    x = wave(3, 16_000)
    exact = np.fft.rfft(x)
    found = tf.signal.rfft(tf.constant(x, tf.float32)).numpy()
    assert np.abs(found - exact).max() < 3e-6 * np.abs(exact).max()


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_long_cosine_transforms_are_products_with_a_matrix(kind):
    size = 300
    n, k = np.arange(size)[:, None], np.arange(size)
    angles = {1: n * k / (size - 1), 2: (n + 0.5) * k / size, 3: n * (k + 0.5) / size,
              4: (n + 0.5) * (k + 0.5) / size}[kind]  # fmt: skip
    matrix = 2 * np.cos(np.pi * angles)
    matrix[0] *= 0.5 if kind in (1, 3) else 1
    matrix[-1] *= 0.5 if kind == 1 else 1
    x = wave(2, size)
    assert np.abs(tf.signal.dct(x, type=kind).numpy() - x @ matrix).max() < 1e-11
    if kind > 1:
        once = tf.signal.dct(x, type=kind, norm="ortho")
        back = tf.signal.idct(once, type=kind, norm="ortho").numpy()
        assert np.abs(back - x).max() < 1e-13
        assert abs(np.linalg.norm(once.numpy()) - np.linalg.norm(x)) < 1e-12


def _rows_of(function, x):
    whole = function(tf.constant(x)).numpy()
    for rows in (slice(0, 1), slice(2, 5), slice(6, 7)):
        part = function(tf.constant(x[rows])).numpy()
        assert part.tobytes() == whole[rows].tobytes()


@pytest.mark.parametrize("size", [1, 60, 128, 300, 521, 1000])
def test_a_rows_bits_do_not_depend_on_the_others(size):
    x = wave(7, size, kind="float32")
    _rows_of(lambda v: tf.signal.rfft(v), x)
    _rows_of(lambda v: tf.signal.irfft(tf.signal.rfft(v), [size]), x)
    _rows_of(lambda v: tf.signal.fft(tf.cast(v, tf.complex64)), x)
    _rows_of(lambda v: tf.signal.dct(v), x)
    _rows_of(lambda v: tf.abs(tf.signal.stft(v, 16, 8, pad_end=True)), x)
    _rows_of(lambda v: tf.signal.overlap_and_add(tf.signal.frame(v, 4, 3, pad_end=True), 3), x)


def test_a_batch_of_none_and_a_row_alone():
    for size in (5, 300, 521):
        x = wave(3, size)
        assert tf.signal.rfft(tf.zeros([0, size])).shape == (0, size // 2 + 1)
        assert tf.signal.fft(tf.zeros([0, size], tf.complex64)).shape == (0, size)
        assert tf.abs(tf.signal.stft(tf.zeros([0, size]), 4, 2)).shape[0] == 0
        alone = tf.signal.rfft(x[1]).numpy()
        assert alone.tobytes() == tf.signal.rfft(x).numpy()[1].tobytes()
    assert tf.signal.irfft(complex_wave(2, 1)).shape == (2, 0)


def _numerical(function, x, step=1e-6):
    slopes = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        moved = [x.copy(), x.copy()]
        moved[0][place] += step
        moved[1][place] -= step
        up, down = (float(function(tf.constant(each))) for each in moved)
        slopes[place] = (up - down) / (2 * step)
    return slopes


def _of_parts(function):
    return lambda x: function(tf.complex(x[0], x[1]))


WEIGHTS = wave(2000, seed=2.0)


def _weighted(x):
    flat = tf.reshape(x, [-1])
    return tf.reduce_sum(flat * flat * WEIGHTS[: flat.shape[0]] + flat)


GRADIENTS = {
    "fft": (_of_parts(lambda z: _weighted(tf.math.real(tf.signal.fft(z) * (1 + 2j)))), (2, 7)),
    "long fft": (_of_parts(lambda z: _weighted(tf.abs(tf.signal.fft(z)))), (2, 132)),
    "ifft3d": (_of_parts(lambda z: _weighted(tf.abs(tf.signal.ifft3d(z)))), (2, 2, 3, 2)),
    "rfft": (lambda x: _weighted(tf.abs(tf.signal.rfft(x, [9]))), (2, 6)),
    "irfft": (_of_parts(lambda z: _weighted(tf.signal.irfft(z, [5]))), (2, 4)),
    "irfft2d": (_of_parts(lambda z: _weighted(tf.signal.irfft2d(z))), (2, 3, 4)),
    "stft": (lambda x: _weighted(tf.abs(tf.signal.stft(x, 6, 2))), (17,)),
    "inverse_stft": (_of_parts(lambda z: _weighted(tf.signal.inverse_stft(z, 6, 2, 8))), (2, 3, 5)),
    "long dct": (lambda x: _weighted(tf.signal.dct(x, type=3)), (260,)),
    "mdct": (lambda x: _weighted(tf.signal.inverse_mdct(tf.signal.mdct(x, 8))), (16,)),
    "frame": (lambda x: _weighted(tf.signal.frame(x, 3, 2, pad_end=True, axis=0)), (6, 2)),
    "quotient": (_of_parts(lambda z: _weighted(tf.abs(1.0 / (z * z + 3.0)))), (2, 5)),
    "functions": (
        _of_parts(lambda z: _weighted(tf.abs(tf.sqrt(z) + tf.math.log(z) * tf.exp(z) ** 0.5))),
        (2, 5),
    ),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_the_slopes(name):
    function, shape = GRADIENTS[name]
    x = wave(*shape)
    source = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(source)
        loss = function(source)
    found = tape.gradient(loss, source).numpy()
    expected = _numerical(function, x)
    assert np.abs(found - expected).max() < 1e-6 * (1 + np.abs(expected).max())


def test_a_long_prime_has_gradients_too():
    x = tf.constant(wave(521))
    with tf.GradientTape() as tape:
        tape.watch(x)
        power = tf.reduce_sum(tf.abs(tf.signal.fft(tf.cast(x, tf.complex128))) ** 2)
    # Parseval: the sum is that of the squares, times their number.
    assert np.abs(tape.gradient(power, x).numpy() - 2 * 521 * x.numpy()).max() < 1e-8


def test_traced_functions_give_the_same_bits_for_any_number_of_rows():
    @tf.function
    def spectrogram(x):
        return tf.abs(tf.signal.stft(x, 20, 10)), tf.signal.rfft(x)

    for rows in (1, 5, 2):
        x = tf.constant(wave(rows, 200, kind="float32"))
        traced, eager = spectrogram(x), spectrogram.python_function(x)
        for one, other in zip(traced, eager, strict=True):
            assert one.numpy().tobytes() == other.numpy().tobytes()


@pytest.mark.parametrize("rank", [1, 2])
def test_signatures_leave_the_length_open(rank):
    programs = (
        lambda x: tf.signal.irfft(tf.signal.rfft(x), [tf.shape(x)[-1]]),
        lambda x: tf.abs(tf.signal.fft(tf.cast(x, tf.complex64))),
        lambda x: tf.abs(tf.signal.stft(x, 16, 8, pad_end=True)),
        lambda x: tf.signal.dct(tf.signal.fftshift(x)),
    )
    for program in programs:
        traced = tf.function(program, input_signature=[tf.TensorSpec([None] * rank, tf.float32)])
        for size in (100, 64, 300):
            x = wave(*[3, size][-rank:], kind="float32")
            assert traced(x).numpy().tobytes() == program(tf.constant(x)).numpy().tobytes()


def test_the_audio_tutorial_runs_in_a_dataset(tmp_path):
    rate, files = 16_000, []
    for number in range(3):
        samples = tf.constant(0.5 * wave(rate, 1, kind="float32", seed=float(number)) / 2)
        files.append(str(tmp_path / f"{number}.wav"))
        tf.io.write_file(files[-1], tf.audio.encode_wav(samples, rate))

    def read(path):
        sound, _ = tf.audio.decode_wav(tf.io.read_file(path), desired_samples=rate)
        return tf.squeeze(sound, axis=-1)

    def spectrogram(waveform):
        found = tf.signal.stft(waveform, frame_length=255, frame_step=128)
        return tf.abs(found)[..., tf.newaxis]

    data = tf.data.Dataset.from_tensor_slices(files).map(read).batch(2).map(spectrogram)
    shapes = [tuple(batch.shape) for batch in data]
    assert shapes == [(2, 124, 129, 1), (1, 124, 129, 1)]
    expected = np.abs(tf.signal.stft(read(files[0]), 255, 128).numpy())
    assert np.array_equal(next(iter(data)).numpy()[0, ..., 0].shape, expected.shape)
    weights = tf.signal.linear_to_mel_weight_matrix(40, 129, rate, 80.0, 7600.0)
    mel = tf.matmul(next(iter(data))[..., 0], weights)
    cepstra = tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(mel + 1e-6))[..., :13]
    assert cepstra.shape == (2, 124, 13) and np.isfinite(cepstra.numpy()).all()


def test_what_does_not_fit_is_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[fft\] complex.*got float32.*cast"):
        tf.signal.fft(tf.ones([3]))
    with pytest.raises(ValueError, match=r"\[stft\] float32 or float64 is needed: got int32"):
        tf.signal.stft(tf.ones([30], tf.int32), 4, 2)
    with pytest.raises(ValueError, match=r"\[frame\] frame_step must be 1 or more: got 0"):
        tf.signal.frame(tf.ones([3]), 2, 0)
    with pytest.raises(ValueError, match=r"\[frame\] axis must be one of 1: got 3"):
        tf.signal.frame(tf.ones([3]), 2, 1, axis=3)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[rfft\] fft_length.*\[4, 4\]"):
        tf.signal.rfft(tf.ones([3]), [4, 4])
    with pytest.raises(
        ValueError, match=r"\[stft\] window_fn.* 4 numbers of float32: got .*\(3,\)"
    ):
        tf.signal.stft(tf.ones([9]), 4, 2, window_fn=lambda n, dtype: tf.ones([3]))
    with pytest.raises(NotImplementedError, match=r"\[dct\] axis must be -1: got 0"):
        tf.signal.dct([[1.0]], axis=0)
    with pytest.raises(AttributeError, match="did you mean 'hann_window'"):
        tf.signal.han_window(3)


def test_windows_that_leave_places_out_have_inverses_without_nan():
    x = tf.constant(wave(2, 24, kind="float32"))
    pair = tf.keras.ops.stft(x, 4, 4, 4, center=False)
    back = tf.keras.ops.istft(pair, 4, 4, 4, center=False).numpy()
    places = np.arange(24) % 4 > 0  # the window is zero at the first
    assert np.allclose(back[:, places], x.numpy()[:, places], atol=1e-6)
    assert np.array_equal(back[:, ~places], np.zeros((2, 6), np.float32))
    window = tf.signal.inverse_stft_window_fn(4)(4, dtype=tf.float32).numpy()
    assert window[0] == 0.0 and np.isfinite(window).all()


def test_matrices_are_kept_within_their_bytes():
    kept = _fourier.turns.kept
    kept.clear()
    few = [_fourier.turns(64, 64, 64 * n, 1) for n in range(1, 30)]
    assert len(kept) == 29 and _fourier.turns(64, 64, 64, 1) is few[0]
    for n in range(1, 8):
        _fourier.turns(1024, 1024, 1 << 20, n)  # 16 MiB each
    assert sum(each.nbytes for each in kept.values()) <= _fourier._KEPT_BYTES
    assert _fourier.turns(1024, 1024, 1 << 20, 7) is _fourier.turns(1024, 1024, 1 << 20, 7)
