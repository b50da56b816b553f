"""Variables whose declared shape leaves sizes open."""

from __future__ import annotations

from samegrad import _core
from samegrad._autodiff import variable
from samegrad._context.python_runs import forget_programs, leave_trace
from samegrad._tensor.shape import TensorShape
from samegrad._tensor.tensor import Tensor

__all__ = ["Variable", "install"]


class Variable(variable.Variable):
    """A variable that takes values of several shapes: `Variable([1.0], shape=[None])`.

    Functions compute with it as with any other until its shape changes. From then on Python runs
    the functions that use it, operation by operation, and `Strategy.run` refuses them.
    """

    _declared: TensorShape
    _changed = False

    @property
    def shape(self) -> TensorShape:
        """The declared shape."""
        return self._declared

    def _as_tensor(self) -> Tensor:
        if self._changed:
            self._leave_trace()
        return super()._as_tensor()

    def _store(self, value: Tensor) -> variable.Variable:
        if tuple(value._shape) != tuple(self._cell._shape):
            self._change_shape(value)
        return super()._store(value)

    def _change_shape(self, value: Tensor) -> None:
        if not self._declared.is_compatible_with(TensorShape(value._shape)):
            raise ValueError(
                f"[{self._cell.name}] a value must fit the declared shape: got "
                f"{tuple(value._shape)} for {self._declared}; use samegrad.reshape."
            )
        self._leave_trace()
        if self._cell.component_count > 1:
            raise ValueError(
                f"[{self._cell.name}] an ON_READ variable keeps its shape: got "
                f"{tuple(value._shape)} for {tuple(self._cell._shape)}."
            )
        self._cell = _core.StateVariable(self._cell.name, [value], self._cell.processes)
        self._changed = True
        variable.owners.add(self)
        forget_programs()  # they know the cell of the old shape

    def _leave_trace(self) -> None:
        leave_trace(
            f"[{self._cell.name}] a step of replicas has fixed sizes: got a variable of shape "
            f"{self._declared}, which has changed its size; assign values of one shape."
        )


def install() -> None:
    """Let variables with open sizes have this class."""
    variable.set_open_kind(Variable)
