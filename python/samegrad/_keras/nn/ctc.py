"""keras.backend.nn: connectionist temporal classification (Graves et al., 2006)."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras.src.backend.common.dtypes import result_type
from numpy.typing import NDArray

import samegrad as tf
from samegrad import math, nn
from samegrad._function.row_loops import _Loop
from samegrad._keras.conversion import convert_to_tensor
from samegrad._tensor.dim import Dim
from samegrad._tensor.tensor import Tensor

# The logarithm of no probability, finite so that differences of it are numbers.
_NEVER = -1e30


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
    count = int(labels.shape[1])
    inside = tf.range(count) < tf.expand_dims(sizes, -1)
    labels = tf.where(inside, labels, blank)
    states = _with_blanks(labels, blank)
    rows = tf.transpose(nn.log_softmax(logits), [0, 2, 1])
    rows = tf.transpose(tf.gather(rows, states, axis=1, batch_dims=1), [2, 0, 1])
    alive = tf.expand_dims(tf.range(int(logits.shape[1])), -1) < tf.expand_dims(steps, 0)
    first = tf.where(tf.range(2 * count + 1) < 2, rows[0], _NEVER)
    last = _forward(rows, tf.expand_dims(alive, -1), first, _skips(states))
    return _of_ends(last, sizes)


def _with_blanks(labels: Tensor, blank: int) -> Tensor:
    """A blank before, between and behind the labels: [n, 2 * labels + 1]."""
    blanks = tf.zeros_like(labels) + blank
    pairs = tf.reshape(tf.stack([blanks, labels], axis=-1), (labels.shape[0], 2 * labels.shape[1]))
    return tf.pad(pairs, [[0, 0], [0, 1]], constant_values=blank)


def _skips(states: Tensor) -> Tensor:
    """Where a path may come from two states before: labels that differ from the one before."""
    before = tf.pad(states, [[0, 0], [2, 0]], constant_values=-1)[:, :-2]
    is_label = tf.equal(tf.range(int(states.shape[1])) % 2, 1)
    return tf.logical_and(tf.not_equal(states, before), is_label)


def _forward(rows: Tensor, alive: Tensor, first: Tensor, skips: Tensor) -> Tensor:
    """Logarithms of the probabilities of being in each state after the last step."""

    def shifted(x: Tensor, by: int) -> Tensor:
        return tf.pad(x, [[0, 0], [by, 0]], constant_values=_NEVER)[:, :-by]

    def step(before: Tensor, row: Any) -> Any:
        emitted, live = row
        ways = [before, shifted(before, 1), tf.where(skips, shifted(before, 2), _NEVER)]
        after = emitted + math.reduce_logsumexp(tf.stack(ways), axis=0)
        return tf.where(live, after, before), ()

    last: Tensor = _Loop("ctc_loss", step, [rows[1:], alive[1:]]).run(step, first)[0]
    return last


def _of_ends(last: Tensor, sizes: Tensor) -> Tensor:
    places = tf.range(int(last.shape[1]))
    ends = 2 * tf.expand_dims(sizes, -1)
    at_end = tf.logical_or(tf.equal(places, ends), tf.equal(places, ends - 1))
    found = math.reduce_logsumexp(tf.where(at_end, last, _NEVER), axis=-1)
    return tf.where(found > _NEVER / 2, -found, float("inf"))


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
        return _greedy(logits, lengths, merge_repeated, blank)
    if strategy == "beam_search":
        return _beam_search(logits, lengths, beam_width, top_paths, blank)
    raise ValueError(
        f"Invalid strategy {strategy}. Supported values are 'greedy' and 'beam_search'."
    )


def _greedy(
    logits: Tensor, lengths: Tensor, merge_repeated: bool, blank: int
) -> tuple[Tensor, Tensor]:
    steps = int(logits.shape[1])
    inside = tf.range(steps) < tf.expand_dims(lengths, -1)
    best = tf.argmax(logits, axis=-1, output_type="int32")
    highest = tf.reduce_max(logits, axis=-1)
    score = -tf.reduce_sum(tf.where(inside, highest, tf.zeros_like(highest)), -1, keepdims=True)
    kept = tf.logical_and(inside, tf.not_equal(best, blank))
    if merge_repeated:
        before = tf.pad(best, [[0, 0], [1, 0]], constant_values=-1)[:, :-1]
        kept = tf.logical_and(kept, tf.not_equal(best, before))
    order = tf.argsort(tf.where(kept, tf.range(steps), steps), axis=-1, stable=True)
    labels = tf.where(kept, best, -1)
    return tf.expand_dims(tf.gather(labels, order, axis=1, batch_dims=1), 0), score


def _beam_search(
    logits: Tensor, lengths: Tensor, width: int, paths: int, blank: int
) -> tuple[Tensor, Tensor]:
    if logits._symbolic or lengths._symbolic or isinstance(logits.shape[0], Dim):
        raise ValueError(
            "[keras.ops.ctc_decode] a beam search is made of values: got traced inputs; call it "
            "outside of the traced function, or use strategy='greedy'."
        )
    rows = nn.log_softmax(logits).numpy()
    count, steps = rows.shape[:2]
    labels = np.full((paths, count, steps), -1, np.int32)
    scores = np.full((count, paths), -np.inf, rows.dtype)
    for n, (row, length) in enumerate(zip(rows, lengths.numpy(), strict=True)):
        for p, (prefix, score) in enumerate(_prefixes(row[:length], width, blank)[:paths]):
            labels[p, n, : len(prefix)] = prefix
            scores[n, p] = score
    return tf.convert_to_tensor(labels), tf.convert_to_tensor(scores)


def _prefixes(rows: NDArray[Any], width: int, blank: int) -> list[tuple[tuple[int, ...], float]]:
    """Labels and logarithms of their probabilities, the most probable first.

    Of each beginning the probability of the paths that end with a blank is kept, and that of those
    that end with its last label.
    """
    found: list[tuple[int, ...]] = [()]
    with_blank, with_label = np.zeros(1), np.full(1, -np.inf)
    for row in rows.astype(np.float64):
        place = {prefix: i for i, prefix in enumerate(found)}
        total = np.logaddexp(with_blank, with_label)
        longer = total[:, None] + row
        stay_blank, stay_label = total + row[blank], np.full(len(found), -np.inf)
        for i, prefix in enumerate(found):
            if prefix:
                longer[i, prefix[-1]] = with_blank[i] + row[prefix[-1]]
                stay_label[i] = with_label[i] + row[prefix[-1]]
        longer[:, blank] = -np.inf
        for i, prefix in enumerate(found):
            j = place.get(prefix[:-1], -1) if prefix else -1
            if j >= 0:
                stay_label[i] = np.logaddexp(stay_label[i], longer[j, prefix[-1]])
                longer[j, prefix[-1]] = -np.inf
        scores = np.concatenate([np.logaddexp(stay_blank, stay_label), longer.ravel()])
        best = [i for i in np.argsort(-scores, kind="stable")[:width] if scores[i] > -np.inf]
        old = len(found)
        grown = [divmod(int(i) - old, len(row)) for i in best]
        found = [
            found[i] if i < old else (*found[j], c) for i, (j, c) in zip(best, grown, strict=True)
        ]
        with_blank = np.array([stay_blank[i] if i < old else -np.inf for i in best])
        with_label = np.array([stay_label[i] if i < old else scores[i] for i in best])
    total = np.logaddexp(with_blank, with_label)
    return [(found[i], float(total[i])) for i in np.argsort(-total, kind="stable")]
