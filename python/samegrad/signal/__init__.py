"""Signals: frames, windows and Fourier transforms, under the names of tf.signal.

Complex numbers are pairs of real tensors (see `tf.complex`), and transforms are products with
matrices: gradients flow through all of them, and the bits of a row do not depend on the others.
"""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.signal._cosine import dct, idct, mfccs_from_log_mel_spectrograms
from samegrad.signal._frames import frame, overlap_and_add
from samegrad.signal._spectra import (
    inverse_mdct,
    inverse_stft,
    inverse_stft_window_fn,
    linear_to_mel_weight_matrix,
    mdct,
    stft,
)
from samegrad.signal._transforms import (
    fft,
    fft2d,
    fft3d,
    fftshift,
    ifft,
    ifft2d,
    ifft3d,
    ifftshift,
    irfft,
    irfft2d,
    irfft3d,
    rfft,
    rfft2d,
    rfft3d,
)
from samegrad.signal._windows import (
    hamming_window,
    hann_window,
    kaiser_bessel_derived_window,
    kaiser_window,
    vorbis_window,
)

__all__ = [
    "dct", "fft", "fft2d", "fft3d", "fftshift", "frame", "hamming_window", "hann_window", "idct",
    "ifft", "ifft2d", "ifft3d", "ifftshift", "inverse_mdct", "inverse_stft",
    "inverse_stft_window_fn", "irfft", "irfft2d", "irfft3d", "kaiser_bessel_derived_window",
    "kaiser_window", "linear_to_mel_weight_matrix", "mdct", "mfccs_from_log_mel_spectrograms",
    "overlap_and_add", "rfft", "rfft2d", "rfft3d", "stft", "vorbis_window",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
