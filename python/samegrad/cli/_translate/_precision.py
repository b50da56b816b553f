"""bfloat16: which policy a run has, and what its processor makes of it."""

from __future__ import annotations

from pathlib import Path

_MIXED, _WHOLE = "mixed_bfloat16", "float32"
_CPUINFO = Path("/proc/cpuinfo")
_MULTIPLY = ("amx_bf16", "avx512_bf16")  # Linux's names of what multiplies numbers of bfloat16


def policy_of(mixed: bool) -> str:
    """Keras's name of the policy of a model.

    It depends on the option alone, not on the processor, so that a run can be resumed on another.
    """
    return _MIXED if mixed else _WHOLE


def instructions_of(cpuinfo: str) -> list[str]:
    """Return the bfloat16 instructions of a processor, the faster ones first.

    Args:
        cpuinfo: The content of Linux's /proc/cpuinfo.

    Example:
        >>> instructions_of("flags : fma avx512f avx512_bf16")
        ['avx512_bf16']
    """
    fields = (line.partition(":") for line in cpuinfo.splitlines())
    flags = next((value.split() for key, _, value in fields if key.strip() == "flags"), [])
    return [name for name in _MULTIPLY if name in flags]


def notice() -> str:
    """Return the effect of `--mixed-bfloat16` on this processor, in one line."""
    try:
        found = instructions_of(_CPUINFO.read_text())
    except OSError:
        found = []
    has = (
        f"has {found[0]}, but the kernels do not use it: they"
        if found
        else "has no instructions for it: the kernels"
    )
    return (
        f"bfloat16: this processor {has} compute in float32 and round. Steps are not faster, and "
        "take no less memory, than without --mixed-bfloat16."
    )
