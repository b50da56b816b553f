"""Text, under the names of tf.strings: for preparing data, never part of a traced step."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.strings._encodings import to_hash_bucket, unicode_transcode
from samegrad.strings._letters import (
    length,
    lower,
    regex_full_match,
    regex_replace,
    strip,
    substr,
    upper,
)
from samegrad.strings._numbers import as_string, format, to_number
from samegrad.strings._offsets import unicode_decode_with_offsets, unicode_split_with_offsets
from samegrad.strings._parts import (
    bytes_split,
    join,
    ngrams,
    reduce_join,
    split,
    to_hash_bucket_fast,
    to_hash_bucket_strong,
    unicode_decode,
    unicode_encode,
    unicode_split,
    unsorted_segment_join,
)

__all__ = [
    "as_string", "bytes_split", "format", "join", "length", "lower", "ngrams", "reduce_join",
    "regex_full_match", "regex_replace", "split", "strip", "substr", "to_hash_bucket",
    "to_hash_bucket_fast", "to_hash_bucket_strong", "to_number", "unicode_decode",
    "unicode_decode_with_offsets", "unicode_encode", "unicode_split", "unicode_split_with_offsets",
    "unicode_transcode", "unsorted_segment_join", "upper",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
