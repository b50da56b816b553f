"""Programs of signals and complex numbers that run on samegrad and on TensorFlow alike."""

import numpy as np


def wave(*shape, kind="float64", seed=0.0):
    """Numbers without a pattern, the same everywhere."""
    places = np.arange(np.prod(shape, dtype=int), dtype=np.float64)
    return (
        (np.sin(places * 1.7 + seed) + np.cos(places**2 * 0.3 - seed)).reshape(shape).astype(kind)
    )


def complex_wave(*shape, kind="complex128"):
    return (wave(*shape) + 1j * wave(*shape, seed=1.0)).astype(kind)


SIZES = (1, 2, 3, 7, 8, 13, 30, 131)


def _transforms(tf):
    s, z = tf.signal, complex_wave
    programs = {}
    for n in SIZES:
        programs[f"fft {n}"] = lambda n=n: s.fft(tf.constant(z(2, n)))
        programs[f"ifft {n}"] = lambda n=n: s.ifft(tf.constant(z(2, n)))
        programs[f"rfft {n}"] = lambda n=n: s.rfft(tf.constant(wave(2, n)))
        if n > 1:  # of one number TensorFlow's process ends
            programs[f"irfft {n}"] = lambda n=n: s.irfft(tf.constant(z(2, n)))
        programs[f"irfft odd {n}"] = lambda n=n: s.irfft(tf.constant(z(2, n)), [2 * n - 1])
    programs |= {
        "fft of complex64": lambda: s.fft(tf.constant(z(5, kind="complex64"))),
        "fft of a list": lambda: s.fft([1.0, 2.0, 4.0]),
        "fft2d": lambda: s.fft2d(tf.constant(z(2, 3, 5))),
        "ifft2d": lambda: s.ifft2d(tf.constant(z(4, 5))),
        "fft3d": lambda: s.fft3d(tf.constant(z(2, 3, 2, 5))),
        "ifft3d": lambda: s.ifft3d(tf.constant(z(3, 2, 5))),
        "rfft cut": lambda: s.rfft(tf.constant(wave(2, 9)), fft_length=[6]),
        "rfft filled": lambda: s.rfft(tf.constant(wave(9)), [16]),
        "irfft cut": lambda: s.irfft(tf.constant(z(2, 9)), fft_length=[7]),
        "irfft filled": lambda: s.irfft(tf.constant(z(4)), [16]),
        "rfft2d": lambda: s.rfft2d(tf.constant(wave(2, 4, 6))),
        "rfft2d of sizes": lambda: s.rfft2d(tf.constant(wave(4, 6)), [5, 3]),
        "irfft2d": lambda: s.irfft2d(tf.constant(z(3, 4))),
        "irfft2d of sizes": lambda: s.irfft2d(tf.constant(z(2, 3, 4)), [4, 7]),
        "rfft3d": lambda: s.rfft3d(tf.constant(wave(2, 3, 4))),
        "irfft3d": lambda: s.irfft3d(tf.constant(z(2, 3, 4)), [2, 3, 5]),
        "fft of no rows": lambda: s.fft(tf.constant(z(0, 4))),
        "fft of no numbers": lambda: s.fft(tf.constant(z(2, 0))),
        "rfft of no rows": lambda: s.rfft(tf.constant(wave(0, 4))),
        "rfft of no numbers": lambda: s.rfft(tf.constant(wave(0))),
        "fftshift": lambda: s.fftshift(tf.constant(wave(2, 5))),
        "ifftshift": lambda: s.ifftshift(tf.constant(wave(4, 5)), axes=[1]),
        "fftshift of complex": lambda: s.fftshift(tf.constant(z(3, 4)), axes=(0, -1)),
        "rfft of int": lambda: s.rfft(tf.constant([1, 2])),
        "fft of no axis": lambda: s.fft(tf.constant(1j)),
        "fft2d of one axis": lambda: s.fft2d(tf.constant(z(3))),
    }
    return programs


def _frames(tf):
    s, x = tf.signal, lambda *shape: tf.constant(wave(*shape))
    programs = {
        f"frame {n} {length} {step} {end}": lambda n=n, length=length, step=step, end=end: s.frame(
            x(2, n), length, step, pad_end=end, pad_value=9.0
        )
        for n in (0, 1, 7, 10)
        for length, step in ((3, 2), (4, 4), (2, 5), (9, 1))
        for end in (False, True)
    }
    return programs | {
        "frame of an inner axis": lambda: s.frame(x(2, 7, 3), 3, 2, axis=1),
        "frame of int": lambda: s.frame(tf.range(6), 4, 1),
        "overlap_and_add": lambda: s.overlap_and_add(x(2, 3, 5), 2),
        "overlap_and_add apart": lambda: s.overlap_and_add(x(3, 2), 4),
        "overlap_and_add of one": lambda: s.overlap_and_add(x(1, 4), 2),
        "overlap_and_add of a row": lambda: s.overlap_and_add(x(4), 2),
    }


