"""Print a digest of each kind of constants that programs compute on the host."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

import samegrad as tf
from samegrad.cli._translate._blocks import positional_encoding
from samegrad.image._kernels import taps_of

SIZES = (2, 7, 64, 1000)
PRIME = 1031


def _numbers(*shape: int) -> Any:
    return np.linspace(0.1, 3.7, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def _windows() -> list[Any]:
    signal, ops = tf.signal, tf.keras.ops
    makers = (
        signal.hann_window, signal.hamming_window, signal.kaiser_window, signal.vorbis_window,
        signal.kaiser_bessel_derived_window,
    )  # fmt: skip
    of_keras = (ops.blackman, ops.hamming, ops.hanning, lambda n: ops.kaiser(n, 5.0))
    made = [make(size, dtype="float64") for make in makers for size in SIZES]
    return made + [make(size) for make in of_keras for size in SIZES]


def _taps() -> list[Any]:
    methods = ("bilinear", "bicubic", "gaussian", "lanczos3", "lanczos5", "mitchellcubic", "area")
    return [taps_of(m, old, 31, True).weights for m in methods for old in (17, 64, 1000)]


def _transforms() -> list[Any]:
    x = _numbers(2, PRIME)
    parts = [tf.signal.rfft(x), tf.signal.rfft(x[:, :360])]
    made = [part for pair in parts for part in (tf.math.real(pair), tf.math.imag(pair))]
    return made + [tf.signal.dct(x[:, :size], kind) for kind in (2, 3, 4) for size in (64, 500)]


def _of_keras() -> list[Any]:
    x = tf.constant(_numbers(500))
    ops = tf.keras.ops
    return [ops.log10(x), ops.log2(x), ops.logaddexp2(x, x[::-1]), ops.round(x, 3)]


def _images() -> list[Any]:
    a, b = (tf.constant(_numbers(1, 24, 24, 3)) / 4.0 * k for k in (1.0, 0.9))
    boxes = np.stack([_numbers(9), _numbers(9), _numbers(9) + 1, _numbers(9) + 1], 1)
    chosen = tf.image.non_max_suppression_with_scores(boxes, _numbers(9), 9, soft_nms_sigma=0.3)
    return [tf.image.ssim(a, b, 1.0), tf.image.psnr(a, b, 3.0), *chosen]


def _losses() -> list[Any]:
    classes = tf.constant([[3], [500]], "int64")
    drawn = tf.random.log_uniform_candidate_sampler(classes, 1, 5, True, 1000, seed=1)
    logits = tf.constant(_numbers(9, 2, 6))
    decoded, scores = tf.nn.ctc_beam_search_decoder(logits, [9, 9], 8, 3)
    return [drawn.true_expected_count, drawn.sampled_expected_count, scores, decoded[0].values]


KINDS: dict[str, Callable[[], list[Any]]] = {
    "windows": _windows, "taps": _taps, "transforms": _transforms, "of keras": _of_keras,
    "images": _images, "losses": _losses,
    "mel": lambda: [tf.signal.linear_to_mel_weight_matrix(40, 257, 16000, 80.0, 7600.0, "float64")],
    "places": lambda: [positional_encoding(512, 64)],
}  # fmt: skip


def main() -> None:
    """Print the digests."""
    for name, values in KINDS.items():
        digest = hashlib.sha256(b"".join(np.asarray(value).tobytes() for value in values()))
        print(name, digest.hexdigest())


if __name__ == "__main__":
    main()
