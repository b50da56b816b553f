"""What pytest gets from samegrad: a mark for numbers of replicas, and a fixture that splits.

Loaded into every run of pytest, so it imports nothing but pytest until it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Makes the mark known."""
    config.addinivalue_line(
        "markers",
        "replicas(*counts): run the test with the fixture replica_count for each of the counts",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs a marked test for each number of replicas."""
    mark = metafunc.definition.get_closest_marker("replicas")
    if "replica_count" not in metafunc.fixturenames:
        return
    counts = mark.args if mark is not None else (1, 2, 3, 8)
    metafunc.parametrize("replica_count", counts, ids=lambda count: f"{count}-replicas")


@pytest.fixture
def replica_split() -> Callable[..., list[Any]]:
    """A function of a batch and of sizes (or a number of replicas) that gives the shares."""

    def split(batch: Any, sizes: int | Sequence[int]) -> list[Any]:
        from samegrad.testing import layout, uneven_sizes
        from samegrad.testing._layouts import rows_of, take

        rows = rows_of(batch)
        parts = uneven_sizes(rows, sizes) if isinstance(sizes, int) else list(sizes)
        if sum(parts) != rows:
            raise ValueError(
                f"[replica_split] the sizes must add up to the {rows} examples: got {parts}."
            )
        return [take(batch, share[0]) for share in layout(parts).parts]

    return split
