"""The tree of values that a checkpoint holds, one of samegrad or of TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from samegrad._base.shown import shown
from samegrad.train import _storage
from samegrad.train._foreign import tensorflow_prefix
from samegrad.train._node import Leaf, Node
from samegrad.train._object_graph import read_graph
from samegrad.train._storage import Json, corrupt
from samegrad.train._trackable import build_tree


def read_tree(path: str | os.PathLike[str]) -> tuple[Node, dict[str, Json] | None]:
    """Read a checkpoint.

    Returns:
        Tree of its values, and the state of the process that wrote it; None for TensorFlow's.

    Raises:
        FileNotFoundError: There is no checkpoint.
        CorruptCheckpointError: A file is missing, truncated or altered.
    """
    prefix = tensorflow_prefix(Path(path))
    if prefix is not None:
        return read_graph(prefix), None
    arrays, manifest = _storage.load(path)
    values, aliases, provided = _sections(os.fspath(path), manifest)
    try:
        return build_tree({**arrays, **values}, aliases), provided
    except ValueError as error:
        raise corrupt(Path(path), "name values as `save` does", str(error)) from error


def _sections(
    path: str, manifest: Mapping[str, Json]
) -> tuple[dict[str, Leaf], dict[str, str], dict[str, Json]]:
    """The values, the aliases and what the providers gave, if they are of the right types."""
    sections = [manifest.get(name) for name in ("values", "aliases", "providers")]
    values, aliases, provided = sections
    if not (
        isinstance(values, dict)
        and isinstance(aliases, dict)
        and isinstance(provided, dict)
        and all(isinstance(v, (bool, int, float, str, type(None))) for v in values.values())
        and all(isinstance(v, str) for v in aliases.values())
    ):
        kinds = ", ".join(type(section).__name__ for section in sections)
        rule = "hold values, aliases and providers by name"
        raise corrupt(Path(path), rule, f"{kinds}, or others inside")
    saves = values.get("save_counter", 0)  # the checkpoint's own: no program has another kind
    if type(saves) is not int or saves < 0:
        raise corrupt(Path(path), "hold a count of saves", shown(saves))
    return cast("dict[str, Leaf]", values), cast("dict[str, str]", aliases), provided
