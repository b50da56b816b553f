"""Connectionist temporal classification (Graves et al., 2006)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from samegrad import math
from samegrad._base.dtypes import as_dtype
from samegrad._base.shown import shown
from samegrad._context.python_runs import need_python
from samegrad._control.row_loop import RowLoop
from samegrad._core import InvalidArgumentError
from samegrad._ops.arrays import (
    cast,
    concat,
    expand_dims,
    reshape,
    shape,
    stack,
    transpose,
    where,
)
from samegrad._ops.creation import range_, zeros_like
from samegrad._ops.elementary import log_of_sum
from samegrad._ops.gather import boolean_mask, gather
from samegrad._ops.padding import pad
from samegrad._ops.scatter import scatter_nd
from samegrad._ops.sequences import sequence_mask
from samegrad._tensor.dim import Dim
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.sizes import whole
from samegrad._tensor.sparse import SparseTensor
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.math._order import argsort

# The logarithm of no probability, finite so that differences of it are numbers.
_NEVER = -1e30
Decoded = tuple[list[SparseTensor], Tensor]


def ctc_loss(
    labels: Any, logits: TensorLike, label_length: Any, logit_length: TensorLike,
    logits_time_major: bool = True, unique: Any = None, blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Compute the connectionist temporal classification loss (Graves et al., 2006).

    The loss is -log of the probability of all paths that become the labels once repeats and blanks
    are removed.

    Args:
        labels: The classes: integers [batch, labels], or a `SparseTensor` of that shape.
        logits: Floats of shape [steps, batch, classes].
        label_length: The number of labels of each example, [batch]; None if they are sparse.
        logit_length: The number of steps of each example, [batch].
        logits_time_major: False: the logits are [batch, steps, classes].
        unique: Ignored.
        blank_index: The class of the blank, negative from the last; default 0. Sparse labels need
            it.
        name: Ignored.

    Returns:
        The losses: a tensor [batch]. A loss is infinite and without a gradient where the labels
        have no path: the labels and the blanks between equal ones need more steps than there are.

    Raises:
        TypeError: The labels are not integers, or the logits are not floats.
        ValueError: The shapes do not fit, or there is no such class.

    Example:
        >>> import numpy as np
        >>> logits = np.zeros((2, 1, 3), "float32")  # 9 paths, of which 01, 10 and 11 are right
        >>> np.exp(-ctc_loss([[1]], logits, [1], [2]).numpy()).round(4)
        array([0.3333], dtype=float32)
    """
    who = "ctc_loss"
    x = _logits(who, logits, logits_time_major)
    true, sizes = _dense_labels(who, labels, label_length, blank_index)
    lengths = _lengths(who, "logit_length", logit_length, x, x._shape[1])
    if true._rank != 2 or not _may_equal(true._shape[0], x._shape[0]):
        raise InvalidArgumentError(
            f"[{who}] labels must be [batch, labels] and have as many rows as logits: got shapes "
            f"{tuple(true._shape)} and {tuple(convert_to_tensor(logits)._shape)} with "
            f"logits_time_major={logits_time_major}."
        )
    sizes = _lengths(who, "label_length", sizes, x, true._shape[1])
    blank = _blank(who, 0 if blank_index is None else blank_index, x)
    return negative_log_likelihood(true, x, sizes, lengths, blank)


