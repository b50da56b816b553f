"""The protocol between checkpoints and the objects that have state.

An object takes part by two methods (see `Trackable`). Its state is a mapping of names to

* leaves: NumPy arrays and scalars, or None, bool, int, float, str;
* other trackable objects, or lists, tuples and dicts of them.

A key in the checkpoint is the way of names from the root: `model/layers/0/kernel`. A variable
offers its value under the empty name, which stands for the object itself, so its key is the name
that its owner gave it. Keys know nothing of replicas, processes or strategies.

Values whose object does not exist yet (the weights of a layer before its first call, the slots of
an optimizer before its first step) wait at the nearest object that does. An owner therefore calls
`restore_pending(self)` whenever it has created variables or got new parts.
"""

from __future__ import annotations

import contextlib
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeGuard

import numpy as np

from samegrad._base.tree import is_one_value
from samegrad.train._node import Leaf, Node, escape

Keyed: TypeAlias = "dict[str, Leaf]"

_DEEPEST = 64  # names from the root to a value
_MAX_NAMES = 60_000  # in all
_MAX_CHARACTERS = 16 << 20  # in the ways to all of them
# By id; not in the objects, whose attributes are their owner's. Entries go with their objects.
_waiting: dict[int, tuple[weakref.ref[Any], Node]] = {}
# References among those whose objects are gone. Noted by a method of C: what a signal raised in a
# function of Python's that runs at the end of an object would be lost.
_gone: deque[_Reference] = deque()
_LEAF_TYPES = (np.ndarray, np.generic, bool, int, float, str, type(None))


class Trackable(Protocol):
    """Protocol of an object that can be stored in checkpoints."""

    def _checkpoint_state(self) -> Mapping[str, Any]:
        """Names and parts. Arrays that can be written to are copied, others taken as they are.

        Objects that hang together share them: a part reached by several ways is stored once.
        """
        ...

    def _restore_state(self, values: Mapping[str, Leaf]) -> None:
        """Take some or all of its own leaves, by the names of `_checkpoint_state`.

        Shapes and dtypes of arrays and the kinds of values are those of the present state: this is
        checked before. Must write the storage directly even while a function is being traced, and
        copy the arrays. If it fails, it is called again with what there was before.
        """
        ...


def is_trackable(value: object) -> TypeGuard[Trackable]:
    """True if a value has the methods of a trackable object.

    Python's own test of protocols lists the protocol's methods anew for each value.

    Example:
        >>> class Counter:
        ...     def __init__(self):
        ...         self.count = 0
        ...     def _checkpoint_state(self):
        ...         return {"count": self.count}
        ...     def _restore_state(self, values):
        ...         self.count = values["count"]
        >>> is_trackable(Counter()), is_trackable(1)
        (True, False)
    """
    return hasattr(value, "_checkpoint_state") and hasattr(value, "_restore_state")


class Undo:
    """Takes back, in reverse order, what a restore has done, if an exception leaves the block."""

    def __init__(self) -> None:
        self._actions: list[Callable[[], object]] = []

    def add(self, action: Callable[[], object]) -> None:
        """Note how to take back what is done next."""
        self._actions.append(action)

    def __enter__(self) -> Undo:
        return self

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        if kind is None:
            return
        failed: list[Exception] = []
        for action in reversed(self._actions):
            try:
                action()
            except KeyboardInterrupt:  # Ctrl-C pressed twice
                action()
            except Exception as error:  # the others are set back all the same
                failed.append(error)
        if failed:
            raise RuntimeError(
                "[checkpoint] what a failed restore has changed must be set back: got "
                f"{type(failed[0]).__name__}: {failed[0]!s:.200}. Make the objects anew."
            ) from failed[0]


@dataclass
class _Gift:
    """Values about to be given to an object."""

    receiver: Any  # Trackable: containers have no leaves
    values: dict[str, Leaf] = field(default_factory=dict)
    present: dict[str, Leaf] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)


def collect(root: Trackable) -> tuple[Keyed, dict[str, str]]:
    """Walk all objects and take their leaves.

    Args:
        root: The object to begin at; its own names have no prefix.

    Returns:
        Leaves by key, and for each further way to an object already stored the key it has.

    Raises:
        TypeError: A part is neither a leaf nor trackable.
    """
    leaves: Keyed = {}
    aliases: dict[str, str] = {}
    seen: dict[int, tuple[str, object]] = {}  # holds the objects, so that no id comes twice

    def visit(item: object, key: str, depth: int) -> None:
        if depth > _DEEPEST:
            raise ValueError(
                f"[checkpoint] objects may hang {_DEEPEST} levels below the root: got more for "
                f"{key[:60]!r}... Keep them in a flat list."
            )
        if is_trackable(item):  # a container is part of its owner, not a thing to share
            if id(item) in seen:
                aliases[key] = seen[id(item)][0]
                return
            seen[id(item)] = (key, item)
            _release(item)
        for name, part in _state_of(item, key).items():
            if isinstance(part, _LEAF_TYPES):
                leaves[_join(key, name)] = _copied(part)
            else:
                visit(part, _join(key, name), depth + 1)

    visit(root, "", 0)
    return leaves, aliases


