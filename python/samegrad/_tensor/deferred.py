"""Tensors that are recorded on their first use."""

from __future__ import annotations

from typing import Any

from samegrad._core import Tensor


class DeferredTensor:
    """Base class of a value that becomes a tensor where an operator or an attribute needs one."""

    __slots__ = ()

    def _as_tensor(self) -> Tensor:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._as_tensor(), name)


def _of_tensor(name: str) -> Any:
    return lambda self, *operands: getattr(Tensor, name)(self._as_tensor(), *operands)


for _name in (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv",
    "mod", "rmod", "pow", "rpow", "neg", "abs", "matmul", "rmatmul", "lt", "le", "gt", "ge", "eq",
    "ne", "float", "int", "bool", "len", "getitem", "iter",
):  # fmt: skip
    setattr(DeferredTensor, f"__{_name}__", _of_tensor(f"__{_name}__"))


__all__ = ["DeferredTensor"]
