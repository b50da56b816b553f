"""First values of weights.

Random initializers draw by (seed, number of the variable in the order of creation), so two runs
that create the same variables in the same order begin with the same weights, on any number of
replicas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._boundary import guard as _guard
from samegrad._dtypes import DTypeLike, as_dtype
from samegrad._shown import shown
from samegrad._sizes import sizes_of
from samegrad._tensor import Tensor, convert_to_tensor
from samegrad.keras._registry import find as _find
from samegrad.keras.backend import floatx

Shape = Sequence[int]
# Random operations of steps have small ordinals, eager ones those from 2**62.
_FIRST_ORDINAL = 2**61


class Initializer:
    """Base: a function of shape and dtype to a tensor.

    Example:
        >>> Initializer().get_config()
        {}
    """

    _config_names: tuple[str, ...] = ()

    def __call__(self, shape: Shape, dtype: DTypeLike | None = None, **kwargs: Any) -> Tensor:
        """A tensor of that shape and dtype."""
        raise NotImplementedError(f"[{type(self).__name__}] define __call__(self, shape, dtype).")

    def get_config(self) -> dict[str, Any]:
        """The arguments it was made with."""
        return {name: getattr(self, name) for name in self._config_names}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        """An initializer made with these arguments."""
        return cls(**config)


class Constant(Initializer):
    """One number everywhere, or the given array.

    Example:
        >>> Constant(3.0)((2,)).numpy()
        array([3., 3.], dtype=float32)
    """

    _config_names: tuple[str, ...] = ("value",)

    def __init__(self, value: Any = 0.0) -> None:
        self.value = value

    def __call__(self, shape: Shape, dtype: DTypeLike | None = None, **kwargs: Any) -> Tensor:
        """A tensor of that shape and dtype."""
        value, wanted = np.asarray(self.value), as_dtype(dtype or floatx())._numpy
        if value.ndim == 0:
            return convert_to_tensor(np.full(tuple(shape), value, wanted))
        return convert_to_tensor(np.broadcast_to(value, tuple(shape)).astype(wanted))


class Zeros(Constant):
    """0 everywhere.

    Example:
        >>> Zeros()((2,)).numpy()
        array([0., 0.], dtype=float32)
    """

    _config_names: tuple[str, ...] = ()

    def __init__(self) -> None:
        super().__init__(0.0)


class Ones(Constant):
    """1 everywhere.

    Example:
        >>> Ones()((2,)).numpy()
        array([1., 1.], dtype=float32)
    """

    _config_names: tuple[str, ...] = ()

    def __init__(self) -> None:
        super().__init__(1.0)


class Identity(Initializer):
    """A matrix with `gain` on its diagonal.

    Raises:
        ValueError: The shape is no matrix.

    Example:
        >>> Identity()((2, 2)).numpy()
        array([[1., 0.],
               [0., 1.]], dtype=float32)
    """

    _config_names = ("gain",)

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def __call__(self, shape: Shape, dtype: DTypeLike | None = None, **kwargs: Any) -> Tensor:
        """A tensor of that shape and dtype."""
        if len(shape) != 2:
            raise ValueError(f"[Identity] the shape must be a matrix's: got {tuple(shape)}.")
        matrix = np.eye(shape[0], shape[1]) * self.gain
        return convert_to_tensor(matrix.astype(as_dtype(dtype or floatx()).name))


class RandomNormal(Initializer):
    """Normal numbers.

    Args:
        mean: Their mean.
        stddev: Their standard deviation.
        seed: None: the global seed and the variable's number decide. A number: it alone decides.

    Example:
        >>> RandomNormal(stddev=0.1)((2, 3)).shape
        (2, 3)
    """

    _config_names = ("mean", "stddev", "seed")
    _kind = "normal"

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> None:
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def __call__(self, shape: Shape, dtype: DTypeLike | None = None, **kwargs: Any) -> Tensor:
        """A tensor of that shape and dtype."""
        return _draw(self._kind, shape, dtype, self.seed) * self.stddev + self.mean


class TruncatedNormal(RandomNormal):
    """Normal numbers, drawn again until within two standard deviations.

    Args:
        mean: Mean of the normal distribution.
        stddev: Its standard deviation before it is cut.
        seed: As of `RandomNormal`.

    Example:
        >>> bool(abs(TruncatedNormal(stddev=0.5)((99,)).numpy()).max() <= 1.0)
        True
    """

    _kind = "truncated_normal"


class RandomUniform(Initializer):
    """Evenly distributed numbers.

    Args:
        minval: The least.
        maxval: All are below it.
        seed: As of `RandomNormal`.

    Example:
        >>> bool(abs(RandomUniform()((99,)).numpy()).max() <= 0.05)
        True
    """

    _config_names = ("minval", "maxval", "seed")

    def __init__(
        self, minval: float = -0.05, maxval: float = 0.05, seed: int | None = None
    ) -> None:
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def __call__(self, shape: Shape, dtype: DTypeLike | None = None, **kwargs: Any) -> Tensor:
        """A tensor of that shape and dtype."""
        return _draw("uniform", shape, dtype, self.seed) * (self.maxval - self.minval) + self.minval


class VarianceScaling(Initializer):
    """Random numbers whose variance is scale / (number of inputs, outputs, or their mean).

    Args:
        scale: A positive number.
        mode: "fan_in", "fan_out" or "fan_avg".
        distribution: "truncated_normal", "untruncated_normal" or "uniform".
        seed: As of `RandomNormal`.

    Raises:
        ValueError: An argument is none of these.

    Example:
        >>> VarianceScaling(2.0, "fan_in")((4, 3)).shape
        (4, 3)
    """

    _config_names: tuple[str, ...] = ("scale", "mode", "distribution", "seed")
    _MODES = ("fan_in", "fan_out", "fan_avg")
    _DISTRIBUTIONS = ("truncated_normal", "untruncated_normal", "uniform")
    # Deviation of the standard normal distribution cut at 2.
    _TRUNCATED_STDDEV = 0.87962566103423978

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
    ) -> None:
        distribution = "truncated_normal" if distribution == "normal" else distribution
        if not scale > 0 or mode not in self._MODES or distribution not in self._DISTRIBUTIONS:
            raise ValueError(
                f"[VarianceScaling] scale must be positive, mode one of {self._MODES} and "
                f"distribution one of {self._DISTRIBUTIONS}: got {shown(scale)}, {shown(mode)} "
                f"and {shown(distribution)}."
            )
        self.scale, self.mode, self.distribution, self.seed = scale, mode, distribution, seed

    def __call__(self, shape: Shape, dtype: DTypeLike | None = None, **kwargs: Any) -> Tensor:
        """A tensor of that shape and dtype."""
        fan_in, fan_out = compute_fans(shape)
        fans = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}
        variance = self.scale / max(1.0, fans[self.mode])
        if self.distribution == "uniform":
            limit = math.sqrt(3 * variance)
            return _draw("uniform", shape, dtype, self.seed) * (2 * limit) - limit
        if self.distribution == "untruncated_normal":
            return _draw("normal", shape, dtype, self.seed) * math.sqrt(variance)
        stddev = math.sqrt(variance) / self._TRUNCATED_STDDEV
        return _draw("truncated_normal", shape, dtype, self.seed) * stddev


class _Preset(VarianceScaling):
    """A `VarianceScaling` with a name of its own."""

    _config_names = ("seed",)
    _preset: tuple[float, str, str]

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(*self._preset, seed=seed)


class GlorotUniform(_Preset):
    """Uniform within sqrt(6 / (inputs + outputs)) of 0 (Glorot and Bengio, 2010).

    Example:
        >>> bool(abs(GlorotUniform()((3, 3)).numpy()).max() <= 1.0)
        True
    """

    _preset = (1.0, "fan_avg", "uniform")


class GlorotNormal(_Preset):
    """Truncated normal, variance 2 / (inputs + outputs) (Glorot and Bengio, 2010).

    Example:
        >>> GlorotNormal()((3, 3)).shape
        (3, 3)
    """

    _preset = (1.0, "fan_avg", "truncated_normal")


class HeUniform(_Preset):
    """Uniform within sqrt(6 / inputs) of 0 (He et al., 2015).

    Example:
        >>> HeUniform()((3, 3)).shape
        (3, 3)
    """

    _preset = (2.0, "fan_in", "uniform")


class HeNormal(_Preset):
    """Truncated normal, variance 2 / inputs (He et al., 2015).

    Example:
        >>> HeNormal()((3, 3)).shape
        (3, 3)
    """

    _preset = (2.0, "fan_in", "truncated_normal")


class LecunUniform(_Preset):
    """Uniform within sqrt(3 / inputs) of 0 (LeCun et al., 1998).

    Example:
        >>> LecunUniform()((3, 3)).shape
        (3, 3)
    """

    _preset = (1.0, "fan_in", "uniform")


class LecunNormal(_Preset):
    """Truncated normal, variance 1 / inputs (LeCun et al., 1998).

    Example:
        >>> LecunNormal()((3, 3)).shape
        (3, 3)
    """

    _preset = (1.0, "fan_in", "truncated_normal")


def compute_fans(shape: Shape) -> tuple[float, float]:
    """How many inputs and outputs one weight tensor of this shape connects.

    Example:
        >>> compute_fans((3, 3, 16, 32))
        (144, 288)
    """
    shape = sizes_of(shape)
    if len(shape) < 2:
        size = float(shape[0]) if shape else 1.0
        return size, size
    field = math.prod(shape[:-2])
    return shape[-2] * field, shape[-1] * field


zeros, ones, constant, identity = Zeros, Ones, Constant, Identity
random_normal, random_uniform, truncated_normal = RandomNormal, RandomUniform, TruncatedNormal
variance_scaling = VarianceScaling
glorot_uniform, glorot_normal = GlorotUniform, GlorotNormal
he_uniform, he_normal = HeUniform, HeNormal
lecun_uniform, lecun_normal = LecunUniform, LecunNormal

_CLASSES: dict[str, type[Initializer]] = {
    "zeros": Zeros,
    "ones": Ones,
    "constant": Constant,
    "identity": Identity,
    "random_normal": RandomNormal,
    "random_uniform": RandomUniform,
    "truncated_normal": TruncatedNormal,
    "variance_scaling": VarianceScaling,
    "glorot_uniform": GlorotUniform,
    "glorot_normal": GlorotNormal,
    "he_uniform": HeUniform,
    "he_normal": HeNormal,
    "lecun_uniform": LecunUniform,
    "lecun_normal": LecunNormal,
}
_NAMES = {**_CLASSES, **{cls.__name__: cls for cls in _CLASSES.values()}}


def get(identifier: Any) -> Any:
    """The initializer that an argument asks for.

    Args:
        identifier: A name, a configuration, an initializer or function, or None.

    Returns:
        A function of shape and dtype, or None.

    Raises:
        ValueError: There is no such name.

    Example:
        >>> type(get("glorot_uniform")).__name__
        'GlorotUniform'
    """
    return None if identifier is None else _find("initializer", _NAMES, identifier)


def serialize(initializer: Any) -> Any:
    """The configuration of an initializer, as `get` takes it.

    Example:
        >>> serialize(Zeros())
        {'class_name': 'Zeros', 'config': {}}
    """
    if not isinstance(initializer, Initializer):
        return initializer
    return {"class_name": type(initializer).__name__, "config": initializer.get_config()}


def _draw(kind: str, shape: Shape, dtype: DTypeLike | None, seed: int | None) -> Tensor:
    """Random numbers that depend on (global seed, variables created) or on an own seed alone."""
    state = _core.random_state()
    created = _core.take_created()
    number = created if seed is None else 0
    # A state of this thread's own: what others draw meanwhile stays as it is.
    with _core.data_function(state.seed if seed is None else 0, 0):
        drawn: Tensor = getattr(_core.ops, f"random_{kind}")(
            convert_to_tensor(0, "int64"),
            shape=tuple(shape),
            dtype=as_dtype(dtype or floatx()).name,
            seed=seed or 0,
            ordinal=_FIRST_ORDINAL + number,
        )
        return drawn


_guard(__name__)
