"""Functions that programs must not take the place of, though they look as if they only computed."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad.data import _mapped
from samegrad.data._function_nodes import MapNode

Dataset = tf.data.Dataset


@pytest.fixture(autouse=True)
def early_programs(monkeypatch):
    monkeypatch.setattr(_mapped, "_FIRST_BY_PYTHON", 1)


def programs(data: Any) -> int:
    (node,) = [node for node in data._node.walk() if isinstance(node, MapNode)]
    return node.function.program_count


def numbers(data: Any) -> list[int]:
    return [int(element) for element in data]


def test_a_function_in_the_name_of_a_library_s_is_the_user_s():
    calls: list[int] = []

    def noted(function):
        @functools.wraps(function)
        def called(*args):
            calls.append(1)
            return function(*args)

        return called

    square = noted(tf.square)
    for function in (square, lambda x: square(x) + 0):
        calls.clear()
        data = Dataset.range(20).map(function)
        assert numbers(data) == [n * n for n in range(20)]
        assert len(calls) == 20
        assert programs(data) == 0


def test_what_functions_have_by_name_may_change():
    def scaled(x):
        return x * scaled.factor

    scaled.factor = 2
    data = Dataset.range(10).map(scaled)
    assert numbers(data) == [2 * n for n in range(10)]
    assert programs(data) == 1
    scaled.factor = 3
    assert numbers(data) == [3 * n for n in range(10)]


def test_a_property_is_no_attribute_of_the_object_itself():
    class Config:
        @property
        def factor(self):
            return self.number + 1

    config = Config()
    vars(config).update(factor=50, number=0)
    data = Dataset.range(10).map(lambda x: x * config.factor)
    assert numbers(data) == list(range(10))
    config.number = 1
    assert numbers(data) == [2 * n for n in range(10)]


def test_the_order_of_a_dict_may_change():
    factors = {"a": 1, "b": 2}

    def weighted(x):
        total = 0
        for name in factors:
            total = total * 10 + factors[name]
        return x * total

    data = Dataset.range(10).map(weighted)
    assert numbers(data) == [12 * n for n in range(10)]
    assert programs(data) == 1
    factors["a"] = factors.pop("a")
    assert numbers(data) == [21 * n for n in range(10)]


def in_a_list(kept):
    kept.__setitem__(0, kept[0] + 1)


def by_out(kept):
    np.add(kept, 1, out=kept)


def by_at(kept):
    np.add.at(kept, 0, 1)


@pytest.mark.parametrize("change", [in_a_list, by_out, by_at])
def test_changes_of_what_is_outside_are_made_once_for_each_element(change):
    kept: Any = [0] if change is in_a_list else np.array([0])

    def counted(x):
        change(kept)
        return x * 0 + kept[0]

    def written_out(x):
        np.add(kept, 1, out=kept)
        return x * 0 + kept[0]

    for function in (counted, written_out) if change is by_out else (counted,):
        kept[0] = 0
        assert numbers(Dataset.range(20).map(function)) == list(range(1, 21))
