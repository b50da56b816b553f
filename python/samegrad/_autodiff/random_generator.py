"""`tf.random.Generator`: numbers of a state that programs hold, the same as TensorFlow's."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from samegrad._autodiff.variable import Variable
from samegrad._base.dtypes import DType, DTypeLike, as_dtype
from samegrad._base.enums import IntChoice
from samegrad._base.shown import shown
from samegrad._context import state as _context
from samegrad._ops.arrays import cast, concat, reshape, stack, where
from samegrad._ops.creation import zeros_like
from samegrad._ops.philox import blocks
from samegrad._surface.boundary import guard
from samegrad._tensor import sizes as _sizes
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.math import (
    abs,
    cos,
    cumsum,
    log,
    logical_and,
    maximum,
    reduce_sum,
    sin,
    sqrt,
)

_SKIP = 256  # blocks that the counter goes on for each number
_CANDIDATES = 48  # drawn for each group of truncated numbers; enough are within two deviations
_TRUNCATED_AT = 2.0
_FRACTION_BITS = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}


class Algorithm(IntChoice):
    """Algorithm by which a generator's state becomes numbers; there is one."""

    PHILOX = 1
    AUTO_SELECT = 3


def _check_algorithm(alg: Any) -> None:
    if alg is None or (isinstance(alg, str) and alg in ("philox", "auto_select")):
        return
    if isinstance(alg, int) and alg in (Algorithm.PHILOX, Algorithm.AUTO_SELECT):
        return
    raise ValueError(f"[Generator] alg must be 'philox': got {shown(alg)}; leave it out.")


def create_rng_state(seed: Any, alg: Any = "philox") -> Tensor:
    """Create the state of a generator: the counter's lower and upper 64 bits, and the key.

    Args:
        seed: An integer, cut into words of 64 bits, or a list of up to three words; fewer words are
            the last ones.
        alg: "philox".

    Returns:
        An int64 tensor [3].

    Raises:
        TypeError: The seed is not an integer or a list of integers.

    Example:
        >>> create_rng_state(7).numpy(), create_rng_state([1, 2]).numpy()
        (array([7, 0, 0]), array([0, 1, 2]))
    """
    _check_algorithm(alg)
    if isinstance(seed, int):
        words = [(seed >> bits) % 2**64 for bits in (0, 64, 128)]
    else:
        try:
            given = np.asarray(seed)
        except ValueError:  # lists of several lengths
            given = np.asarray(None)
        if given.dtype.kind not in "iu":
            raise TypeError(f"[Generator] a seed is integers: got {shown(seed)}; pass an int.")
        words = [int(word) % 2**64 for word in given.reshape(-1)[:3]]
    state = np.array([0] * (3 - len(words)) + words, np.uint64)
    return convert_to_tensor(state.view(np.int64))


def _state_of(value: Any) -> Tensor:
    if isinstance(value, list):
        if not all(isinstance(word, int | np.integer) for word in value):
            raise TypeError(f"[Generator] a state is three integers: got {shown(value)}.")
        value = [int(word) - 2**64 * (int(word) >= 2**63) for word in value]
    state = convert_to_tensor(value)
    if tuple(state._shape) != (3,) or not as_dtype(state._dtype).is_integer:
        raise ValueError(
            f"[Generator] a state is three integers: got {state._dtype} of shape "
            f"{tuple(state._shape)}; see Generator.state."
        )
    return cast(state, "int64")


