"""Object graphs of TensorFlow's checkpoints as trees of values, paired with our objects.

TensorFlow stores a graph of objects, whose edges are named after attributes, indices of lists and
keys of dicts. Our objects have other names inside, such as `layers/0/kernel`. So a node of this
graph looks for a part of an object under the names that TensorFlow's Keras gives it:

* attributes of the object, lists and dicts in them included, with or without their underscore;
* `layer_with_weights-N` and `layer-N` for the layers of a model of Keras 2;
* slots, which an optimizer of Keras 2 before 2.11 names by the variable that they belong to.

A checkpoint of TensorFlow 1 has names of variables alone. They are the paths of ours.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from samegrad.train._node import Leaf, Node
from samegrad.train._object_graph_proto import StoredObject, parse_graph
from samegrad.train._storage import corrupt
from samegrad.train._tensor_bundle import TensorBundle

GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"  # of the keys of an object's values

# Lists of what other attributes of their owner also hold.
_LISTS = {
    "_layers", "_metrics", "_non_trainable_variables", "_seed_generators", "_trainable_variables",
    "_variables",
}  # fmt: skip
# TensorFlow's Keras has the seeds of a layer and the metrics of a model in no checkpoint.
_UNTRACKED = ("metrics", "seeds")
_HELD = ("_trainable_variables", "variables")
_OWN_LISTS = ("layers", "variables", *_UNTRACKED)
# Lists of an optimizer of Keras 3, and the names of these slots in Keras 2 before 2.11.
_SLOTS = {
    "_accumulated_delta_vars": ("accum_var",),
    "_accumulated_grads": ("accum_grad",),
    "_accumulators": ("accumulator",),
    "_average_gradients": ("mg",),
    "_linears": ("linear",),
    "_m": ("m",),
    "_momentums": ("m", "momentum"),
    "_u": ("v",),
    "_velocities": ("v", "rms"),
    "_velocity_hats": ("vhat",),
    "momentums": ("momentum",),
}
_OLDER_NAMES = {"_iterations": "iter"}
# Variables of these optimizers that are Python numbers in Keras 3, and the defaults of absent ones.
_SETTINGS = {"beta_1": None, "beta_2": None, "decay": 0.0, "momentum": None, "rho": None}

Way = tuple[str, ...]


def read_graph(prefix: Path) -> Node:
    """Read a checkpoint of TensorFlow as a tree.

    Raises:
        CorruptCheckpointError: A file is missing, truncated or altered.
    """
    bundle = TensorBundle(prefix)
    if GRAPH_KEY not in bundle.entries:
        return _named_tree(bundle)
    try:
        content = bundle.read(GRAPH_KEY)
        if content.shape != () or not isinstance(content[()], bytes):
            raise ValueError(f"{GRAPH_KEY} has the shape {content.shape}")
        objects = parse_graph(memoryview(content[()]))
        missing = {o.key for o in objects if o.key is not None} - bundle.entries.keys()
        if missing:
            raise ValueError(f"no tensor has the key {min(missing)!r:.80}")
    except ValueError as error:
        raise corrupt(bundle.index, "hold a graph of objects", f"{error!s:.200}") from error
    return _linked(bundle, objects)


def _linked(bundle: TensorBundle, objects: Sequence[StoredObject]) -> Node:
    shared = _Pairs()
    nodes = [_GraphNode(o.key or "", shared) for o in objects]
    values: dict[str, Leaf] = {}
    for node, stored in zip(nodes, objects, strict=True):
        node.children = {name: nodes[index] for name, index in stored.children.items()}
        if stored.key is not None:
            if stored.key not in values:
                values[stored.key] = _value_of(bundle, stored.key)
            node.has_value, node.value = True, values[stored.key]
            node.key = stored.key.removesuffix(SUFFIX)
        for (name, variable), index in stored.slots.items():
            node.slots[name, id(nodes[variable])] = nodes[index]
            node.children[f".OPTIMIZER_SLOT/{name}/{variable}"] = nodes[index]
    return nodes[0]


def _named_tree(bundle: TensorBundle) -> Node:
    root = _NamedNode("")
    for key in sorted(bundle.entries):
        node = root.children[key] = Node(key)
        node.has_value, node.value = True, _value_of(bundle, key)
    return root


def _value_of(bundle: TensorBundle, key: str) -> Leaf:
    """Return a tensor; None for strings and the like, which no object of ours takes."""
    return bundle.read(key) if bundle.is_numeric(key) else None


class _Pairs:
    """Nodes by the variable that was found for them, which slots refer to."""

    def __init__(self) -> None:
        self._nodes: dict[int, tuple[weakref.ref[Any], Node]] = {}

    def note(self, part: Any, node: Node) -> None:
        """Note the node of a variable; other objects are of no interest."""
        if node.has_value and not _is_leaf(part):
            variable = _engines(part)
            self._nodes[id(variable)] = (weakref.ref(variable), node)

    def node_of(self, part: Any) -> Node | None:
        """Return the node of a variable."""
        variable = _engines(part)
        reference, node = self._nodes.get(id(variable), (None, None))
        return node if reference is not None and reference() is variable else None


def _engines(variable: Any) -> Any:
    """Return the engine's variable in one of Keras."""
    inner = getattr(variable, "_value", None)
    return variable if inner is None else inner


