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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

Leaf: TypeAlias = "npt.NDArray[Any] | bool | int | float | str | None"
Keyed: TypeAlias = "dict[str, Leaf]"

_PENDING = "_pending_restore"
_LEAF_TYPES = (np.ndarray, np.generic, bool, int, float, str, type(None))


@runtime_checkable
class Trackable(Protocol):
    """What an object must offer to be stored in checkpoints.

    Example:
        >>> class Counter:
        ...     def __init__(self):
        ...         self.count = 0
        ...     def _checkpoint_state(self):
        ...         return {"count": self.count}
        ...     def _restore_state(self, values):
        ...         self.count = values["count"]
        >>> isinstance(Counter(), Trackable)
        True
    """

    def _checkpoint_state(self) -> Mapping[str, Any]:
        """Names and parts. Arrays may share memory with the object: they are written at once.

        Objects that hang together share them: a part reached by several ways is stored once.
        """
        ...

    def _restore_state(self, values: Mapping[str, Leaf]) -> None:
        """Takes some or all of its own leaves, by the names of `_checkpoint_state`.

        Shapes and dtypes of arrays are those of the present state: this is checked before. Must
        write the storage directly even while a function is being traced, and copy the arrays.
        """
        ...


@dataclass(eq=False)
class Node:
    """One name of a restored checkpoint: its value, and the names below it.

    Attributes:
        key: The way from the root.
        value: The stored leaf, if `has_value`.
        children: The nodes below by name. An object stored once but reached by several ways is
            one node with several parents.
    """

    key: str
    has_value: bool = False
    value: Leaf = None
    children: dict[str, Node] = field(default_factory=dict)
    # Weak references, so that the variables of a failed trace can go; the next ones then get the
    # value again. Several, because what was one object may be restored into two.
    _receivers: list[Callable[[], object | None]] = field(default_factory=list)

    def child(self, name: str) -> Node:
        """The node below, made if absent."""
        if name not in self.children:
            self.children[name] = Node(f"{self.key}/{name}" if self.key else name)
        return self.children[name]

    def is_given_to(self, receiver: object) -> bool:
        """Whether this object has got the value already."""
        return any(reference() is receiver for reference in self._receivers)

    def give_to(self, receiver: object) -> None:
        """Notes who has got the value."""
        try:
            self._receivers.append(weakref.ref(receiver))
        except TypeError:  # its class has no room for weak references
            self._receivers.append(lambda: receiver)

    def unused(self) -> list[str]:
        """Keys at and below this node whose value nobody has got."""
        return [node.key for node in self._walk({}) if node.has_value and not node._is_given()]

    def used(self) -> list[str]:
        """Keys at and below this node whose value some object has got."""
        return [node.key for node in self._walk({}) if node.has_value and node._is_given()]

    def _is_given(self) -> bool:
        return any(reference() is not None for reference in self._receivers)

    def _walk(self, seen: dict[int, Node]) -> Iterator[Node]:
        if id(self) not in seen:
            seen[id(self)] = self
            yield self
            for child in self.children.values():
                yield from child._walk(seen)


@dataclass
class _Gift:
    """Values about to be given to an object."""

    receiver: Any  # Trackable: containers have no leaves
    values: dict[str, Leaf]
    nodes: list[Node]


def collect(root: Trackable) -> tuple[Keyed, dict[str, str]]:
    """Walks all objects and takes their leaves.

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

    def visit(item: object, key: str) -> None:
        if isinstance(item, Trackable):  # a container is part of its owner, not a thing to share
            if id(item) in seen:
                aliases[key] = seen[id(item)][0]
                return
            seen[id(item)] = (key, item)
            _release(item)
        for name, part in _state_of(item, key).items():
            if isinstance(part, _LEAF_TYPES):
                leaves[_join(key, name)] = _plain(part)
            else:
                visit(part, _join(key, name))

    visit(root, "")
    return leaves, aliases


def build_tree(leaves: Mapping[str, Leaf], aliases: Mapping[str, str]) -> Node:
    """The nodes of a stored checkpoint, from what `collect` returned."""
    root = Node("")
    for key, leaf in leaves.items():
        node = _node_at(root, key)
        node.has_value, node.value = True, leaf
    for alias, key in aliases.items():
        parent, _, name = alias.rpartition("/")
        _node_at(root, parent).children[name] = _node_at(root, key)
    return root


def restore_tree(root: Trackable, tree: Node) -> None:
    """Gives the values of a checkpoint to the objects that exist, and keeps the rest for later.

    Raises:
        ValueError: A stored value does not fit its object. Nothing has been changed then.
    """
    _give(root, tree)


def restore_pending(owner: Trackable) -> None:
    """Gives waiting values to the parts that an object has got since it was restored.

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
    node: Node | None = getattr(owner, _PENDING, None)
    if node is not None:
        _give(owner, node)