def _windows(tf):
    s, programs = tf.signal, {}
    for n in (0, 1, 2, 3, 8, 9):
        for periodic in (True, False):
            for name in ("hann_window", "hamming_window"):
                programs[f"{name} {n} {periodic}"] = lambda n=n, name=name, p=periodic: getattr(
                    s, name
                )(n, periodic=p, dtype=tf.float64)
        programs[f"vorbis_window {n}"] = lambda n=n: s.vorbis_window(n, dtype=tf.float64)
        programs[f"kaiser_window {n}"] = lambda n=n: s.kaiser_window(n, 3.5, tf.float64)
        programs[f"kaiser_bessel_derived_window {n}"] = (
            lambda n=n: s.kaiser_bessel_derived_window(n, 3.5, tf.float64)
        )  # fmt: skip
    return programs | {
        "hann_window of float32": lambda: s.hann_window(7),
        "kaiser_window of float32": lambda: s.kaiser_window(12),
        "hann_window of int": lambda: s.hann_window(4, dtype=tf.int32),
    }


def _cosines(tf):
    s, programs = tf.signal, {}
    for kind in (1, 2, 3, 4):
        for norm in (None, "ortho"):
            for n in (None, 3, 9):
                programs[f"dct {kind} {norm} {n}"] = lambda kind=kind, norm=norm, n=n: s.dct(
                    tf.constant(wave(2, 6)), type=kind, n=n, norm=norm
                )
            programs[f"idct {kind} {norm}"] = lambda kind=kind, norm=norm: s.idct(
                tf.constant(wave(2, 7)), type=kind, norm=norm
            )
    return programs | {
        "dct of one": lambda: s.dct(tf.constant(wave(2, 1))),
        "dct 1 of one": lambda: s.dct(tf.constant(wave(2, 1)), type=1),
        "dct 5": lambda: s.dct(tf.constant(wave(2, 3)), type=5),
        "mfccs": lambda: s.mfccs_from_log_mel_spectrograms(tf.constant(wave(2, 3, 20))),
        "mdct": lambda: s.mdct(tf.constant(wave(2, 20)), 8),
        "mdct ortho": lambda: s.mdct(tf.constant(wave(20)), 8, norm="ortho", pad_end=True),
        "mdct without window": lambda: s.mdct(tf.constant(wave(20)), 8, window_fn=None),
        "mdct of 6": lambda: s.mdct(tf.constant(wave(20)), 6),
        "inverse_mdct": lambda: s.inverse_mdct(tf.constant(wave(2, 3, 4))),
        "inverse_mdct ortho": lambda: s.inverse_mdct(
            tf.constant(wave(3, 4)), window_fn=None, norm="ortho"
        ),
    }


def _spectra(tf):
    s = tf.signal

    def log_mel():
        samples = 0.4 * wave(2000, 1, kind="float32")
        sound, rate = tf.audio.decode_wav(tf.audio.encode_wav(samples, 16000))
        spectrogram = tf.abs(s.stft(tf.squeeze(sound, axis=-1), frame_length=255, frame_step=128))
        mel = s.linear_to_mel_weight_matrix(20, spectrogram.shape[-1], rate, 80.0, 7600.0)
        return tf.math.log(tf.tensordot(spectrogram, mel, 1) + 1e-6)

    return {
        "stft": lambda: s.stft(tf.constant(wave(2, 40)), 8, 3),
        "stft filled": lambda: s.stft(tf.constant(wave(41)), 7, 5, fft_length=10, pad_end=True),
        "stft without window": lambda: s.stft(tf.constant(wave(20)), 8, 4, window_fn=None),
        "stft of few samples": lambda: s.stft(tf.constant(wave(10)), 10, 4),
        "inverse_stft": lambda: s.inverse_stft(tf.constant(complex_wave(2, 4, 5)), 8, 3),
        "inverse_stft filled": lambda: s.inverse_stft(
            tf.constant(complex_wave(4, 3)), 6, 4, fft_length=5
        ),
        "inverse_stft window": lambda: s.inverse_stft(
            s.stft(tf.constant(wave(50)), 9, 4), 9, 4,
            window_fn=s.inverse_stft_window_fn(4, forward_window_fn=s.hamming_window),
        ),
        "inverse_stft_window_fn": lambda: s.inverse_stft_window_fn(3)(8, dtype=tf.float64),
        "mel weights": lambda: s.linear_to_mel_weight_matrix(
            6, 17, 8000, 100.0, 3900.0, tf.float64
        ),
        "mel weights of defaults": lambda: s.linear_to_mel_weight_matrix()[:40],
        "mel weights beyond": lambda: s.linear_to_mel_weight_matrix(upper_edge_hertz=5000.0),
        "audio tutorial": log_mel,
    }  # fmt: skip