def build_tree(leaves: Mapping[str, Leaf], aliases: Mapping[str, str]) -> Node:
    """The nodes of a stored checkpoint, from what `collect` returned.

    Raises:
        ValueError: These are keys that `collect` does not make.
    """
    root = Node("")
    known = {"": root}
    room = _MAX_CHARACTERS

    def node_at(key: str) -> Node:
        nonlocal room
        ahead = []
        while key not in known:
            ahead.append(key)
            room -= len(key)
            key = key.rpartition("/")[0]
            if len(ahead) > _DEEPEST + 1 or len(known) > _MAX_NAMES or room < 0:
                raise ValueError(
                    f"more than {_MAX_NAMES} names, {_MAX_CHARACTERS} characters in them, or "
                    f"{_DEEPEST} levels of them"
                )
        for deeper in reversed(ahead):
            parent, _, name = deeper.rpartition("/")
            known[deeper] = known[parent].children[name] = Node(deeper)
        return known[key] if not ahead else known[ahead[0]]

    for key, leaf in leaves.items():
        node = node_at(key)
        node.has_value, node.value = True, leaf
    for alias, key in aliases.items():
        if alias in known:
            raise ValueError(f"an object and another way to it under one name, {alias[:60]!r}")
        parent, _, name = alias.rpartition("/")
        node_at(parent).children[name] = known[alias] = node_at(key)
    return root


def restore_tree(root: Trackable, tree: Node, undo: Undo | None = None) -> None:
    """Give the values of a checkpoint to the objects that exist, and keep the rest for later.

    Args:
        root: What the checkpoint is restored into.
        tree: The checkpoint.
        undo: Learns how to take all of it back, where more is to be restored after it.

    Raises:
        ValueError: A stored value does not fit its object. Nothing has been changed then.
    """
    with Undo() as own:
        _give(root, tree, undo or own)


def restore_pending(owner: Trackable) -> None:
    """Give waiting values to the parts that an object has got since it was restored.

    Layers call it at the end of `build`, optimizers after creating their slots, containers after
    adding a part. Without a restored checkpoint it costs one look at an attribute. A value is
    given to one object once: what training has changed meanwhile is not touched.

    Args:
        owner: The object whose `_checkpoint_state` now names more than before.

    Raises:
        ValueError: A stored value does not fit its object.

    Example:
        >>> class Layer:  # doctest: +SKIP
        ...     def build(self, shape):
        ...         self.kernel = Variable(initial)
        ...         restore_pending(self)
    """
    node = _awaited(owner)
    if node is not None:
        with Undo() as undo:
            _give(owner, node, undo)


def missing_keys(root: Trackable, tree: Node) -> list[str]:
    """Keys of existing leaves for which a checkpoint has no value."""
    missing: list[tuple[object, str]] = []
    found: set[int] = set()
    # Holds the objects, so that no id comes twice.
    seen: dict[tuple[int, int], object] = {}
    ahead: list[tuple[object, Node | None, str]] = [(root, tree, "")]
    while ahead:
        item, node, key = ahead.pop()
        if (id(item), id(node)) in seen:
            continue
        seen[id(item), id(node)] = item
        state = _state_of(item, key)
        unpaired = ((name, part, None) for name, part in state.items())
        pairs = unpaired if node is None else node.pairs(item, state)
        below = []
        for name, part, stored in pairs:
            if not isinstance(part, _LEAF_TYPES):
                below.append((part, stored, _join(key, name)))
            elif stored is None or not stored.has_value:
                missing.append((item, _join(key, name)))
            elif name == "":
                found.add(id(item))
        ahead += reversed(below)
    return [key for item, key in missing if id(item) not in found]


def _give(root: Trackable, tree: Node, undo: Undo) -> None:
    """Give values to the objects from `root` on, and let the others wait at these objects."""
    match = _Match(root, tree)
    for gift in match.gifts:
        before = {name: _copied(part) for name, part in gift.present.items()}
        undo.add(partial(gift.receiver._restore_state, before))
        for node in gift.nodes:
            undo.add(partial(node.take_back, node.receivers()))
            node.give_to(gift.receiver)
    for item, node in match.pairs.values():
        undo.add(partial(_let_wait, item, _awaited(item)))
        _let_wait(item, node if item is root or node.unused() else None)
    for gift in match.gifts:
        try:
            gift.receiver._restore_state(gift.values)
        except Exception as error:
            keys = ", ".join(repr(node.key) for node in gift.nodes[:3])
            if isinstance(error, MemoryError):
                raise MemoryError(
                    f"[checkpoint] no memory is left for {keys}; nothing has been changed."
                ) from error
            raise ValueError(
                f"[checkpoint] {type(gift.receiver).__name__} must take the values stored as "
                f"{keys}: got {type(error).__name__}: {error!s:.200}. Restore into objects like "
                "those that were saved; nothing has been changed."
            ) from error


class _Reference(weakref.ref[Any]):
    """Knows its key after the object is gone."""

    __slots__ = ("key",)
    key: int


