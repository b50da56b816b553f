"""Paths of a model's variables: through attributes and lists, as PyTorch names parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from keras.src.models.functional import Functional

from samegrad import keras
from samegrad._autodiff.variable import Variable
from samegrad._keras.layer import state_name
from samegrad.train.module import Module


@dataclass(frozen=True)
class Owned:
    """A layer or module and its own variables.

    Attributes:
        path: Path of the owner, "" for the model.
        suffix: End of the names of its arrays: "_l0" in recurrent layers.
        owner: The layer or module.
        variables: Its own variables by name, without those of its sublayers.
    """

    path: str
    suffix: str
    owner: Any
    variables: Mapping[str, Any]


def owners(model: Any) -> Iterator[Owned]:
    """Yield the model and its layers, each once, in the order in which they are held."""
    seen: set[int] = set()
    ahead = [("", "", model)]
    while ahead:
        path, suffix, owner = ahead.pop()
        if id(owner) not in seen:
            seen.add(id(owner))
            yield Owned(path, suffix, owner, _own_variables(owner))
            ahead += [
                (f"{path}.{name}" if path and name else path or name, end + suffix, inner)
                for name, end, inner in reversed([*_inner(owner)])
            ]


def _own_variables(owner: Any) -> dict[str, Any]:
    if isinstance(owner, Module):
        return {name: part for name, part in _members(vars(owner)) if isinstance(part, Variable)}
    variables = [*owner._trainable_variables, *owner._non_trainable_variables]
    own = {id(variable) for variable in variables}
    public = {
        name: part for name, part in vars(owner).items() if name[0] != "_" and id(part) in own
    }
    attributes = {id(part): name for name, part in public.items()}
    found: dict[str, Any] = {}
    for variable in variables:
        name = attributes.get(id(variable)) or state_name(variable, public | found)
        found[name] = variable
    return found


def _inner(owner: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield name, suffix and object of what a layer or module holds."""
    if isinstance(owner, keras.layers.Bidirectional):
        yield "", "", owner.forward_layer
        yield "", "_reverse", owner.backward_layer
    elif isinstance(owner, keras.layers.RNN):
        for index, cell in enumerate(getattr(owner.cell, "cells", [owner.cell])):
            yield "", f"_l{index}", cell
    elif isinstance(owner, keras.Sequential | Functional):
        yield from _numbered(owner.layers)
    else:
        found = [(name, part) for name, part in _members(vars(owner)) if _is_layer_or_module(part)]
        yield from ((name, "", part) for name, part in found)
        known = {id(part) for _, part in found}
        yield from _numbered(
            layer for layer in getattr(owner, "_layers", ()) if id(layer) not in known
        )


def _members(attributes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the values of public attributes, and the members of lists and dicts by their path."""
    for name, value in attributes.items():
        if name.startswith("_"):
            continue
        if isinstance(value, Mapping):
            inner = _members({str(key): part for key, part in value.items()})
        elif isinstance(value, list | tuple):
            inner = _members({str(index): part for index, part in enumerate(value)})
        else:
            yield name, value
            continue
        yield from ((f"{name}.{below}", part) for below, part in inner)


def _is_layer_or_module(value: Any) -> bool:
    return isinstance(value, keras.layers.Layer | Module)


def _numbered(layers: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield layers by name; names that Keras makes up are numbered within their model.

    Keras numbers them throughout the process, and stores the numbers with the model.
    """
    counts: dict[str, int] = {}
    for layer in layers:
        snake = _snake_case(type(layer).__name__)
        if re.fullmatch(rf"{snake}(_\d+)?", layer.name):
            number = counts[snake] = counts.get(snake, -1) + 1
            yield f"{snake}_{number}" if number else snake, "", layer
        else:
            yield layer.name, "", layer


def _snake_case(name: str) -> str:
    """Return the name that Keras derives from a class, without a number."""
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", re.sub(r"\W+", "", name))
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()


__all__ = ["Owned", "owners"]