def collapse_repeated(labels: TensorLike, seq_length: TensorLike,
                      name: str | None = None) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Merge repeated labels of sequences into one, and pad with zeros.

    Args:
        labels: Labels of any dtype, [batch, steps].
        seq_length: The number of steps of each sequence, integers [batch].
        name: Ignored.

    Returns:
        The labels, [batch, most labels that are left], and their numbers, [batch], in the dtype of
        `seq_length`.

    Raises:
        ValueError: The labels are not [batch, steps].

    Example:
        >>> labels, lengths = collapse_repeated([[1, 1, 2, 2, 1], [3, 3, 3, 4, 0]], [5, 3])
        >>> labels.numpy().tolist(), lengths.numpy().tolist()
        ([[1, 2, 1], [3, 0, 0]], [3, 1])
    """
    x, lengths = convert_to_tensor(labels), convert_to_tensor(seq_length)
    if x._rank != 2:
        raise ValueError(
            f"[collapse_repeated] labels have the axes [batch, steps]: got {x._shape}; reshape."
        )
    first = cast(zeros_like(x[:, :1], "int32") + 1, "bool")
    begins = concat([first, math.not_equal(x[:, 1:], x[:, :-1])], 1)
    kept = math.logical_and(begins, sequence_mask(lengths, shape(x)[1]))
    sizes = math.reduce_sum(cast(kept, lengths.dtype), 1)
    found = RaggedTensor.from_row_lengths(boolean_mask(x, kept), sizes).to_tensor()
    return found, sizes


def ctc_greedy_decoder(
    inputs: TensorLike, sequence_length: TensorLike, merge_repeated: bool = True,
    blank_index: int | None = None,
) -> Decoded:  # fmt: skip
    """Decode the most probable class at each step.

    Args:
        inputs: Logits: floats of shape [steps, batch, classes].
        sequence_length: The number of steps of each example, [batch].
        merge_repeated: Merge repeated classes into one.
        blank_index: The class of the blank, negative from the last; default the last.

    Returns:
        A list of one `SparseTensor` of labels, int64 [batch, longest], and minus the sum of the
        largest logits, [batch, 1].

    Raises:
        TypeError: The logits are not floats, or have no value before the traced function runs.
        ValueError: The shapes do not fit, or there is no such class.

    Example:
        >>> steps = [[[0.0, 9.0, 1.0]], [[0.0, 9.0, 1.0]], [[0.0, 1.0, 9.0]], [[5.0, 0.0, 1.0]]]
        >>> labels, _ = ctc_greedy_decoder(steps, [4])
        >>> labels[0].values.numpy()
        array([1, 0])
    """
    who = "ctc_greedy_decoder"
    x = _logits(who, inputs, True)
    lengths = _lengths(who, "sequence_length", sequence_length, x, x._shape[1])
    blank = _blank(who, -1 if blank_index is None else blank_index, x)
    labels, score = best_labels(_known(who, x), _known(who, lengths), merge_repeated, blank)
    return [_sparse(labels._numpy())], score


def ctc_beam_search_decoder(
    inputs: TensorLike, sequence_length: TensorLike, beam_width: int = 100, top_paths: int = 1
) -> Decoded:
    """Decode the most probable labels over all paths; the last class is the blank.

    Args:
        inputs: Logits: floats of shape [steps, batch, classes].
        sequence_length: The number of steps of each example, [batch].
        beam_width: The number of prefixes to follow.
        top_paths: The number of results, at most `beam_width`.

    Returns:
        A list of `top_paths` `SparseTensor`s of labels, int64 [batch, longest], and the logarithms
        of their probabilities, [batch, top_paths].

    Raises:
        TypeError: The logits are not floats, or have no value before the traced function runs.
        ValueError: The shapes do not fit, or `top_paths` is not in [1, beam_width].

    Example:
        >>> steps = [[[0.0, 0.5]], [[0.0, 0.5]]]  # the best path is all blanks
        >>> labels, _ = ctc_beam_search_decoder(steps, [2])
        >>> labels[0].values.numpy()
        array([0])
    """
    who = "ctc_beam_search_decoder"
    x = _logits(who, inputs, True)
    lengths = _lengths(who, "sequence_length", sequence_length, x, x._shape[1])
    width, paths = whole(beam_width), whole(top_paths)
    if not 1 <= paths <= width:
        raise InvalidArgumentError(
            f"[{who}] top_paths must be 1 or more, and at most beam_width: got {shown(top_paths)} "
            f"and {shown(beam_width)}."
        )
    known = _known(who, x), _known(who, lengths)
    labels, scores = likely_labels(*known, width, paths, _blank(who, -1, x))
    return [_sparse(each) for each in labels], convert_to_tensor(scores)


def _may_equal(a: Any, b: Any) -> bool:
    return not (isinstance(a, int) and isinstance(b, int)) or a == b


def _logits(who: str, value: TensorLike, time_major: bool) -> Tensor:
    """[batch, steps, classes]."""
    x = convert_to_tensor(value)
    if not as_dtype(x._dtype).is_floating:
        raise TypeError(f"[{who}] logits must hold floats: got {x._dtype}; use samegrad.cast.")
    rows = transpose(x, [1, 0, 2]) if time_major and x._rank == 3 else x
    if rows._rank != 3 or 0 in rows._shape[1:]:
        raise InvalidArgumentError(
            f"[{who}] logits must be [steps, batch, classes] and have steps and classes: got shape "
            f"{tuple(x._shape)} with logits_time_major={time_major}."
        )
    return rows


def _lengths(who: str, what: str, value: Any, x: Tensor, most: Any) -> Tensor:
    lengths = convert_to_tensor(value)
    if lengths._dtype not in ("int32", "int64"):
        raise TypeError(
            f"[{who}] {what} must be integers: got {lengths._dtype}; use samegrad.cast."
        )
    if lengths._rank != 1 or not _may_equal(lengths._shape[0], x._shape[0]):
        raise InvalidArgumentError(
            f"[{who}] {what} must have one number for each row: got shape "
            f"{tuple(lengths._shape)} for {x._shape[0]} rows."
        )
    if not lengths._symbolic and isinstance(most, int) and lengths._numpy().size:
        low, high = int(lengths._numpy().min()), int(lengths._numpy().max())
        if low < 0 or high > most:
            raise InvalidArgumentError(
                f"[{who}] {what} must lie in [0, {most}]: got {low if low < 0 else high}."
            )
    return cast(lengths, "int32")


def _blank(who: str, value: Any, x: Tensor) -> int:
    count = int(x.shape[2])
    blank = whole(value, "blank_index must be an integer", "pass an int")
    if not -count <= blank < count:
        raise InvalidArgumentError(
            f"[{who}] blank_index must be one of the {count} classes: got {shown(value)}."
        )
    return blank % count


def _dense_labels(who: str, labels: Any, lengths: Any, blank: Any) -> tuple[Tensor, Any]:
    if isinstance(labels, SparseTensor):
        if blank is None:
            raise ValueError(f"[{who}] sparse labels need blank_index: got None.")
        places, _ = labels.checked(who)
        if len(labels._shape) != 2:
            raise InvalidArgumentError(
                f"[{who}] labels must be [batch, labels]: got shape {labels._shape}."
            )
        sizes = np.bincount(places[:, 0], minlength=labels._shape[0]).astype(np.int32)
        values, longest = convert_to_tensor(labels.values), int(sizes.max(initial=0))
        # The places of labels in a row say their order only.
        starts = np.cumsum(sizes) - sizes
        order = np.arange(len(places)) - np.repeat(starts, sizes)
        rows = np.column_stack([places[:, 0], order])
        true, lengths = scatter_nd(rows, values, [labels._shape[0], longest]), sizes
    else:
        true = convert_to_tensor(labels)
        if lengths is None:
            raise ValueError(f"[{who}] dense labels need label_length: got None.")
    if true._dtype not in ("int32", "int64"):
        raise TypeError(f"[{who}] labels must be integers: got {true._dtype}; use samegrad.cast.")
    return cast(true, "int32"), lengths


def _known(who: str, x: Tensor) -> Tensor:
    if x._symbolic:
        need_python(
            f"[{who}] labels are made of values: got a tensor of a step, {shown(x)}; call it "
            "outside of functions, on what they give.",
            TypeError,
        )
    return x


def _sparse(labels: NDArray[Any]) -> SparseTensor:
    """Return the labels in front of the -1 of each row."""
    places = np.argwhere(labels >= 0)
    longest = int((labels >= 0).sum(axis=1).max(initial=0))
    values = labels[labels >= 0].astype(np.int64)
    return SparseTensor(places, values, [len(labels), longest])


def negative_log_likelihood(
    labels: Tensor, logits: Tensor, sizes: Tensor, steps: Tensor, blank: int
) -> Tensor:
    """Return the loss of labels [n, labels] and logits [n, steps, classes] with their lengths."""
    count, most = int(labels.shape[1]), int(logits.shape[1])
    inside = range_(count) < expand_dims(sizes, -1)
    labels = where(inside, labels, blank)
    states = _with_blanks(labels, blank)
    rows = transpose(math.log_softmax(logits), [0, 2, 1])
    rows = transpose(gather(rows, states, axis=1, batch_dims=1), [2, 0, 1])
    alive = expand_dims(range_(most), -1) < expand_dims(steps, 0)
    first = where(range_(2 * count + 1) < 2, rows[0], _NEVER)
    last = first if most == 1 else _forward(rows, expand_dims(alive, -1), first, _skips(states))
    return _of_ends(last, sizes)


def _with_blanks(labels: Tensor, blank: int) -> Tensor:
    """Return a blank before, between and behind the labels: [n, 2 * labels + 1]."""
    blanks = zeros_like(labels) + blank
    pairs = reshape(stack([blanks, labels], axis=-1), (labels.shape[0], 2 * labels.shape[1]))
    return pad(pairs, [[0, 0], [0, 1]], constant_values=blank)


def _skips(states: Tensor) -> Tensor:
    """Mark labels that differ from the label before: a path may skip the blank between them."""
    before = pad(states, [[0, 0], [2, 0]], constant_values=-1)[:, :-2]
    is_label = math.equal(range_(int(states.shape[1])) % 2, 1)
    return math.logical_and(math.not_equal(states, before), is_label)


def _forward(rows: Tensor, alive: Tensor, first: Tensor, skips: Tensor) -> Tensor:
    """Return the logarithms of the probabilities of each state after the last step."""

    def shifted(x: Tensor, by: int) -> Tensor:
        return pad(x, [[0, 0], [by, 0]], constant_values=_NEVER)[:, :-by]

    def step(before: Tensor, row: Any) -> Any:
        emitted, live = row
        ways = [before, shifted(before, 1), where(skips, shifted(before, 2), _NEVER)]
        after = emitted + math.reduce_logsumexp(stack(ways), axis=0)
        return where(live, after, before), ()

    last: Tensor = RowLoop("ctc_loss", step, [rows[1:], alive[1:]]).run(step, first)[0]
    return last


def _of_ends(last: Tensor, sizes: Tensor) -> Tensor:
    places = range_(int(last.shape[1]))
    ends = 2 * expand_dims(sizes, -1)
    at_end = math.logical_or(math.equal(places, ends), math.equal(places, ends - 1))
    found = math.reduce_logsumexp(where(at_end, last, _NEVER), axis=-1)
    return where(found > _NEVER / 2, -found, float("inf"))


def best_labels(
    logits: Tensor, lengths: Tensor, merge_repeated: bool, blank: int
) -> tuple[Tensor, Tensor]:
    """Return the labels [n, steps] of the best classes, padded with -1, and the score [n, 1]."""
    steps = int(logits.shape[1])
    inside = range_(steps) < expand_dims(lengths, -1)
    best = math.argmax(logits, axis=-1, output_type="int32")
    highest = math.reduce_max(logits, axis=-1)
    score = -math.reduce_sum(where(inside, highest, zeros_like(highest)), -1, keepdims=True)
    kept = math.logical_and(inside, math.not_equal(best, blank))
    if merge_repeated:
        before = pad(best, [[0, 0], [1, 0]], constant_values=-1)[:, :-1]
        kept = math.logical_and(kept, math.not_equal(best, before))
    order = argsort(where(kept, range_(steps), steps), axis=-1, stable=True)
    return gather(where(kept, best, -1), order, axis=1, batch_dims=1), score


def likely_labels(
    logits: Tensor, lengths: Tensor, width: int, paths: int, blank: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Labels [paths, n, steps] of a beam search, then -1, and their logarithms [n, paths].

    Raises:
        ValueError: There are no values to search: the logits are those of a trace.
    """
    if logits._symbolic or lengths._symbolic or isinstance(logits.shape[0], Dim):
        need_python(
            "[ctc_decode] a beam search is made of values: got traced inputs; call it outside of "
            "the traced function, or use the greedy strategy.",
            ValueError,
        )
    rows = math.log_softmax(logits)._numpy()
    count, steps = rows.shape[:2]
    labels = np.full((paths, count, steps), -1, np.int32)
    scores = np.full((count, paths), -np.inf, rows.dtype)
    for n, (row, length) in enumerate(zip(rows, lengths._numpy(), strict=True)):
        for p, (prefix, score) in enumerate(_prefixes(row[:length], width, blank)[:paths]):
            labels[p, n, : len(prefix)] = prefix
            scores[n, p] = score
    return labels, scores


