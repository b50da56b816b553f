"""keras.backend.math: segments, order, error functions, and Fourier transforms."""

from __future__ import annotations

from samegrad._keras.math.basic import (
    cdist,
    extract_sequences,
    in_top_k,
    logdet,
    logsumexp,
    rsqrt,
    segment_max,
    segment_min,
    segment_prod,
    segment_sum,
    top_k,
)
from samegrad._keras.math.errors import erf, erfc, erfinv
from samegrad._keras.math.fourier import (
    _get_complex_tensor_from_tuple,
    fft,
    fft2,
    ifft2,
    irfft,
    istft,
    rfft,
    stft,
)

__all__ = [
    "_get_complex_tensor_from_tuple", "cdist", "erf", "erfc", "erfinv", "extract_sequences", "fft",
    "fft2", "ifft2", "in_top_k", "irfft", "istft", "logdet", "logsumexp", "rfft", "rsqrt",
    "segment_max", "segment_min", "segment_prod", "segment_sum", "stft", "top_k",
]  # fmt: skip