def _awaited(item: object) -> Node | None:
    """The node whose values wait for parts of this object."""
    _drop_gone()
    reference, node = _waiting.get(id(item), (None, None))
    return node if reference is not None and reference() is item else None


def _let_wait(item: object, node: Node | None) -> None:
    """Let the values of a node wait for parts of this object; None: no values wait any more."""
    _drop_gone()
    if node is None:
        _waiting.pop(id(item), None)
        return
    with contextlib.suppress(TypeError):  # containers and the like cannot wait
        reference = _Reference(item, _gone.append)
        reference.key = id(item)
        _waiting[id(item)] = (reference, node)


def _drop_gone() -> None:
    while _gone:
        reference = _gone.popleft()
        if _waiting.get(reference.key, (None,))[0] is reference:
            del _waiting[reference.key]


class _Match:
    """Pairs objects with nodes, and finds the values that the objects have not got yet."""

    def __init__(self, root: object, tree: Node) -> None:
        self.gifts: list[_Gift] = []
        # Holds the objects, so that no id comes twice.
        self.pairs: dict[tuple[int, int], tuple[object, Node]] = {}
        ahead = [(root, tree)]
        while ahead:
            item, node = ahead.pop()
            if (id(item), id(node)) not in self.pairs:
                self.pairs[id(item), id(node)] = (item, node)
                parts = self._parts(item, node)
                ahead[:0] = [pair for pair in parts if pair[1].after_others]
                ahead.extend(pair for pair in reversed(parts) if not pair[1].after_others)

    def _parts(self, item: object, node: Node) -> list[tuple[object, Node]]:
        """Note the values of an object; return its parts that have state, with their nodes."""
        gift = _Gift(item)
        parts = []
        for name, part, below in node.pairs(item, _state_of(item, node.key)):
            if below is None:
                continue
            if not isinstance(part, _LEAF_TYPES):
                parts.append((part, below))
            elif below.has_value and not below.is_given_to(item):
                present = _plain(part)
                value = below.value_for(present)
                _check_fit(below.key, value, present)
                gift.values[name], gift.present[name] = value, present
                gift.nodes.append(below)
        if gift.values:
            self.gifts.append(gift)
        return parts


def _check_fit(key: str, stored: Leaf, present: Leaf) -> None:
    if isinstance(stored, np.ndarray) != isinstance(present, np.ndarray):
        raise ValueError(
            f"[checkpoint] arrays are restored into arrays, values into values: {key!r} is "
            f"{type(present).__name__}, stored is {type(stored).__name__}. Restore into objects "
            "like those that were saved."
        )
    if None not in (_kind_of_value(stored), _kind_of_value(present)) and (
        _kind_of_value(stored) != _kind_of_value(present)
    ):
        raise ValueError(
            f"[checkpoint] values are restored into values of their kind: {key!r} is "
            f"{present!r:.40}, stored is {stored!r:.40}. Restore into objects like those that were "
            "saved."
        )
    if (
        isinstance(stored, np.ndarray)
        and isinstance(present, np.ndarray)
        and (stored.shape, stored.dtype) != (present.shape, present.dtype)
    ):
        raise ValueError(
            f"[checkpoint] shapes and dtypes must match: {key!r} is {present.shape} "
            f"{present.dtype}, stored is {stored.shape} {stored.dtype}. Restore into objects like "
            "those that were saved."
        )


def _kind_of_value(value: Leaf) -> str | None:
    """Kinds can take each other's place; what is None is not known yet, and may be of any."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    return "str" if isinstance(value, str) else None


def _copied(leaf: Any) -> Leaf:
    """The leaf as it is now, whatever becomes of the object."""
    plain = _plain(leaf)
    return plain.copy() if isinstance(plain, np.ndarray) and plain.flags.writeable else plain


def _plain(leaf: Any) -> Leaf:
    """The leaf, NumPy's scalars as arrays without axes."""
    return np.asarray(leaf) if isinstance(leaf, np.generic) else leaf


def _state_of(item: object, key: str) -> Mapping[str, Any]:
    """The named parts of a trackable object or of a container of such objects."""
    if is_trackable(item):
        return item._checkpoint_state()
    if isinstance(item, (list, tuple)) and not is_one_value(item):
        parts = {str(index): part for index, part in enumerate(item)}
    elif isinstance(item, Mapping):
        parts = {str(name): part for name, part in item.items()}
    else:
        raise TypeError(
            f"[checkpoint] a part must be an array, a scalar, or have _checkpoint_state: got "
            f"{type(item).__name__} for {key!r}. Leave it out or store its state."
        )
    for name, part in parts.items():
        if isinstance(part, _LEAF_TYPES):
            raise TypeError(
                f"[checkpoint] lists and dicts must hold objects with _checkpoint_state: got "
                f"{type(part).__name__} for {_join(key, name)!r}. Store the values as an array."
            )
    return parts


def _release(item: object) -> None:
    """Let go of waited-for values once all of them are given."""
    node = _awaited(item)
    if node is not None and not node.unused():
        _let_wait(item, None)


def _join(key: str, name: str) -> str:
    if name == "":
        return key
    return f"{key}/{escape(name)}" if key else escape(name)
