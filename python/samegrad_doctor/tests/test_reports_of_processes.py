"""What processes of a job report is one loss, also where one of them reports alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from samegrad_doctor import Outcome
from samegrad_doctor._over_processes import StepOfAll


class TwoProcesses:
    """This one and another, which brings what is given."""

    rank, size = 0, 2

    def __init__(self, loss: float | None) -> None:
        self._loss = loss

    def all_of(self, what: str, work: Any) -> Any:
        return work()

    def met(self, what: str, own: Any) -> list[Any]:
        loss = None if self._loss is None else np.asarray(self._loss)
        return [own, (None, own[1], loss)]


@pytest.mark.parametrize(
    ("own", "other", "said"),
    [(2.0, None, 2.0), (None, 3.0, 3.0), (2.0, 3.0, 2.5), (2.0, 2.0, 2.0), (None, None, None)],
)
def test_the_loss_is_the_mean_of_those_reported(own, other, said) -> None:
    step = StepOfAll(lambda shares: Outcome(np.ones(3), own), TwoProcesses(other))
    loss = step([np.ones(2)]).loss
    assert loss is None if said is None else float(loss) == said
