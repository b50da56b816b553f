"""Files for TensorBoard, as `tf.summary` of TensorFlow 2 writes them, by the package tensorboardX.

What is written is known values: a function that is traced returns them, and its caller writes them.
`pip install 'samegrad[tensorboard]'` brings the package.
"""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.summary import experimental as experimental
from samegrad.summary._kinds import histogram, image, scalar, text, write
from samegrad.summary._traces import trace_export, trace_off, trace_on
from samegrad.summary._writer import (
    SummaryWriter,
    create_file_writer,
    create_noop_writer,
    flush,
    record_if,
    should_record_summaries,
)

__all__ = [
    "SummaryWriter",
    "create_file_writer",
    "create_noop_writer",
    "experimental",
    "flush",
    "histogram",
    "image",
    "record_if",
    "scalar",
    "should_record_summaries",
    "text",
    "trace_export",
    "trace_off",
    "trace_on",
    "write",
]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
