"""Files, records and the images in them, under the names of tf.io."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.image import (
    decode_bmp,
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_png,
    encode_jpeg,
    encode_png,
)
from samegrad.io import gfile
from samegrad.io._csv import decode_csv
from samegrad.io._encodings import decode_base64, decode_compressed, encode_base64
from samegrad.io._files import decode_raw, matching_files, read_file, write_file
from samegrad.io._parsing import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
    parse_example,
    parse_single_example,
)
from samegrad.io._records import TFRecordOptions, TFRecordWriter
from samegrad.io._sequence_parsing import parse_sequence_example, parse_single_sequence_example
from samegrad.io._tensors import parse_tensor, serialize_tensor

__all__ = [
    "FixedLenFeature", "FixedLenSequenceFeature", "RaggedFeature", "SparseFeature",
    "TFRecordOptions", "TFRecordWriter", "VarLenFeature", "decode_base64", "decode_bmp",
    "decode_compressed", "decode_csv", "decode_gif", "decode_image", "decode_jpeg", "decode_png",
    "decode_raw", "encode_base64", "encode_jpeg", "encode_png", "gfile", "matching_files",
    "parse_example", "parse_sequence_example", "parse_single_example",
    "parse_single_sequence_example", "parse_tensor", "read_file", "serialize_tensor", "write_file",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
