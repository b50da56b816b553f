"""Files of models and weights are there in full, or as they were before.

Keras writes into the file itself: what fails in the middle would have cost the older file. So it
writes into a temporary folder beside it, from where the finished file takes the place at once.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from samegrad._base.file_errors import explained_errors
from samegrad.train import _files

# What Keras writes into the folder of a model.
_PARTS = frozenset({"metadata.json", "config.json", "model.weights.h5", "assets"})


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[str]:
    """A path to write to, whose files take their places when the block is left without exception.

    Args:
        path: Where the file is to be. Files that are written beside it (the parts of weights that
            are too many for one file) come along, the one that lists them last.

    Raises:
        OSError: The disk is full, the folder is not there, or the like; nothing has changed.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with whole_file(folder + "/a.txt") as path:
        ...         _ = Path(path).write_text("all")
        ...     Path(folder, "a.txt").read_text()
        'all'
    """
    target = Path(os.path.realpath(path))  # what a link leads to is written, as by `open`
    if target.exists() and not target.is_file():
        yield os.fspath(path)  # a device or a folder: who writes knows
        return
    with _explained(target), _files.temporary_folder(target.parent) as temporary:
        with _system_errors():
            yield str(temporary / target.name)
        made = sorted(temporary.iterdir(), key=lambda file: file.suffix == ".json")
        for file in made:
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
            place = target.parent / file.name
            if place.is_file():
                shutil.copymode(place, file)
            os.replace(file, place)
        _files.sync_folder(target.parent)


@contextlib.contextmanager
def whole_folder(path: str | os.PathLike[str]) -> Iterator[str]:
    """Write a model's folder as a whole, like `whole_file`.

    Args:
        path: The folder: absent, empty, or one of a model.

    Raises:
        ValueError: It holds something else, which would be lost.
        OSError: The disk is full, or the like; nothing has changed.
    """
    target = Path(os.path.realpath(path))
    _check_replaceable(target)
    with _explained(target):
        _files.make_folder(target.parent)
        with _files.temporary_folder(target.parent) as temporary:
            yield str(temporary / target.name)
            older = target.with_name(f".{target.name}.older-{secrets.token_hex(4)}")
            if target.exists():
                os.rename(target, older)
            try:
                os.rename(temporary / target.name, target)
            except BaseException:
                if older.exists():
                    os.rename(older, target)
                raise
            _files.sync_folder(target.parent)
            shutil.rmtree(older, ignore_errors=True)


def _check_replaceable(target: Path) -> None:
    if not target.exists():
        return
    others = sorted(
        {entry.name for entry in target.iterdir()} - _PARTS if target.is_dir() else {target.name}
    )
    if others:
        raise ValueError(
            f"[save] the folder of a model is absent, empty or one of a model: got {target} with "
            f"{others[0]!r}; choose another name, or save to a file 'model.keras'."
        )


@contextlib.contextmanager
def _system_errors() -> Iterator[None]:
    """Raise the system's error where h5py only reports that a file could not be closed."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error.__context__, OSError):
            raise error.__context__ from None
        raise


def _explained(target: Path) -> Any:
    return explained_errors(
        "save", "save", target, "Nothing was changed: make room, or choose another folder"
    )


def whole_model(save: Callable[..., Any]) -> Callable[..., Any]:
    """Keras's function that writes a model, which then writes all of it or nothing."""

    @functools.wraps(save)
    def whole(model: Any, filepath: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_local(filepath):
            return save(model, filepath, *args, **kwargs)
        zipped = kwargs.get("zipped", args[1] if len(args) > 1 else True)
        with (whole_file if zipped else whole_folder)(filepath) as path:
            return save(model, path, *args, **kwargs)

    return whole


def whole_weights(save: Callable[..., Any]) -> Callable[..., Any]:
    """Keras's function that writes weights, which then writes all of them or nothing."""

    @functools.wraps(save)
    def whole(model: Any, filepath: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_local(filepath):
            return save(model, filepath, *args, **kwargs)
        with whole_file(filepath) as path:
            return save(model, path, *args, **kwargs)

    return whole


def whole_hdf5(save: Callable[..., Any]) -> Callable[..., Any]:
    """Write like `whole_weights`, and create missing folders."""
    whole = whole_weights(save)

    @functools.wraps(save)
    def with_folder(model: Any, filepath: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_local(filepath):
            _files.make_folder(Path(os.path.abspath(filepath)).parent)
        return whole(model, filepath, *args, **kwargs)

    return with_folder


def _is_local(path: Any) -> bool:
    """Tell if it is a path of this machine, and neither an open file nor an address."""
    return isinstance(path, str | os.PathLike) and "://" not in os.fspath(path)
