"""Checkpoints: the state of any number of objects, in a folder of arrays and a manifest."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._function.function import BoundFunction, Function
from samegrad.distribute._job import on_first_rank
from samegrad.train import _state_file, _storage
from samegrad.train._checkpoint_options import call_back
from samegrad.train._node import Leaf, Node
from samegrad.train._storage import Json, corrupt
from samegrad.train._stored_tree import read_tree
from samegrad.train._trackable import (
    Trackable,
    Undo,
    build_tree,
    collect,
    is_trackable,
    missing_keys,
    restore_pending,
    restore_tree,
)

__all__ = ["Checkpoint", "CheckpointLoadStatus"]


@dataclass(frozen=True)
class _Provider:
    save: Callable[[], Json]
    restore: Callable[[Any], None]
    absent: Callable[[Mapping[str, Json]], Json]


_providers: dict[str, _Provider] = {}


def register_provider(
    name: str,
    save: Callable[[], Json],
    restore: Callable[[Any], None] = lambda value: None,
    absent: Callable[[Mapping[str, Json]], Json] = lambda provided: None,
) -> None:
    """Add state that belongs to no object, such as the random state, to every checkpoint.

    Args:
        name: Its name in the manifest. Registering a name again replaces it.
        save: Returns the value, as JSON knows it; called by each `write`.
        restore: Takes the value back, or warns when it differs from now; called by `restore`,
            after the objects, but not by `read`.
        absent: Takes all providers' values of a checkpoint without this state, and returns the
            value to restore. None restores nothing.

    Example:
        >>> from samegrad import _core
        >>> version = _core.__version__
        >>> register_provider("samegrad_version", lambda version=version: version)
    """
    _providers[name] = _Provider(save, restore, absent)


def provided_now() -> dict[str, Json]:
    """Return the present value of each provider."""
    return {name: provider.save() for name, provider in _providers.items()}


class Checkpoint:
    """Saves and restores objects by the names given here and the names inside them.

    A checkpoint written under any number of replicas, threads or processes restores under any
    other, and without a strategy. The values of variables that do not exist yet, such as the
    weights of a model before its first call, are kept until they do.

    Args:
        root: A model or another object with state, whose parts are stored under their own names,
            as if they had been given here; None: there are only those with names.
        **objects: Models, optimizers, variables, metrics, data iterators, lists and dicts of
            them; also NumPy arrays and Python values, which are read back as attributes.

    Raises:
        TypeError: An object has no state to be stored.
        ValueError: `root` has no names of its own, or has another part of a name given here.

    Example:
        >>> import numpy as np, samegrad as tf, tempfile
        >>> checkpoint = tf.train.Checkpoint(weights=np.ones(2), step=3)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = checkpoint.save(folder + "/ckpt")
        ...     checkpoint.step = 9
        ...     status = checkpoint.restore(path)
        >>> status.assert_consumed() is status, checkpoint.step, path.endswith("ckpt-1")
        (True, 3, True)
    """

    def __init__(self, root: Any = None, **objects: Any) -> None:
        object.__setattr__(self, "_objects", {})
        object.__setattr__(self, "_root", None if root is None else _checked_root(root))
        object.__setattr__(self, "_save_count", 0)
        for name, item in objects.items():
            setattr(self, name, item)

    def __setattr__(self, name: str, item: Any) -> None:
        if hasattr(type(self), name):
            raise ValueError(
                f"[checkpoint] names must not hide what a Checkpoint offers: got {shown(name)}. "
                "Choose another name."
            )
        if isinstance(item, Function | BoundFunction):  # for saved models; it has no state
            object.__setattr__(self, name, item)
            return
        collect(_Named({name: item}))  # refuses now what could not be saved later
        self._of_root({name: item})
        self._objects[name] = item
        restore_pending(self)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_objects"][name]
        except KeyError:
            raise AttributeError(f"[checkpoint] no object of the name {name!r}") from None

    @property
    def save_counter(self) -> SaveCounter:
        """Number of calls of `save`, including those before a restored checkpoint."""
        return SaveCounter(self._save_count)

    def write(self, file_prefix: str | os.PathLike[str], options: Any = None) -> str:
        """Write all state into the folder of this name, replacing an older one atomically.

        It may be called in a thread while another one trains: all variables are then of the same
        step. Other state of a Python program, such as the position in the data or its own counters,
        belongs to its loop: save it between two steps. In a job of several processes all of them
        call it, between two steps, and rank 0 writes.

        Args:
            file_prefix: Path of the folder.
            options: `CheckpointOptions`.

        Returns:
            Path of the folder.

        Raises:
            OSError: The disk is full, the folder not writable, or the like; nothing has changed.

        Example:
            >>> import samegrad as tf
            >>> checkpoint = tf.train.Checkpoint(step=tf.Variable(1))
            >>> checkpoint.write("written")
            'written'
        """
        path = os.fspath(file_prefix)
        self._write(path)
        call_back(options, path)
        return path

    def _write(self, path: str, then: Callable[[], None] = lambda: None) -> None:
        with _core.HeldState():  # a step of another thread is in it as a whole, or not at all
            leaves, aliases = collect(self)
            provided = provided_now()
        try:
            build_tree(leaves, aliases)  # what could not be read is not written
        except ValueError as error:
            raise ValueError(
                f"[checkpoint] the names of all objects must not be too many: got {error}. Store "
                "many values as one array."
            ) from error
        arrays = {}
        values: dict[str, Json] = {}
        for key, leaf in leaves.items():
            if isinstance(leaf, np.ndarray):
                arrays[key] = leaf
            else:
                values[key] = leaf
        manifest: dict[str, Json] = {
            "values": values,
            "aliases": cast(Json, aliases),
            "providers": provided,
        }
        on_first_rank("a checkpoint", lambda: _storage.save(path, arrays, manifest, then))

    def save(self, file_prefix: str | os.PathLike[str], options: Any = None) -> str:
        """Write all state under a new number and make it the folder's latest checkpoint.

        Args:
            file_prefix: Path of the folder without the number, e.g. `training/ckpt`.
            options: `CheckpointOptions`.

        Returns:
            The path with the number, e.g. `training/ckpt-3`.

        Raises:
            OSError: As for `write`.

        Example:
            >>> import samegrad as tf
            >>> checkpoint = tf.train.Checkpoint(step=tf.Variable(1))
            >>> checkpoint.save("saved/ckpt")
            'saved/ckpt-1'
        """
        return self._save_numbered(file_prefix, self._save_count + 1, options=options)

    def _save_numbered(
        self, file_prefix: str | os.PathLike[str], number: int, max_to_keep: int | None = None,
        every_n_hours: float | None = None, options: Any = None,
    ) -> str:  # fmt: skip
        before = self._save_count
        object.__setattr__(self, "_save_count", before + 1)
        try:
            path = f"{os.fspath(file_prefix)}-{number}"
            self._write(path, partial(_state_file.record_save, path, max_to_keep, every_n_hours))
        except BaseException:
            object.__setattr__(self, "_save_count", before)
            raise
        folder = os.path.dirname(path) or "."
        on_first_rank("a checkpoint's end", lambda: _state_file.remove_obsolete(folder))
        call_back(options, path)
        return path

    def read(self, save_path: str | os.PathLike[str], options: Any = None) -> CheckpointLoadStatus:
        """Restore the objects only: not the random state and other global state.

        Args:
            save_path: Path that `write` or `save` returned, here or in TensorFlow.
            options: Ignored.

        Returns:
            Status that can check if everything was matched.

        Raises:
            FileNotFoundError: The checkpoint does not exist.
            ValueError: The checkpoint is damaged, or a value does not fit its object. Nothing has
                been changed then.
        """
        with Undo() as undo:
            return self._read(save_path, undo)[0]

    def restore(
        self, save_path: str | os.PathLike[str] | None, options: Any = None
    ) -> CheckpointLoadStatus:
        """Restore all state; values of objects that do not exist yet wait until they do.

        Args:
            save_path: Path that `save` or `latest_checkpoint` returned, here or in TensorFlow. None
                restores nothing, so that a first run needs no other code than a later one.
            options: Ignored.

        Returns:
            Status that can check if everything was matched.

        Raises:
            FileNotFoundError: The checkpoint does not exist.
            ValueError: The checkpoint is damaged, or a value does not fit its object. Nothing has
                been changed then.

        Example:
            >>> import samegrad as tf
            >>> step = tf.Variable(1)
            >>> path = tf.train.Checkpoint(step=step).write("restored")
            >>> _ = step.assign(5)
            >>> status = tf.train.Checkpoint(step=step).restore(path)
            >>> int(step)
            1
        """
        if save_path is None:
            return CheckpointLoadStatus(self, None, "")
        with Undo() as undo:
            status, provided = self._read(save_path, undo)
            if provided is None:  # of a checkpoint of TensorFlow, which has no such state
                return status
            for name, provider in _providers.items():
                value = provided[name] if name in provided else provider.absent(provided)
                if value is not None:
                    _restore_provider(name, value, os.fspath(save_path), undo)
        return status

    def _read(
        self, save_path: str | os.PathLike[str], undo: Undo
    ) -> tuple[CheckpointLoadStatus, Mapping[str, Json] | None]:
        tree, provided = read_tree(save_path)
        restore_tree(self, tree, undo)
        return CheckpointLoadStatus(self, tree, os.fspath(save_path)), provided

    def _checkpoint_state(self) -> Mapping[str, Any]:
        own = {**self._objects, "save_counter": self._save_count}
        if self._root is None:
            return own
        twice = self._of_root(own)  # again: the root may have got parts
        return {"": self._root, **{n: part for n, part in own.items() if n not in twice}}

    def _of_root(self, named: Mapping[str, Any]) -> set[str]:
        """Return the objects that are also the root's attributes of the same names.

        Raises:
            ValueError: The root has another part of such a name.
        """
        parts = {} if self._root is None else self._root._checkpoint_state()
        twice = parts.keys() & named.keys()
        for name in sorted(twice):
            if parts[name] is not named[name] or not is_trackable(named[name]):
                raise ValueError(
                    f"[checkpoint] a name is that of one object: got {name!r} for an object and "
                    f"for a part of the root, {type(self._root).__name__}; choose another name, "
                    "or give the root one."
                )
        return set(twice)

    def _restore_state(self, values: Mapping[str, Leaf]) -> None:
        for name, value in values.items():
            if name == "save_counter":
                if type(value) is not int or value < 0:
                    raise ValueError(f"it must be a count of saves: got {shown(value)}")
                object.__setattr__(self, "_save_count", value)
            else:
                self._objects[name] = value


def _checked_root(root: Any) -> Trackable:
    """The object, if its parts have names.

    Raises:
        ValueError: It has no state, or one value without a name.
    """
    named = is_trackable(root) and "" not in root._checkpoint_state()
    if not named or isinstance(root, Checkpoint):
        raise ValueError(
            "[checkpoint] the root must be an object whose parts have names, such as a model: got "
            f"{shown(root)}; give it a name: Checkpoint(name=...)."
        )
    checked: Trackable = root
    return checked


class CheckpointLoadStatus:
    """Checks what a restored checkpoint has been used for; `Checkpoint.restore` makes it."""

    def __init__(self, root: Checkpoint, tree: Node | None, path: str) -> None:
        self._root = root
        self._tree = tree
        self._path = path

    def assert_consumed(self) -> CheckpointLoadStatus:
        """Check that every stored value has its object, and every object its stored value.

        Raises:
            AssertionError: Some have not; variables may not exist before the first call.
        """
        unused = self._checked_tree().unused()
        if unused:
            raise AssertionError(
                f"[checkpoint] every value of {self._path} must have an object: none for "
                f"{_some(unused)}. Build the model first, or use expect_partial()."
            )
        return self.assert_existing_objects_matched()

    def assert_existing_objects_matched(self) -> CheckpointLoadStatus:
        """Check that every object that exists now has been restored.

        Raises:
            AssertionError: The checkpoint has no value for some.
        """
        missing = missing_keys(self._root, self._checked_tree())
        if missing:
            raise AssertionError(
                f"[checkpoint] every object must have a value in {self._path}: none for "
                f"{_some(missing)}. Restore the checkpoint of such objects."
            )
        return self

    def assert_nontrivial_match(self) -> CheckpointLoadStatus:
        """Check that at least one object besides the save counter has been restored.

        Raises:
            AssertionError: Nothing was.
        """
        if set(self._checked_tree().used()) <= {"save_counter"}:
            raise AssertionError(
                f"[checkpoint] some value of {self._path} must fit an object by its name: stored "
                f"are {_some(self._checked_tree().unused())}. Use the names it was saved with."
            )
        return self

    def expect_partial(self) -> CheckpointLoadStatus:
        """Says that unused values are meant, as for the optimizer's when only evaluating."""
        return self

    def _checked_tree(self) -> Node:
        if self._tree is None:
            raise AssertionError(
                "[checkpoint] a checkpoint must have been restored: got the path None. Save one "
                "first, or do not check."
            )
        return self._tree


def _restore_provider(name: str, value: Json, path: str, undo: Undo) -> None:
    provider = _providers[name]
    undo.add(partial(provider.restore, provider.save()))
    try:
        provider.restore(value)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        found = f"{value!r:.80} ({type(error).__name__}: {error!s:.80})"
        raise corrupt(Path(path), f"hold a {name} that can be restored", found) from error


class SaveCounter(int):
    """The number of saves; an int that, like a variable, has `numpy()`."""

    def numpy(self) -> np.int64:
        """The number as a NumPy scalar."""
        number: np.int64 = np.int64(self)
        return number


class _Named:
    """A root for objects that have no checkpoint yet."""

    def __init__(self, parts: Mapping[str, Any]) -> None:
        self._parts = parts

    def _checkpoint_state(self) -> Mapping[str, Any]:
        return self._parts

    def _restore_state(self, values: Mapping[str, Leaf]) -> None:
        raise NotImplementedError


def _some(keys: list[str]) -> str:
    shown = ", ".join(map(repr, keys[:5]))
    return shown if len(keys) <= 5 else f"{shown} and {len(keys) - 5} more"
