"""Strategies of TensorFlow that have no counterpart here, and what to use in their place."""

from __future__ import annotations

from typing import Any, NoReturn


class _Elsewhere:
    remedy = ""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"[{cls.__name__}] replicas run on the CPUs of this machine: use {cls.remedy}."
        )


_MIRRORED = "samegrad.distribute.MirroredStrategy(replicas=N)"


class TPUStrategy(_Elsewhere):
    """Raises NotImplementedError: there are no TPUs; a mirrored strategy has as many replicas."""

    remedy = f"{_MIRRORED}, with N as many as the TPU has cores (8 for one board)"


class MultiWorkerMirroredStrategy(_Elsewhere):
    """Raises NotImplementedError: several machines are not supported."""

    remedy = f"{_MIRRORED}, with N the replicas of all workers together"


class ParameterServerStrategy(_Elsewhere):
    """Raises NotImplementedError: training is synchronous here."""

    remedy = f"{_MIRRORED}, which trains synchronously"


class CentralStorageStrategy(_Elsewhere):
    """Raises NotImplementedError: a mirrored variable exists once per process already."""

    remedy = f"{_MIRRORED}, whose variables exist once"
