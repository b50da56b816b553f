"""keras.backend.nn: connectionist temporal classification (Graves et al., 2006)."""

from __future__ import annotations

from typing import Any

from keras.src.backend.common.dtypes import result_type

import samegrad as tf
from samegrad._keras.conversion import convert_to_tensor
from samegrad._tensor.tensor import Tensor
from samegrad.nn._ctc import best_labels, likely_labels, negative_log_likelihood


def ctc_loss(
    target: Any, output: Any, target_length: Any, output_length: Any, mask_index: int = 0
) -> Tensor:
    """-log of the probability of all paths that are the target once repeats and blanks are out.

    Args:
        target: Classes [n, labels].
        output: Logits [n, steps, classes].
        target_length: How many labels count [n].
        output_length: How many steps count [n].
        mask_index: The class of the blank.

    Returns:
        [n], infinite where the target has no path.
    """
    labels, logits = convert_to_tensor(target, "int32"), convert_to_tensor(output)
    logits = tf.cast(logits, result_type(logits._dtype, "float32"))
    sizes = convert_to_tensor(target_length, "int32")
    steps = convert_to_tensor(output_length, "int32")
    blank = int(mask_index) % int(logits.shape[-1])
    return negative_log_likelihood(labels, logits, sizes, steps, blank)


def ctc_decode(
    inputs: Any,
    sequence_lengths: Any,
    strategy: str = "greedy",
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
    mask_index: int | None = 0,
) -> tuple[Tensor, Tensor]:
    """The most probable labels, filled up with -1.

    Args:
        inputs: Logits [n, steps, classes].
        sequence_lengths: How many steps count [n].
        strategy: "greedy": those of the best class at each step; "beam_search": those of which all
            paths together are the most probable.
        beam_width: How many beginnings are followed.
        top_paths: How many results are wanted of a beam search.
        merge_repeated: Whether repeats become one, of the greedy strategy.
        mask_index: The class of the blank; None: the last.

    Returns:
        Labels [paths, n, steps], and their scores [n, paths]: minus the sum of the best logits, or
        the logarithm of the probability.

    Raises:
        ValueError: There is no such strategy; a beam search of traced inputs.
    """
    logits = convert_to_tensor(inputs)
    logits = tf.cast(logits, result_type(logits._dtype, "float32"))
    lengths = convert_to_tensor(sequence_lengths, "int32")
    blank = (-1 if mask_index is None else int(mask_index)) % int(logits.shape[-1])
    if strategy == "greedy":
        labels, score = best_labels(logits, lengths, merge_repeated, blank)
        return tf.expand_dims(labels, 0), score
    if strategy == "beam_search":
        found, scores = likely_labels(logits, lengths, beam_width, top_paths, blank)
        return tf.convert_to_tensor(found), tf.convert_to_tensor(scores)
    raise ValueError(
        f"Invalid strategy {strategy}. Supported values are 'greedy' and 'beam_search'."
    )