class _ReadNode(Node):
    """Node of a checkpoint of TensorFlow, whose counts are tensors."""

    __slots__ = ()

    def value_for(self, present: Leaf) -> Leaf:
        """Return the value: as an int, or in another integer dtype, where the object has that."""
        value = self.value
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu":
            return value
        if type(present) is int and value.shape == ():
            return int(value)
        if isinstance(present, np.ndarray) and present.dtype.kind in "iu":
            cast = value.astype(present.dtype)
            return cast if (cast == value).all() else value
        return value


class _GraphNode(_ReadNode):
    """Node of an object graph.

    Attributes:
        slots: Nodes of an optimizer's slots by their name and the id of the variable's node.
    """

    __slots__ = ("_shared", "slots")

    def __init__(self, key: str, shared: _Pairs) -> None:
        super().__init__(key)
        self.slots: dict[tuple[str, int], Node] = {}
        self._shared = shared

    @property
    def after_others(self) -> bool:
        """Tell if it is an optimizer, whose variables are to be found in the model first."""
        return bool(self.slots) or "_trainable_variables" in self.children

    def pairs(
        self, item: object, state: Mapping[str, Any]
    ) -> Iterator[tuple[str, Any, Node | None]]:
        """Yield name and value of each part of an object, and the node that TensorFlow has."""
        ways = _ways_of(item)
        for name, part in state.items():
            if name in _OWN_LISTS and name not in self.children and isinstance(part, list):
                yield name, part, _MembersNode(self, item, ways, name in _UNTRACKED)
                continue
            below = self if name == "" else self._find(item, ways, part) or self.children.get(name)
            if below is None and not hasattr(part, "shape") and _is_leaf(part):
                continue  # a number of Python, which TensorFlow does not store
            yield name, part, self._noted(part, below)
        yield from self._held(item)
        self._take_settings(item)

    def _held(self, item: object) -> Iterator[tuple[str, Any, Node | None]]:
        """Yield the variables of lists that belong to other objects.

        A model of Keras 3 does not store the layers in its lists, but its optimizer does; and what
        `Model.export` writes is one list.
        """
        for name in _HELD:
            stored, variables = self.children.get(name), getattr(item, name, None)
            if stored is None or not isinstance(variables, list):
                continue
            for index, variable in enumerate(variables):
                below = stored.children.get(str(index))
                if below is not None and self._shared.node_of(variable) in (None, below):
                    yield f"{name}/{index}", variable, self._noted(variable, below)

    def member(self, item: object, ways: Mapping[int, list[Way]], part: Any) -> Node | None:
        """Return the node of a layer, slot, metric or seed in a list that TensorFlow has not."""
        below = self._slot(item, ways, part) or self._find(item, ways, part)
        return self._noted(part, below or self._by_place(item, part))

    def _noted(self, part: Any, below: Node | None) -> Node | None:
        if below is not None:
            self._shared.note(part, below)
        return below

    def _find(self, item: object, ways: Mapping[int, list[Way]], part: Any) -> Node | None:
        for way in [*ways.get(id(part), ()), *_places_in_model(item, part)]:
            node: Node | None = self
            for name in way:
                node = node and (
                    node.children.get(name)
                    or node.children.get(name.lstrip("_"))
                    or node.children.get(_OLDER_NAMES.get(name, name))
                )
            if node is not None:
                return node
        return None

    def _slot(self, item: object, ways: Mapping[int, list[Way]], part: Any) -> Node | None:
        """Return the node of an optimizer's slot by its variable."""
        for attribute, *index in ways.get(id(part), ()) if self.slots else ():
            if index and attribute in _SLOTS:
                variables: Any = getattr(item, "_trainable_variables", ())
                node = self._shared.node_of(variables[int(index[0])])
                for name in _SLOTS[attribute]:
                    if (name, id(node)) in self.slots:
                        return self.slots[name, id(node)]
        return None

    def _by_place(self, item: Any, part: Any) -> Node | None:
        """Return the node of an optimizer's variable without an attribute, by its number."""
        variables: list[Any] = getattr(item, "_variables", None) or []
        stored = self.children.get("_variables")
        of_keras_3 = "_trainable_variables" in self.children  # others have no learning rate in it
        if stored is None or not of_keras_3 or len(stored.children) != len(variables):
            return None
        index = next((i for i, one in enumerate(variables) if one is part), None)
        return stored.children.get(str(index))

    def _take_settings(self, item: object) -> None:
        """Count settings of an optimizer as taken where they are those of the object."""
        for name, default in _SETTINGS.items() if "iter" in self.children else ():
            node, present = self.children.get(name), getattr(item, name, default)
            if node is None or not isinstance(present, int | float):
                continue
            if isinstance(node.value, np.ndarray) and (node.value == np.float32(present)).all():
                node.give_to(item)


