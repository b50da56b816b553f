"""State of the process in every checkpoint: the random state, the version, the kernels."""

from __future__ import annotations

from collections.abc import Mapping

from samegrad import _core
from samegrad._base.location import warn
from samegrad.train._storage import Json
from samegrad.train.checkpoint import register_provider

_FIELDS = ("seed", "step", "ordinal", "created")


def _random_state() -> Json:
    state = _core.random_state()
    return {field: int(getattr(state, field)) for field in _FIELDS}


def _restore_random_state(values: Mapping[str, int]) -> None:
    state = _core.random_state()
    for field in _FIELDS:
        setattr(state, field, int(values[field]))


def _check_isa(written: str) -> None:
    if written == _core.isa():
        return
    variant = written.removeprefix("x86-64-")
    warn(
        f"[checkpoint] it was written with the kernels for {written}: got {_core.isa()} here, so "
        "further steps agree with those of that machine within rounding, not to the bit; set "
        f"SAMEGRAD_ISA={variant} before the first step to have the same kernels."
    )


def _check_order(written: int) -> None:
    if int(written) == _core.order_of_addition():
        return
    warn(
        f"[checkpoint] it was written under reduction order {written}: got "
        f"{_core.order_of_addition()} here, so further steps agree with those of that version "
        "within rounding, not to the bit; install it to have the same bits."
    )


register_provider("random_state", _random_state, _restore_random_state)
register_provider("isa", _core.isa, _check_isa)
register_provider("order_of_addition", _core.order_of_addition, _check_order, absent=1)
register_provider("samegrad_version", lambda: _core.__version__)