def _complex(tf):
    z, w = tf.constant(complex_wave(2, 3)), tf.constant(complex_wave(2, 3) - 0.5j)
    x = tf.constant(wave(2, 3))
    m = tf.math
    return {
        "constant": lambda: tf.constant([1 + 2j, 3]),
        "constant of float32": lambda: tf.constant([1, 2.5], tf.complex64),
        "convert_to_tensor": lambda: tf.convert_to_tensor(np.array([1j], np.complex64)),
        "complex": lambda: tf.complex(x, x[:1] * 2.0),
        "complex of int": lambda: tf.complex(1, 2),
        "parts": lambda: (m.real(z), m.imag(z), m.angle(z), m.conj(z), tf.abs(z)),
        "parts of real": lambda: (m.real(x), m.imag(x), m.angle(x), m.conj(x)),
        "large and small": lambda: tf.abs(tf.constant([3e200 + 4e200j, 3e-200 + 4e-200j, 0j])),
        "large quotient": lambda: tf.constant([1e200 + 1e200j, 1e-200j]) / tf.constant(
            [2e200 - 1e200j, 2e-200 + 1e-200j]
        ),
        "cast": lambda: (tf.cast(z, tf.complex64), tf.cast(x, tf.complex64),
                         tf.cast(z, tf.float32), tf.cast(z, tf.int32)),
        "operators": lambda: (z + w, z - w, z * w, z / w, -z, z == w, z != w, z == z, abs(z)),
        "numbers": lambda: (z + 1, 2.0 - z, z * 2j, 1 / z, z**2, z**3, z**0.5, z - wave(2, 3)),
        "real beside complex": lambda: z * x,
        "complex64 beside complex128": lambda: z * tf.cast(z, tf.complex64),
        "order": lambda: z < w,
        "indices": lambda: (z[0], z[:, 1:], z[..., None], z[::-1], z[tf.newaxis, 1]),
        "arrays": lambda: (tf.reshape(z, [3, -1]), tf.transpose(z), tf.stack([z, w], 1),
                           tf.concat([z, w], 0), tf.expand_dims(z, 1), tf.squeeze(z[:1]),
                           tf.tile(z, [1, 2]), tf.repeat(z, 2, 0), tf.reverse(z, [1]),
                           tf.pad(z, [[1, 0], [0, 1]]), tf.gather(z, [1, 0], axis=1),
                           tf.roll(z, 1, 1), tf.broadcast_to(z[:1], [2, 3]),
                           tf.where(x > 0, z, w), tf.zeros_like(z), tf.ones_like(z),
                           tf.zeros([2], tf.complex64), tf.eye(2, dtype=tf.complex64)),
        "lists": lambda: (*tf.split(z, [1, 2], 1), *tf.unstack(z)),
        "sizes": lambda: (tf.shape(z), tf.size(z), tf.rank(z)),
        "sums": lambda: (tf.reduce_sum(z), tf.reduce_sum(z, 0), tf.reduce_mean(z, 1, True),
                         tf.cumsum(z, 1), tf.add_n([z, w])),
        "products": lambda: (tf.matmul(z, w, transpose_b=True), tf.matmul(z, w, adjoint_b=True),
                             z @ tf.transpose(w), tf.einsum("ij,ij->i", z, w),
                             tf.tensordot(z, w, [[0], [0]]), tf.linalg.adjoint(z),
                             tf.linalg.matrix_transpose(z)),
        "functions": lambda: (tf.exp(z), m.log(z), tf.square(z), tf.sqrt(z), tf.sin(z), tf.cos(z),
                              tf.pow(z, w), m.reciprocal(z), tf.negative(z),
                              m.squared_difference(z, w), tf.multiply(z, w), tf.divide(z, w),
                              tf.add(z, w), tf.subtract(z, w), tf.equal(z, w), tf.sign(z),
                              tf.tanh(z), tf.tanh(tf.constant([400 + 1j, 0.5 - 3j]))),
        "roots": lambda: tf.sqrt(tf.constant([-4 + 0j, 4j, -4j, 0j, -3 - 1e-9j, 1e-300 + 0j])),
        "reduce_max": lambda: tf.reduce_max(z),
        "shapes that differ": lambda: z + tf.constant(complex_wave(4)),
    }  # fmt: skip


