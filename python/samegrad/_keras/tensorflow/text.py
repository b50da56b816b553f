"""Text for Keras's layers that turn it into numbers: known values, never part of a traced step."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad import strings as _strings
from samegrad._base.dtypes import string as STRING  # noqa: N812
from samegrad._keras.text_steps import read_value
from samegrad._tensor.ragged import RaggedTensor as Ragged
from samegrad._tensor.tensor import Tensor
from samegrad._tensor.text import Text, is_text


def known(value: Any) -> Any:
    if isinstance(value, Tensor) and value._symbolic:
        read_value("integers that become strings")
    return np.asarray(value)


class strings:  # noqa: N801
    """tf.strings, as Keras's layers call it: numbers of a traced function are refused."""

    lower, upper = staticmethod(_strings.lower), staticmethod(_strings.upper)
    regex_replace = staticmethod(_strings.regex_replace)
    split, ngrams = staticmethod(_strings.split), staticmethod(_strings.ngrams)
    unicode_split = staticmethod(_strings.unicode_split)
    substr, length = staticmethod(_strings.substr), staticmethod(_strings.length)
    to_hash_bucket_fast = staticmethod(_strings.to_hash_bucket_fast)
    to_hash_bucket_strong = staticmethod(_strings.to_hash_bucket_strong)

    @staticmethod
    def as_string(input: Any) -> Text:
        """Numbers as text."""
        made: Text = _strings.as_string(known(input))
        return made

    @staticmethod
    def format(template: str, inputs: Any) -> str:
        """The template with values in the places of {}."""
        return template.format(*(np.asarray(x) for x in inputs))


__all__ = ["STRING", "Ragged", "Text", "is_text", "strings"]