def _prefixes(rows: NDArray[Any], width: int, blank: int) -> list[tuple[tuple[int, ...], float]]:
    """Return prefixes and the logarithms of their probabilities, the most probable first.

    Of each beginning the probability of the paths that end with a blank is kept, and that of those
    that end with its last label.
    """
    found: list[tuple[int, ...]] = [()]
    with_blank, with_label = np.zeros(1), np.full(1, -np.inf)
    for row in rows.astype(np.float64):
        place = {prefix: i for i, prefix in enumerate(found)}
        total = log_of_sum(with_blank, with_label)
        longer = total[:, None] + row
        stay_blank, stay_label = total + row[blank], np.full(len(found), -np.inf)
        for i, prefix in enumerate(found):
            if prefix:
                longer[i, prefix[-1]] = with_blank[i] + row[prefix[-1]]
                stay_label[i] = with_label[i] + row[prefix[-1]]
        longer[:, blank] = -np.inf
        grown_from = [place.get(prefix[:-1], -1) if prefix else -1 for prefix in found]
        same = [i for i, j in enumerate(grown_from) if j >= 0]
        at = [grown_from[i] for i in same], [found[i][-1] for i in same]
        stay_label[same] = log_of_sum(stay_label[same], longer[at])
        longer[at] = -np.inf
        scores = np.concatenate([log_of_sum(stay_blank, stay_label), longer.ravel()])
        best = [i for i in np.argsort(-scores, kind="stable")[:width] if scores[i] > -np.inf]
        old = len(found)
        grown = [divmod(int(i) - old, len(row)) for i in best]
        found = [
            found[i] if i < old else (*found[j], c) for i, (j, c) in zip(best, grown, strict=True)
        ]
        with_blank = np.array([stay_blank[i] if i < old else -np.inf for i in best])
        with_label = np.array([stay_label[i] if i < old else scores[i] for i in best])
    total = log_of_sum(with_blank, with_label)
    return [(found[i], float(total[i])) for i in np.argsort(-total, kind="stable")]


__all__ = ["ctc_beam_search_decoder", "ctc_greedy_decoder", "ctc_loss"]