def missing_keys(root: Trackable, tree: Node) -> list[str]:
    """Keys of existing leaves for which a checkpoint has no value."""
    leaves, aliases = collect(root)
    present = build_tree(leaves, aliases)
    missing = []

    def compare(node: Node, stored: Node | None, seen: set[tuple[int, int]]) -> None:
        if (id(node), id(stored)) in seen:
            return
        seen.add((id(node), id(stored)))
        if node.has_value and not (stored and stored.has_value):
            missing.append(node.key)
        for name, child in node.children.items():
            compare(child, stored.children.get(name) if stored else None, seen)

    compare(present, tree, set())
    return missing


def _give(root: Trackable, tree: Node) -> None:
    """Gives values to the objects from `root` on, and lets the others wait at these objects."""
    match = _Match()
    match.visit(root, tree)
    for gift in match.gifts:
        for node in gift.nodes:
            node.give_to(gift.receiver)
    for item, node in match.pairs.values():
        # Bypasses classes that watch their attributes; an object without room cannot wait.
        with contextlib.suppress(AttributeError, TypeError):
            object.__setattr__(item, _PENDING, node if item is root or node.unused() else None)
    for gift in match.gifts:
        gift.receiver._restore_state(gift.values)


class _Match:
    """Pairs objects with nodes, and finds the values that the objects have not got yet."""

    def __init__(self) -> None:
        self.gifts: list[_Gift] = []
        # Holds the objects, so that no id comes twice.
        self.pairs: dict[tuple[int, int], tuple[object, Node]] = {}

    def visit(self, item: object, node: Node) -> None:
        if (id(item), id(node)) in self.pairs:
            return
        self.pairs[id(item), id(node)] = (item, node)
        gift = _Gift(item, {}, [])
        for name, part in _state_of(item, node.key).items():
            below = node if name == "" else node.children.get(_escape(name))
            if below is None:
                continue
            if not isinstance(part, _LEAF_TYPES):
                self.visit(part, below)
            elif below.has_value and not below.is_given_to(item):
                _check_fit(below, _plain(part))
                gift.values[name] = below.value
                gift.nodes.append(below)
        if gift.values:
            self.gifts.append(gift)


def _check_fit(node: Node, present: Leaf) -> None:
    stored = node.value
    if isinstance(stored, np.ndarray) != isinstance(present, np.ndarray):
        raise ValueError(
            f"[checkpoint] arrays are restored into arrays, values into values: {node.key!r} is "
            f"{type(present).__name__}, stored is {type(stored).__name__}. Restore into objects "
            "like those that were saved."
        )
    if (
        isinstance(stored, np.ndarray)
        and isinstance(present, np.ndarray)
        and (stored.shape, stored.dtype) != (present.shape, present.dtype)
    ):
        raise ValueError(
            f"[checkpoint] shapes and dtypes must match: {node.key!r} is {present.shape} "
            f"{present.dtype}, stored is {stored.shape} {stored.dtype}. Restore into objects like "
            "those that were saved."
        )


def _plain(leaf: Any) -> Leaf:
    """The leaf, NumPy's scalars as arrays without axes."""
    return np.asarray(leaf) if isinstance(leaf, np.generic) else leaf


def _state_of(item: object, key: str) -> Mapping[str, Any]:
    """The named parts of a trackable object or of a container of such objects."""
    if isinstance(item, Trackable):
        return item._checkpoint_state()
    if isinstance(item, (list, tuple)):
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
    """Lets go of waited-for values once all of them are given."""
    node: Node | None = getattr(item, _PENDING, None)
    if node is not None and not node.unused():
        object.__setattr__(item, _PENDING, None)


def _join(key: str, name: str) -> str:
    if name == "":
        return key
    return f"{key}/{_escape(name)}" if key else _escape(name)


def _escape(name: str) -> str:
    """The name without the character that parts keys."""
    return name.replace("%", "%25").replace("/", "%2F")


def _node_at(root: Node, key: str) -> Node:
    for name in key.split("/") if key else ():
        root = root.child(name)
    return root
