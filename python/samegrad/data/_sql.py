"""Rows of a database, read by Python's sqlite3."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from samegrad._base.dtypes import element_type, string
from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._tensor.spec import TensorSpec
from samegrad._tensor.text import text_of
from samegrad.data._dataset import Dataset
from samegrad.data._function_nodes import GeneratorNode
from samegrad.io.gfile import existing

_WHO = "SqlDataset"


class SqlDataset(Dataset):
    """The rows that a query finds in a database, as tuples of their columns.

    Each run opens the database for reading and asks anew.

    Args:
        driver_name: "sqlite".
        data_source_name: The path of the file.
        query: A SELECT statement of SQL; ORDER BY makes the order the same in each run.
        output_types: The dtype of each column: integers, floats, bool or `tf.string`.

    Raises:
        ValueError: There is another driver, or output_types is not a tuple of dtypes.
        NotFoundError: There is no such file.
        InvalidArgumentError: While iterating, if the query is wrong, finds other columns, or a
            value is NULL or not of its dtype; the message names file, row and column.

    Example:
        >>> import sqlite3
        >>> import samegrad as tf
        >>> with sqlite3.connect("pets.db") as base:
        ...     _ = base.execute("CREATE TABLE pets (name TEXT, legs INTEGER)")
        ...     _ = base.execute("INSERT INTO pets VALUES ('cat', 4)")
        >>> pets = tf.data.experimental.SqlDataset(
        ...     "sqlite", "pets.db", "SELECT name, legs FROM pets", (tf.string, tf.int32))
        >>> [(name.numpy(), int(legs)) for name, legs in pets]
        [(b'cat', 4)]
    """

    def __init__(
        self, driver_name: Any, data_source_name: Any, query: Any, output_types: Any
    ) -> None:
        driver = _text(driver_name, "driver_name")
        if driver != "sqlite":
            raise ValueError(f"[{_WHO}] driver_name must be 'sqlite': got {shown(driver)}.")
        if not isinstance(output_types, tuple | list) or not output_types:
            raise ValueError(
                f"[{_WHO}] output_types must be a tuple of dtypes: got {shown(output_types)}."
            )
        kinds = [element_type(kind) for kind in output_types]
        path, question = existing(data_source_name, _WHO), _text(query, "query")
        signature = tuple(TensorSpec((), kind) for kind in kinds)
        super().__init__(GeneratorNode(lambda: _rows(path, question, kinds), signature))


def _text(value: Any, what: str) -> str:
    return str(text_of(value, _WHO, f"{what} must be strings").strings[()])


def _rows(path: str, query: str, kinds: list[Any]) -> Iterator[tuple[Any, ...]]:
    number = 0
    try:
        address = f"{Path(path).absolute().as_uri()}?mode=ro"
        # One thread at a time reads: who passes over rows, and who prefetches the others.
        with closing(sqlite3.connect(address, uri=True, check_same_thread=False)) as base:
            base.text_factory = bytes
            found = base.execute(query)
            if found.description is None:
                raise sqlite3.ProgrammingError("it finds no columns")
            for row in found:
                if len(row) != len(kinds):
                    raise InvalidArgumentError(
                        f"[{_WHO}] output_types must have a dtype for each of the query's "
                        f"{len(row)} columns: got {len(kinds)}."
                    )
                pairs = enumerate(zip(row, kinds, strict=True))
                yield tuple(
                    _value(*pair, f"row {number}, column {n}, of {path}") for n, pair in pairs
                )
                number += 1
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise InvalidArgumentError(
            f"[{_WHO}] the query must be one that SQLite can answer: got {shown(query)} for {path} "
            f"({error})."
        ) from None


def _value(value: Any, kind: Any, place: str) -> Any:
    wanted: Any = None
    if kind is string:
        wanted = value if isinstance(value, bytes) else None
        wanted = str(value).encode() if isinstance(value, int | float) else wanted
    elif isinstance(value, int | float):
        with np.errstate(over="ignore"):
            made = np.array(value).astype(kind.as_numpy_dtype)
        fits = made == value if kind.is_integer else abs(made) < np.inf or abs(value) == np.inf
        wanted = made if fits else None
    if wanted is None:
        raise InvalidArgumentError(
            f"[{_WHO}] {kind.name} is needed: got {shown(value)} at {place}."
        )
    return wanted
