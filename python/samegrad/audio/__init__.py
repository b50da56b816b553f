"""Sound from the bytes of WAV files and back, under the names of tf.audio."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.audio._wav import decode_wav, encode_wav

__all__ = ["decode_wav", "encode_wav"]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