def _gradients(tf):
    z, x = tf.constant(complex_wave(4)), tf.constant(wave(4))
    c = lambda a: tf.cast(a, tf.complex128)  # noqa: E731
    m, s, total = tf.math, tf.signal, tf.reduce_sum
    targets = {
        "abs": lambda z, x: tf.abs(z),
        "abs at zero": lambda z, x: tf.abs(z * tf.constant([0.0, 1.0, 0.0, 1.0], tf.complex128)),
        "power": lambda z, x: tf.square(tf.abs(z)),
        "real": lambda z, x: m.real(z * z),
        "imag": lambda z, x: m.imag(z) * x,
        "angle": lambda z, x: m.angle(z),
        "holomorphic": lambda z, x: z * z + tf.exp(z) + 1.0 / z,
        "conj": lambda z, x: z * m.conj(z) * m.conj(z),
        "cast to complex": lambda z, x: tf.abs(c(x) * z + 1.0),
        "cast to real": lambda z, x: tf.cast(z, tf.float64) * x,
        "complex": lambda z, x: m.imag(tf.exp(tf.complex(x, x * x))),
        "roots": lambda z, x: tf.sqrt(z) + m.log(z) + tf.pow(z, c(x)),
        "waves": lambda z, x: tf.sin(z) * tf.cos(z) + tf.tanh(z),
        "matmul": lambda z, x: tf.matmul(z[None], z[None], adjoint_b=True),
        "fft": lambda z, x: tf.abs(s.fft(z)) + tf.abs(s.ifft(c(x))),
        "fft itself": lambda z, x: s.fft(z) * c(x),
        "rfft": lambda z, x: total(tf.abs(s.rfft(x)) ** 2),
        "irfft": lambda z, x: tf.square(s.irfft(z, [7])),
        "irfft even": lambda z, x: tf.square(s.irfft(z)),
        "fft2d": lambda z, x: tf.abs(s.fft2d(tf.reshape(z, [2, 2]))),
        "rfft2d": lambda z, x: tf.abs(s.rfft2d(tf.reshape(x, [2, 2]))),
        "stft": lambda z, x: tf.abs(s.stft(x, 4, 2, pad_end=True)),
        "inverse_stft": lambda z, x: s.inverse_stft(tf.reshape(z[:3], [1, 3]), 4, 2) ** 2,
        "dct": lambda z, x: s.dct(x) ** 2 + s.dct(x, type=4, norm="ortho") * x,
        "mdct": lambda z, x: s.mdct(tf.tile(x, [3]), 4) ** 2,
        "nothing": lambda z, x: x * 2.0,
    }

    def gradients(target):
        with tf.GradientTape() as tape:
            tape.watch([z, x])
            found = target(z, x)
        return tape.gradient(found, [z, x])

    def weighted():
        with tf.GradientTape() as tape:
            tape.watch(z)
            found = tf.exp(z)
        weights = tf.constant(complex_wave(4) + 1j)
        return tape.gradient(found, z, output_gradients=weights)

    return {
        **{f"gradient of {name}": lambda t=t: gradients(t) for name, t in targets.items()},
        "gradient with weights": weighted,
    }


def programs(tf):
    """All of them by name."""
    parts = (_transforms, _frames, _windows, _cosines, _spectra, _complex, _gradients)
    return {name: program for part in parts for name, program in part(tf).items()}


def plain(value):
    """A result as JSON has it: dtype, shape and numbers; lists of them."""
    if value is None:
        return None
    if isinstance(value, list | tuple) and not hasattr(value, "numpy"):
        return [plain(part) for part in value]
    array = np.asarray(value.numpy())
    flat = array.ravel()
    numbers = [flat.real.tolist(), flat.imag.tolist()] if array.dtype.kind == "c" else flat.tolist()
    return {"dtype": array.dtype.name, "shape": list(array.shape), "values": numbers}


def record(tf):
    """What each program gives; "refused" where it raises."""
    found = {}
    for name, program in programs(tf).items():
        try:
            found[name] = plain(program())
        except Exception as error:
            print(f"{name}: {type(error).__name__} {error!s:.100}")
            found[name] = "refused"
    return found
