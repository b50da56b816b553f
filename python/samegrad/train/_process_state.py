"""State of the process in every checkpoint: random state, versions of the numerics, kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from samegrad import _core
from samegrad._base.location import warn
from samegrad._base.numerics import numerics
from samegrad.distribute._job import sums_dtype
from samegrad.train._storage import Json
from samegrad.train.checkpoint import register_provider

_FIELDS = ("seed", "step", "ordinal", "created")
# What each version changed; a warning names the changes since a checkpoint was written.
_CHANGES = {
    "reduction_order": {
        2: "long sums and products inside an example are cut into blocks",
        3: "the gradient of a matrix applied to sequences is one sum over examples and time steps",
        4: "a sum over examples is one tree over the global batch, for any division of it",
    },
    "function_version": {
        2: "powers, large angles, special functions and decompositions no longer depend on the "
        "processor",
    },
}

_policies: dict[str, Callable[[], str]] = {}


def register_policy(name: str, current: Callable[[], str]) -> None:
    """Record a setting that changes bits in every checkpoint.

    Args:
        name: Its name in the numeric policy.
        current: Returns the present setting.

    Example:
        >>> register_policy("gradient_sums", sums_dtype)
    """
    _policies[name] = current


def _random_state() -> Json:
    state = _core.random_state()
    return {field: int(getattr(state, field)) for field in _FIELDS}


def _restore_random_state(values: Mapping[str, int]) -> None:
    state = _core.random_state()
    for field in _FIELDS:
        setattr(state, field, int(values[field]))


def _check_isa(written: str) -> None:
    """Warn where the kernels of the checkpoint and those in use differ in fused multiply-add."""
    fused = _core.isa_fused()
    if fused.get(written) == fused[_core.isa()]:
        return
    same = [name for name in _core.isa_supported() if fused[name] == fused.get(written)]
    if same:
        hint = f"set SAMEGRAD_ISA={same[-1]} before the first step to have the same bits."
    elif written in fused:
        hint = "resume on a processor that has it to have the same bits."
    else:
        hint = "install the version that wrote it to have the same bits."
    warn(
        f"[checkpoint] it was written with the kernels for {written}, {_worded_fused(written)}: "
        f"got {_core.isa()}, {_worded_fused(_core.isa())}, so further steps agree within rounding, "
        f"not to the bit; {hint}"
    )


def _worded_fused(isa: str) -> str:
    fused = _core.isa_fused().get(isa)
    if fused is None:
        return "which this version does not know"
    return f"{'with' if fused else 'without'} fused multiply-add"


def _numerics_of_older(provided: Mapping[str, Json]) -> Json:
    """Return the versions of a checkpoint whose manifest has at most the reduction order."""
    return {"reduction_order": provided.get("order_of_addition", 1), "function_version": 1}


def _check_numerics(written: Mapping[str, int]) -> None:
    here = numerics()
    found = {name: int(written[name]) for name in here}
    if found == here:
        return
    changes = [
        f"{change} ({name.replace('_', ' ')} {version})"
        for name, by_version in _CHANGES.items()
        for version, change in by_version.items()
        if found[name] < version <= here[name]
    ]
    since = f" Changed since: {'; '.join(changes)}." if changes else ""
    warn(
        f"[checkpoint] it was written with {_worded(found)}: got {_worded(here)} here, so further "
        "steps agree with those of that version within rounding, not to the bit; install that "
        f"version to have the same bits.{since}"
    )


def _worded(versions: Mapping[str, int]) -> str:
    return " and ".join(f"{name.replace('_', ' ')} {value}" for name, value in versions.items())


register_provider("random_state", _random_state, _restore_random_state)
register_provider("isa", _core.isa, _check_isa)
register_provider("numerics", lambda: {**numerics()}, _check_numerics, absent=_numerics_of_older)
register_policy("gradient_sums", sums_dtype)
register_provider("numeric_policy", lambda: {n: current() for n, current in _policies.items()})
register_provider("samegrad_version", lambda: _core.__version__)