class Generator:
    """A generator of random numbers, whose state is a variable: `Generator.from_seed(1)`.

    The numbers are TensorFlow's for the same state. Integers and uniform numbers are bitwise equal,
    normal ones up to the last bits of sine, cosine and logarithm. Eager and traced samples are the
    same. A generator that is made in the scope of a strategy gives each replica inside
    `Strategy.run` other numbers: a hash of the key and the number of the replica is their key.

    Args:
        copy_from: Another generator, whose state is copied.
        state: Three integers, or a variable of them, which the generator then owns.
        alg: "philox".

    Raises:
        ValueError: Neither a generator nor a state is given, or the algorithm or the shape is
            another one.

    Example:
        >>> g = Generator.from_seed(1)
        >>> g.uniform((2,), 0, 10, "int32").numpy()
        array([4, 9], dtype=int32)
        >>> g.state.numpy()
        array([513,   0,   0])
    """

    def __init__(self, copy_from: Generator | None = None, state: Any = None,
                 alg: Any = None) -> None:  # fmt: skip
        _check_algorithm(alg)
        self._strategy = _context.current().strategy
        if copy_from is None and state is None:
            raise ValueError(
                "[Generator] a state is needed: got None; use Generator.from_seed(1) or "
                "Generator.from_non_deterministic_state()."
            )
        if isinstance(state, Variable):
            _state_of(state)
            self._state_var = state
            return
        given = state if copy_from is None else copy_from.state.value()
        value = _state_of(given)
        self._state_var = Variable(lambda: value, trainable=False, name="StateVar")

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """Create a generator from a seed; see `create_rng_state`.

        Args:
            seed: An integer, or a list of up to three words of 64 bits.
            alg: "philox", or None.

        Returns:
            A `Generator`.
        """
        return cls(state=create_rng_state(seed, alg))

    @classmethod
    def from_state(cls, state: Any, alg: Any = None) -> Generator:
        """Create a generator with a state.

        Args:
            state: Three integers, int64 [3].
            alg: "philox", or None.

        Returns:
            A `Generator`.
        """
        return cls(state=state, alg=alg)

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: Any = None) -> Generator:
        """Create a generator with a key and a counter.

        Args:
            key: A 64-bit integer.
            counter: Two words of 64 bits.
            alg: "philox", or None.

        Returns:
            A `Generator`.
        """
        return cls(state=_joined(counter, key), alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """Create a generator with a different state each time.

        Args:
            alg: "philox", or None.

        Returns:
            A `Generator`.
        """
        words = np.array([secrets.randbits(64) for _ in range(3)], np.uint64)
        return cls(state=words.view(np.int64), alg=alg)

    @property
    def state(self) -> Variable:
        """int64 [3]: the counter's lower and upper 64 bits and the key."""
        return self._state_var

    @property
    def key(self) -> Tensor:
        """The key."""
        return self._state_var.value()[2]

    @property
    def algorithm(self) -> int:
        """1: Philox."""
        return int(Algorithm.PHILOX)

    def reset(self, state: Any) -> None:
        """Set the state.

        Args:
            state: Three integers, int64 [3].
        """
        self._state_var.assign(_state_of(state))

    def reset_from_seed(self, seed: Any) -> None:
        """Set the state from a seed; see `create_rng_state`.

        Args:
            seed: An integer, or a list of up to three words of 64 bits.
        """
        self._state_var.assign(create_rng_state(seed))

    def reset_from_key_counter(self, key: Any, counter: Any) -> None:
        """Set the state from a key and a counter.

        Args:
            key: A 64-bit integer.
            counter: Two words of 64 bits.
        """
        self._state_var.assign(_state_of(_joined(counter, key)))

    def skip(self, delta: Any) -> Tensor:
        """Skip `delta` samples, as if they had been drawn.

        Args:
            delta: The number of samples, an integer.

        Returns:
            The state before, int64 [3].

        Raises:
            RuntimeError: The generator was made outside of the strategy's scope, and is called
                inside `Strategy.run` of several replicas.
        """
        context = _context.current().replica_context
        if context is not None and context.num_replicas_in_sync > 1 and self._strategy is None:
            raise RuntimeError(
                "[Generator] replicas would all draw the same numbers: got a draw inside run of "
                f"{context.num_replicas_in_sync} replicas; make the generator in strategy.scope(), "
                "or use samegrad.random.normal, or stateless_normal with [seed, step], whose rows "
                "are those of the global batch."
            )
        _context.note_one_replica("Generator")
        old = self._state_var.value()
        words = cast(old, "uint64")
        step = cast(convert_to_tensor(delta), "uint64") * np.uint64(_SKIP)
        low = words[0] + step
        high = words[1] + cast(low < step, "uint64")
        self._state_var.assign(cast(stack([low, high, words[2]]), "int64"))
        return old

    def _words(self, sizes: Sequence[Any], places: Callable[[int], Any]) -> Tensor:
        """Return the words of the blocks that so many numbers need, behind the present state."""
        if _sizes.dim_in(sizes) is not None:
            raise ValueError(
                f"[Generator] sizes must be known before the step: got {shown(sizes)}; use "
                "samegrad.random.normal, whose sizes may follow from the examples."
            )
        count = math.prod(sizes)
        return blocks(self._of_replica(self.skip(count)),
                      np.asarray(places(count), np.uint64).reshape(-1))  # fmt: skip

    def _of_replica(self, state: Tensor) -> Tensor:
        """Return the state with the key of the replica that runs, as TensorFlow hashes it."""
        context = _context.current().replica_context
        if context is None or self._strategy is None:
            return state
        replica = reshape(cast(context.replica_id_in_sync_group, "int64"), [1])
        zero = convert_to_tensor(np.zeros(1, np.int64))
        words = blocks(concat([replica, zero, state[2:]], 0), np.zeros(1, np.uint64))
        return concat([state[:2], cast(_pairs(words)[0, :1], "int64")], 0)

    def _draw(self, shape: Any, dtype: DType, make: Callable[[Tensor], Tensor],
              wide: bool) -> Tensor:  # fmt: skip
        """Convert words to numbers; `wide` ones need two words each."""
        sizes, each = _sizes.sizes_of(shape), 2 if wide else 4
        words = self._words(sizes, lambda count: range(-(-count // each)))
        return _shaped(make(words), sizes, dtype)

    def uniform(self, shape: Any, minval: Any = 0, maxval: Any = None,
                dtype: DTypeLike = "float32", name: str | None = None) -> Tensor:  # fmt: skip
        """Sample from the uniform distribution on [minval, maxval).

        Args:
            shape: The shape of the result.
            minval: The lower limit, which can occur.
            maxval: The upper limit, which cannot occur. None: 1 for floats.
            dtype: A dtype of floats, int32, int64, uint32 or uint64; integers without both limits
                cover the whole range.
            name: Ignored.

        Returns:
            A tensor of that shape and dtype.

        Raises:
            ValueError: A range of integers lacks a limit or is empty.
        """
        kind = as_dtype(dtype)
        if not kind.is_integer:
            top = 1 if maxval is None else maxval
            low = cast(convert_to_tensor(minval), kind)
            drawn = self._draw(shape, kind, lambda w: _fractions(w, kind.name), _is_wide(kind))
            return drawn * (cast(convert_to_tensor(top), kind) - low) + low
        if minval is None and maxval is None:
            return self.uniform_full_int(shape, kind)
        if minval is None or maxval is None:
            raise ValueError(
                "[Generator.uniform] a range of integers has two ends: got "
                f"minval={shown(minval)}, maxval={shown(maxval)}; pass both."
            )
        least, end = (_sizes.whole(v, "an end is an integer") for v in (minval, maxval))
        if least >= end:
            raise ValueError(
                f"[Generator.uniform] minval must be below maxval: got {least} and {end}."
            )
        span = convert_to_tensor(np.uint64(end - least))
        first = convert_to_tensor(np.array(least % 2**64, np.uint64))
        return self._whole(shape, kind, lambda words: words % span + first)

    def uniform_full_int(self, shape: Any, dtype: DTypeLike = "uint64",
                         name: str | None = None) -> Tensor:  # fmt: skip
        """Sample integers uniformly from the whole range of a dtype.

        Args:
            shape: The shape of the result.
            dtype: int32, int64, uint32 or uint64.
            name: Ignored.

        Returns:
            A tensor of that shape and dtype.
        """
        return self._whole(shape, as_dtype(dtype), lambda words: words)

    def _whole(self, shape: Any, kind: DType, within: Callable[[Tensor], Tensor]) -> Tensor:
        if kind.name not in ("int32", "int64", "uint32", "uint64"):
            raise TypeError(
                f"[Generator] integers are int32, int64, uint32 or uint64: got {kind.name}; "
                "use samegrad.cast."
            )
        wide = kind.size == 8
        return self._draw(shape, kind, lambda w: within(_pairs(w) if wide else w), wide)

    def normal(self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0,
               dtype: DTypeLike = "float32", name: str | None = None) -> Tensor:  # fmt: skip
        """Sample from the normal distribution (Box and Muller, 1958).

        Args:
            shape: The shape of the result.
            mean: The mean, broadcast with the result.
            stddev: The standard deviation, broadcast with the result.
            dtype: A dtype of floats.
            name: Ignored.

        Returns:
            A tensor of that shape and dtype.
        """
        kind = _float_of(dtype, "normal")
        drawn = self._draw(shape, kind, lambda w: _normal(w, _is_wide(kind)), _is_wide(kind))
        return _scaled(drawn, stddev, mean, kind)

    def truncated_normal(self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0,
                         dtype: DTypeLike = "float32",
                         name: str | None = None) -> Tensor:  # fmt: skip
        """Sample from the normal distribution within two standard deviations of the mean.

        Args:
            shape: The shape of the result.
            mean: The mean, broadcast with the result.
            stddev: The standard deviation, broadcast with the result.
            dtype: A dtype of floats.
            name: Ignored.

        Returns:
            A tensor of that shape and dtype.
        """
        kind = _float_of(dtype, "truncated_normal")
        sizes = _sizes.sizes_of(shape)
        group = 2 if _is_wide(kind) else 4
        apart = np.arange(_CANDIDATES // group)
        words = self._words(sizes, lambda n: [64 * g + apart for g in range(0, n, group)])
        # of each group of numbers
        drawn = _truncated(reshape(words, [-1, 4 * len(apart)]), group)
        return _scaled(_shaped(drawn, sizes, kind), stddev, mean, kind)

    def make_seeds(self, count: int = 1) -> Tensor:
        """Sample seeds for stateless functions.

        Args:
            count: The number of seeds.

        Returns:
            An int64 tensor [2, count]: a seed in each column.
        """
        keys = self.uniform_full_int([count], "int64")
        return stack([keys, zeros_like(keys)])

    def split(self, count: int = 1) -> list[Generator]:
        """Create independent generators with sampled keys.

        Args:
            count: The number of generators.

        Returns:
            A list of `Generator`s.

        Raises:
            RuntimeError: Called inside `Strategy.run` of several replicas.

        Example:
            >>> one, two = Generator.from_seed(1).split(2)
            >>> bool((one.normal((2,)).numpy() != two.normal((2,)).numpy()).all())
            True
        """
        context = _context.current().replica_context
        if context is not None and context.num_replicas_in_sync > 1:
            raise RuntimeError(
                f"[Generator.split] replicas share the variables that they make: got {count} "
                f"generators inside run of {context.num_replicas_in_sync} replicas; split before "
                "run, in strategy.scope()."
            )
        keys = self.uniform_full_int([count], "int64")
        zero = convert_to_tensor(np.zeros(2, np.int64))
        return [type(self)(state=concat([zero, keys[i : i + 1]], 0)) for i in range(count)]

    def _checkpoint_state(self) -> dict[str, Any]:
        return {"_state_var": self._state_var}

    def _restore_state(self, values: dict[str, Any]) -> None:
        pass  # the variable has the values

    def __repr__(self) -> str:
        return f"<samegrad.random.Generator state={self._state_var!r}>"


def _joined(counter: Any, key: Any) -> Tensor:
    return concat([_flat(counter), _flat(key)], 0)


def _flat(value: TensorLike) -> Tensor:
    return reshape(cast(convert_to_tensor(value), "int64"), [-1])


def _is_wide(kind: DType) -> bool:
    return kind.name == "float64"


def _float_of(dtype: DTypeLike, who: str) -> DType:
    kind = as_dtype(dtype)
    if not kind.is_floating:
        raise TypeError(f"[Generator.{who}] the dtype must be a float: got {kind.name}.")
    return kind


def _shaped(drawn: Tensor, sizes: Sequence[Any], kind: DType) -> Tensor:
    """Reshape the first numbers to the sizes."""
    return cast(reshape(reshape(drawn, [-1])[: math.prod(sizes)], sizes), kind)


def _scaled(drawn: Tensor, stddev: Any, mean: Any, kind: DType) -> Tensor:
    deviation, middle = (cast(convert_to_tensor(v), kind) for v in (stddev, mean))
    scaled: Tensor = drawn * deviation + middle
    return scaled


def _pairs(words: Tensor) -> Tensor:
    """Return two words as one of 64 bits, the first below."""
    both: Tensor = words[:, 0::2] + words[:, 1::2] * np.uint64(2**32)
    return both


def _fractions(words: Tensor, dtype: str) -> Tensor:
    """Return fractions in [0, 1) of the lowest bits, as many as the dtype's precision."""
    bits = _FRACTION_BITS[dtype]
    if dtype == "float64":
        top = words[:, 0::2] % np.uint64(2**20)
        words = top * np.uint64(2**32) + words[:, 1::2]
    wide = "float64" if dtype == "float64" else "float32"
    return cast(words % np.uint64(2**bits), wide) * 2.0**-bits


def _normal(words: Tensor, wide: bool) -> Tensor:
    """Return pairs of normal numbers, of two fractions each."""
    parts = _fractions(words, "float64" if wide else "float32")
    first, second = parts[:, 0::2], parts[:, 1::2] * (2.0 * math.pi)
    radius = sqrt(log(maximum(first, 1.0e-7)) * -2.0)
    pairs = stack([sin(second) * radius, cos(second) * radius], axis=-1)
    return reshape(pairs, [pairs._shape[0], -1])


def _truncated(words: Tensor, group: int) -> Tensor:
    """Return the first candidates of each group that are within two deviations."""
    drawn = _normal(words, group == 2)
    within = abs(drawn) < _TRUNCATED_AT
    place = cumsum(cast(within, "int32"), axis=-1)
    chosen = [
        reduce_sum(where(logical_and(within, place == i + 1), drawn, zeros_like(drawn)), axis=-1)
        for i in range(group)
    ]
    return stack(chosen, axis=-1)


_global: list[Generator] = []


def get_global_generator() -> Generator:
    """Return the global generator, whose state differs in each process."""
    if not _global:
        _global.append(Generator.from_non_deterministic_state())
    return _global[0]


def set_global_generator(generator: Generator) -> None:
    """Set the generator that `get_global_generator` returns.

    Args:
        generator: A `Generator`.

    Raises:
        TypeError: The value is not a `Generator`.
    """
    if not isinstance(generator, Generator):
        raise TypeError(
            f"[set_global_generator] a Generator is needed: got {shown(generator)}; use "
            "Generator.from_seed."
        )
    _global[:] = [generator]


__all__ = [
    "Algorithm", "Generator", "create_rng_state", "get_global_generator", "set_global_generator",
]  # fmt: skip
guard(__name__)
