"""Random numbers: functions of the seed and the position alone.

Rows are the elements along axis 0; they are numbered over all replicas, which draw together what
one device draws (`stateless_uniform` says more).
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import DType, DTypeLike, as_dtype
from samegrad._base.shown import shown
from samegrad._context import state as _context
from samegrad._surface.boundary import guard as _guard
from samegrad._surface.missing_names import getattr_of as _getattr_of
from samegrad._tensor import example_axis as _examples
from samegrad._tensor import sizes as _sizes
from samegrad._tensor import tensor as _tensor
from samegrad._tensor.tensor import Tensor, TensorLike

_ops = _core.ops
_FIRST = Tensor(np.zeros((), np.int64))  # where the rows of one device begin


def set_seed(seed: int | None) -> None:
    """Set the global random seed.

    Args:
        seed: Any integer. None: a fresh random seed.

    Example:
        >>> set_seed(7)
        >>> first = normal((2,)).numpy()
        >>> set_seed(7)
        >>> bool((normal((2,)).numpy() == first).all())
        True
    """
    state = _core.random_state()
    chosen = secrets.randbits(64) if seed is None else int(seed)
    state.seed = chosen & (2**64 - 1)
    state.step = state.ordinal = state.created = 0


def _source() -> Tensor:
    if _core.tracing() and _context.reducing_context() is not None:
        return _ops.replica_id()
    return Tensor(np.zeros((), np.int64)) if _core.tracing() else _FIRST


def _draw(name: str, shape: Any, dtype: DTypeLike, seed: int | None, **more: Any) -> Tensor:
    more |= {"seed": seed or 0, "ordinal": _core.next_ordinal()}
    return _draw_rows(f"random_{name}", (), shape, dtype, **more)


def _draw_rows(op: str, key: tuple[Tensor, ...], shape: Any, dtype: DTypeLike,
               **more: Any) -> Tensor:  # fmt: skip
    sizes = _sizes.sizes_of(shape)
    more["dtype"] = as_dtype(dtype).name
    if not _sizes.likes_of(sizes):
        shape = _sizes.codes_of(sizes)
        drawn: Tensor = getattr(_ops, op)(*key, _source(), shape=shape, **more)
    else:  # rows of the global batch, whichever replica has them
        more["rows"] = _sizes.codes_of(sizes)[0]
        drawn = getattr(_ops, f"{op}_like")(*key, _sizes.full(sizes, "float32"), **more)
    return drawn


def normal(shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: DTypeLike = "float32",
           seed: int | None = None, name: str | None = None) -> Tensor:  # fmt: skip
    """Draw normally distributed random numbers.

    Args:
        shape: Shape of the result.
        mean: Mean, a number or a tensor that broadcasts to shape.
        stddev: Standard deviation, likewise.
        dtype: Floating dtype of the result.
        seed: Any integer. None: derived from `set_seed`.
        name: Ignored.

    Returns:
        Tensor of the shape and dtype.

    Example:
        >>> import samegrad as tf
        >>> tuple(tf.random.normal([2, 3]).shape)
        (2, 3)
    """
    return _draw("normal", shape, dtype, seed) * stddev + mean


def truncated_normal(shape: Any, mean: float = 0.0, stddev: float = 1.0,
                     dtype: DTypeLike = "float32", seed: int | None = None,
                     name: str | None = None) -> Tensor:  # fmt: skip
    """Draw normally distributed random numbers within two standard deviations of the mean.

    Args:
        shape: Shape of the result.
        mean: Mean before the truncation, a number or a tensor that broadcasts to shape.
        stddev: Standard deviation before the truncation, likewise.
        dtype: Floating dtype of the result.
        seed: Any integer. None: derived from `set_seed`.
        name: Ignored.

    Returns:
        Tensor of the shape and dtype.

    Example:
        >>> import samegrad as tf
        >>> bool(tf.reduce_all(tf.abs(tf.random.truncated_normal([100])) <= 2.0))
        True
    """
    return _draw("truncated_normal", shape, dtype, seed) * stddev + mean


def uniform(shape: Any, minval: float = 0, maxval: float | None = None,
            dtype: DTypeLike = "float32", seed: int | None = None,
            name: str | None = None) -> Tensor:  # fmt: skip
    """Draw uniformly distributed random numbers from [minval, maxval).

    Args:
        shape: Shape of the result.
        minval: Smallest number.
        maxval: Upper bound, exclusive. None: 1 for floats.
        dtype: Dtype of the result: a float, or an integer.
        seed: Any integer. None: derived from `set_seed`.
        name: Ignored.

    Returns:
        Tensor of the shape and dtype.

    Example:
        >>> import samegrad as tf
        >>> bool(tf.reduce_all(tf.random.uniform([100]) < 1.0))
        True
    """
    if as_dtype(dtype).is_integer:
        high = int(maxval if maxval is not None else 0)
        return _draw("integers", shape, dtype, seed, low=int(minval), high=high)
    drawn = _draw("uniform", shape, dtype, seed)
    if maxval is None and type(minval) in (int, float) and minval == 0:
        return drawn
    return drawn * ((1.0 if maxval is None else maxval) - minval) + minval


def stateless_uniform(shape: Any, seed: TensorLike, minval: Any = 0, maxval: Any = None,
                      dtype: DTypeLike = "float32", name: str | None = None,
                      alg: str = "auto_select") -> Tensor:  # fmt: skip
    """Draw uniform random numbers from [minval, maxval), as a function of the seed alone.

    An element is a function of the seed, its row and its index in the row: the same eagerly and in
    a traced function, on any number of replicas and threads, today and in later versions. The rows
    of a shape (n, ...) are its elements along axis 0 (or the axis that counts examples); a scalar
    is one row. Where n follows from the examples, they are those of the global batch. Where n is a
    plain number, replica r of a strategy draws the rows from r n on. Results of two shapes with one
    seed share their common elements. The generator is Philox4x32-10 (Salmon et al., 2011) with the
    seed as its key; the numbers differ from TensorFlow's.

    Args:
        shape: Shape of the result; a size may follow from the examples (`tf.shape(x)[0]`).
        seed: Two integers, taken modulo 2**32, such as [seed, counter]: a list, an array or a
            tensor of shape (2,), of int32, int64, uint32 or uint64. It may be computed in the step,
            by a variable that the step advances. Replicas may have different seeds.
        minval: Smallest number; for floats also a tensor that broadcasts to the shape.
        maxval: Upper bound, exclusive (floats: up to the rounding of minval + u (maxval - minval)).
            None: 1 for floats; for integers all are drawn if minval is None as well.
        dtype: Dtype of the result: a float, int32, int64, uint32 or uint64.
        name: Ignored.
        alg: 'philox' or 'auto_select', which are the same.

    Returns:
        Tensor of the shape and dtype. No gradient flows to the seed.

    Raises:
        TypeError: The seed does not consist of integers, or the dtype is another one.
        ValueError: The seed has another shape, the range is empty or has no end, or the algorithm
            is another one.

    Example:
        >>> stateless_uniform((3,), seed=[1, 2]).numpy()
        array([0.02186382, 0.9404838 , 0.20034248], dtype=float32)
        >>> stateless_uniform((3,), seed=[1, 3], minval=0, maxval=10, dtype="int32").numpy()
        array([1, 2, 4], dtype=int32)
    """
    if not as_dtype(dtype).is_integer:
        if minval is None:
            raise ValueError(
                "[stateless_uniform] minval=None draws all numbers of a dtype of integers: "
                f"got dtype={as_dtype(dtype).name}; pass a number."
            )
        size = (1.0 if maxval is None else maxval) - minval
        return _scaled(_draw_keyed("uniform", shape, seed, dtype, alg), size, minval)
    low, high = _range_of(minval, maxval, as_dtype(dtype))
    return _draw_keyed("integers", shape, seed, dtype, alg, low=low, high=high)


def stateless_normal(shape: Any, seed: TensorLike, mean: Any = 0.0, stddev: Any = 1.0,
                     dtype: DTypeLike = "float32", name: str | None = None,
                     alg: str = "auto_select") -> Tensor:  # fmt: skip
    """Draw normally distributed random numbers, as a function of the seed alone.

    The last bits differ on processors without fused multiply-add.

    Args:
        shape: Shape of the result; see `stateless_uniform`, which explains all of this.
        seed: Two integers.
        mean: Mean, a number or a tensor that broadcasts to the shape.
        stddev: Standard deviation, likewise.
        dtype: Floating dtype of the result.
        name: Ignored.
        alg: 'philox' or 'auto_select', which are the same.

    Returns:
        Tensor of the shape and dtype (Box and Muller, 1958). No gradient flows to the seed.

    Raises:
        TypeError: The seed does not consist of integers, or the dtype is not a float.
        ValueError: The seed has another shape, or the algorithm is another one.

    Example:
        >>> stateless_normal((3,), seed=[1, 2]).numpy().round(3)
        array([-2.268, -0.338,  0.659], dtype=float32)
    """
    return _scaled(_draw_keyed("normal", shape, seed, dtype, alg), stddev, mean)


def stateless_truncated_normal(shape: Any, seed: TensorLike, mean: Any = 0.0, stddev: Any = 1.0,
                               dtype: DTypeLike = "float32", name: str | None = None,
                               alg: str = "auto_select") -> Tensor:  # fmt: skip
    """Draw normal random numbers within two deviations, as a function of the seed alone.

    Args:
        shape: Shape of the result; see `stateless_uniform`, which explains all of this.
        seed: Two integers.
        mean: Mean before the truncation, a number or a tensor that broadcasts.
        stddev: Standard deviation before the truncation, likewise: all numbers are in [mean - 2
            stddev, mean + 2 stddev], up to rounding.
        dtype: Floating dtype of the result.
        name: Ignored.
        alg: 'philox' or 'auto_select', which are the same.

    Returns:
        Tensor of the shape and dtype; numbers outside the range are drawn again. No gradient flows
        to the seed.

    Raises:
        TypeError: The seed does not consist of integers, or the dtype is not a float.
        ValueError: The seed has another shape, or the algorithm is another one.

    Example:
        >>> bool(abs(stateless_truncated_normal((99,), seed=[1, 2]).numpy()).max() <= 2)
        True
    """
    return _scaled(_draw_keyed("truncated_normal", shape, seed, dtype, alg), stddev, mean)


def shuffle(value: TensorLike, seed: int | None = None, name: str | None = None) -> Tensor:
    """Shuffle slices along axis 0; inside `run` each replica shuffles its own.

    Args:
        value: Tensor of shape [n, ...].
        seed: Any integer. None: derived from `set_seed`.
        name: Ignored.

    Returns:
        Tensor of value's shape and dtype.

    Example:
        >>> sorted(shuffle([1, 2, 3]).numpy().tolist())
        [1, 2, 3]
    """
    x = _tensor.convert_to_tensor(value)
    return _in_order_of(x, lambda count: uniform([count], seed=seed))


def _in_order_of(x: Tensor, draw: Any) -> Tensor:
    if not x._rank:
        raise ValueError("[shuffle] a tensor without axes has no order: got shape (); pass a list.")
    keys = draw(x.shape[0])
    return _ops.gather(x, _ops.arg_sort(keys, axis=0, descending=False), axis=0)


def categorical(logits: TensorLike, num_samples: Any, dtype: DTypeLike | None = None,
                seed: int | None = None, name: str | None = None) -> Tensor:  # fmt: skip
    """Sample classes with probabilities proportional to exp(logits).

    Args:
        logits: Floats of shape [rows, classes].
        num_samples: Number of samples for each row.
        dtype: int32 or int64, the default.
        seed: Any integer. None: derived from `set_seed`.
        name: Ignored.

    Returns:
        Tensor of shape [rows, num_samples]: the index of the largest sum of a logit and Gumbel
        noise (Gumbel, 1954).

    Raises:
        ValueError: logits is not of rank 2.

    Example:
        >>> categorical([[0.0, -1e9], [-1e9, 0.0]], 3).numpy()
        array([[0, 0, 0],
               [1, 1, 1]])
    """
    return _chosen("categorical", logits, num_samples, dtype, lambda s: uniform(s, seed=seed))


def stateless_categorical(logits: TensorLike, num_samples: Any, seed: TensorLike,
                          dtype: DTypeLike = "int64",
                          name: str | None = None) -> Tensor:  # fmt: skip
    """Sample classes, as a function of the seed alone.

    Args:
        logits: Floats of shape [rows, classes]: log probabilities, up to a constant for each row.
        num_samples: Number of samples for each row.
        seed: Two integers; see `stateless_uniform`.
        dtype: int32 or int64.
        name: Ignored.

    Returns:
        Tensor of shape [rows, num_samples].

    Example:
        >>> stateless_categorical([[0.0, -1e9]], 3, seed=[1, 2]).numpy()
        array([[0, 0, 0]])
    """
    return _chosen(
        "stateless_categorical", logits, num_samples, dtype, lambda s: stateless_uniform(s, seed)
    )


def _chosen(who: str, logits: TensorLike, num: Any, dtype: DTypeLike | None, draw: Any) -> Tensor:
    x = _tensor.convert_to_tensor(logits)
    if x._rank != 2 or not as_dtype(x._dtype).is_floating:
        raise ValueError(
            f"[{who}] logits must be floats of shape [rows, classes]: got {x._dtype} of shape "
            f"{tuple(x._shape)}; use reshape and cast."
        )
    count = _sizes.whole(num)
    shares = draw([x.shape[0], count, x.shape[1]])
    least = Tensor(np.array(np.finfo(np.float32).tiny, np.float32))
    noise = _ops.neg(_ops.log(_ops.neg(_ops.log(_ops.maximum(shares, least)))))
    both = _ops.cast(_ops.expand_dims(x, axes=[1]), dtype="float32") + noise
    found = _ops.arg_max(both, axis=2)
    return _ops.cast(found, dtype=as_dtype("int64" if dtype is None else dtype).name)


def split(seed: TensorLike, num: int = 2, alg: str = "auto_select") -> Tensor:
    """Derive new seeds from one.

    Args:
        seed: Two integers, shape (2,).
        num: Number of new seeds.
        alg: 'philox' or 'auto_select', which are the same.

    Returns:
        Tensor of shape [num, 2], in the seed's dtype.

    Example:
        >>> split([1, 2], 3).shape
        (3, 2)
    """
    key = _key("split", seed)
    kind = key._dtype if "64" in key._dtype else "int32"
    return stateless_uniform([_sizes.whole(num), 2], key, None, None, kind, alg=alg)


def fold_in(seed: TensorLike, data: TensorLike, alg: str = "auto_select") -> Tensor:
    """Derive a new seed from a seed and a number, such as that of a step or a worker.

    Args:
        seed: Two integers, shape (2,).
        data: Integer scalar.
        alg: 'philox' or 'auto_select', which are the same.

    Returns:
        Tensor of shape [2], in the seed's dtype.

    Example:
        >>> fold_in([1, 2], 3).shape
        (2,)
    """
    key = _key("fold_in", seed)
    number = _tensor.convert_to_tensor(data)
    kind = key._dtype if "64" in key._dtype else "int32"
    first = stateless_uniform([], key, None, None, kind, alg=alg)
    return stateless_uniform([2], [first, _ops.cast(number, dtype=kind)], None, None, kind, alg=alg)


def _draw_keyed(name: str, shape: Any, seed: Any, dtype: DTypeLike, alg: str,
                **more: Any) -> Tensor:  # fmt: skip
    who = f"stateless_{'uniform' if name == 'integers' else name}"
    if alg not in ("auto_select", "philox"):
        raise ValueError(
            f"[{who}] alg must be 'philox' or 'auto_select': got {shown(alg)}; leave it out."
        )
    return _draw_rows(f"stateless_random_{name}", (_key(who, seed),), shape, dtype, **more)


def _scaled(drawn: Tensor, factor: Any, offset: Any) -> Tensor:
    scaled: Tensor = drawn * factor + offset
    return scaled


def _key(who: str, seed: Any) -> Tensor:
    if isinstance(seed, list | tuple) and any(
        _tensor.is_tensor(part) for part in seed
    ):  # [seed, step]
        parts = [_tensor.convert_to_tensor(part) for part in seed]
        for part in parts:
            _check_whole(who, part, seed)
        seed = [_ops.cast(part, dtype="uint32") for part in parts]
    elif isinstance(seed, list | tuple) and all(isinstance(part, int) for part in seed):
        seed = np.array([int(part) % 2**32 for part in seed], np.uint32)
    key = _tensor.convert_to_tensor(seed)
    _check_whole(who, key, seed)
    if _examples.examples_axis(key) is not None or key._rank != 1 or key._shape[0] != 2:
        raise ValueError(
            f"[{who}] the seed must be two integers, of shape (2,) and without examples: got "
            f"shape {tuple(key._shape)}; pass [seed, counter]."
        )
    return key


def _check_whole(who: str, part: Tensor, seed: Any) -> None:
    if part._dtype not in ("int32", "int64", "uint32", "uint64"):
        raise TypeError(
            f"[{who}] the seed must be int32, int64, uint32 or uint64: got {part._dtype} "
            f"({shown(seed)}); use samegrad.cast."
        )


def _range_of(minval: Any, maxval: Any, dtype: DType) -> tuple[int, int]:
    """Return the bounds of a range of integers as the engine has them."""
    if minval is None and maxval is None:
        bits = 8 * dtype.size
        low = 0 if dtype.is_unsigned else -(2 ** (bits - 1))
        return (0, 0) if bits == 64 else (low, low + 2**bits)
    if minval is None or maxval is None:
        raise ValueError(
            "[stateless_uniform] a range of integers has two ends: got "
            f"minval={shown(minval)}, maxval={shown(maxval)}; pass both, or None for "
            f"both to draw all numbers of {dtype.name}."
        )
    rule, remedy = "the ends of a range of integers are integers", "pass ints"
    return _sizes.whole(minval, rule, remedy), _sizes.whole(maxval, rule, remedy)


# A generator's state is a variable, which knows of gradients.
_LATER = (
    dict.fromkeys(
        (
            "Algorithm",
            "Generator",
            "create_rng_state",
            "get_global_generator",
            "set_global_generator",
        ),
        "samegrad._autodiff.random_generator",
    )
    | dict.fromkeys(
        ("gamma", "poisson", "stateless_gamma", "stateless_poisson"),
        "samegrad._autodiff.random_variates",
    )
    | dict.fromkeys(
        ("log_uniform_candidate_sampler", "uniform_candidate_sampler"), "samegrad.nn._candidates"
    )
)
__all__ = [
    *_LATER, "categorical", "fold_in", "normal", "set_seed", "shuffle", "split",
    "stateless_categorical", "stateless_normal", "stateless_truncated_normal", "stateless_uniform",
    "truncated_normal", "uniform",
]  # fmt: skip

if not _TYPE_CHECKING:
    __getattr__ = _getattr_of(__name__, _LATER)
_guard(__name__)