class _MembersNode(_ReadNode):
    """Place of a list that our object has for what TensorFlow has under other names."""

    __slots__ = ("_item", "_optional", "_owner", "_ways")

    def __init__(
        self, owner: _GraphNode, item: object, ways: Mapping[int, list[Way]], optional: bool
    ) -> None:
        super().__init__(owner.key)
        self._owner, self._item, self._ways, self._optional = owner, item, ways, optional

    def pairs(
        self, item: object, state: Mapping[str, Any]
    ) -> Iterator[tuple[str, Any, Node | None]]:
        """Yield the members of the list and their nodes."""
        for name, part in state.items():
            below = self._owner.member(self._item, self._ways, part)
            if below is not None or not self._optional:
                yield name, part, below


class _NamedNode(Node):
    """Root of a checkpoint that has names of variables alone."""

    __slots__ = ()

    def pairs(
        self, item: object, state: Mapping[str, Any]
    ) -> Iterator[tuple[str, Any, Node | None]]:
        """Yield the variables that have one of these names, and all that may hold some."""
        for name, part in state.items():
            if isinstance(getattr(part, "name", None), str) and hasattr(part, "shape"):
                yield name, part, self._by_name(part)
            elif not _is_leaf(part):
                yield name, part, self

    def _by_name(self, variable: Any) -> Node | None:
        path = str(getattr(variable, "path", None) or variable.name).removesuffix(":0")
        below = self.children.get(path)
        return below or self.children.get(path.partition("/")[2])  # without the model's name


def _is_leaf(part: object) -> bool:
    return isinstance(part, np.ndarray | np.generic | bool | int | float | str | None)


def _ways_of(item: object) -> dict[int, list[Way]]:
    """Return the ways from an object to all that its attributes hold, by id."""
    ways: dict[int, list[Way]] = {}
    for name, value in getattr(item, "__dict__", {}).items():
        if name == "_functional" and value is not None:  # in a model of Keras 3 like `Sequential`
            for index, layer in enumerate(value._operations):
                ways.setdefault(id(layer), []).append((name, "_operations", str(index)))
        elif name not in _LISTS:
            _add_ways(ways, value, (name,))
    return ways


def _add_ways(ways: dict[int, list[Way]], value: object, way: Way) -> None:
    if isinstance(value, list | tuple) and len(way) < 8:
        for index, part in enumerate(value):
            _add_ways(ways, part, (*way, str(index)))
    elif isinstance(value, dict) and len(way) < 8:
        for key, part in value.items():
            _add_ways(ways, part, (*way, str(key)))
    elif hasattr(value, "_checkpoint_state"):
        ways.setdefault(id(value), []).append(way)


def _places_in_model(item: object, layer: object) -> list[Way]:
    """Return the names of a layer in a model of Keras 2."""
    layers = getattr(item, "layers", None)
    if not isinstance(layers, list) or not hasattr(item, "_layers"):
        return []
    index = next((i for i, one in enumerate(layers) if one is layer), None)
    if index is None:
        return []
    with_weights = [one for one in layers if one.weights]
    found = [(f"layer_with_weights-{i}",) for i, one in enumerate(with_weights) if one is layer]
    return [*found, (f"layer-{index}",)]


__all__ = ["GRAPH_KEY", "SUFFIX", "read_graph"]
