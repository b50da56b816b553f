"""Names that a stage's function reads are what they were where the stage was made."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import samegrad as tf

Dataset = tf.data.Dataset
SHIFT = 1


def numbers(data: Any) -> list[Any]:
    return [element.numpy().tolist() for element in data]


def shifted(x):
    return x + SHIFT


def test_a_loop_over_functions_maps_each_of_them_once():
    data = Dataset.range(12)
    for change in (lambda x: x + 1, lambda x: x * 10, lambda x: x - 3):
        data = data.map(lambda x: change(x))  # noqa: B023
    assert numbers(data) == [(n + 1) * 10 - 3 for n in range(12)]


def test_so_does_one_whose_functions_are_inside_of_others():
    data = Dataset.range(12)
    for change in (lambda x: x + 1, lambda x: x * 10):
        data = data.map(
            lambda x: tf.cond(x % 2 == 0, lambda: change(x), lambda: x)  # noqa: B023
        )
    assert numbers(data) == [n + 1 if n % 2 == 0 else n for n in range(12)]


def test_all_stages_of_a_loop():
    kept: Any = Dataset.range(30)
    opened: Any = Dataset.range(4)
    dealt, sums, until, grouped = [], [], [], []
    for k in (2, 3):
        kept = kept.filter(lambda x: x % k != 0)  # noqa: B023
        opened = opened.flat_map(lambda x: Dataset.range(k))  # noqa: B023
        dealt.append(Dataset.range(2).interleave(lambda x: Dataset.range(k)))  # noqa: B023
        sums.append(Dataset.range(3).scan(np.int64(0), lambda s, x: (s + k, s)))  # noqa: B023
        until.append(Dataset.range(9).take_while(lambda x: x < k))  # noqa: B023
        grouped.append(
            Dataset.range(6).group_by_window(
                lambda x: x % k,  # noqa: B023
                lambda key, window: window.batch(k),  # noqa: B023
                window_size=6,
            )
        )
    assert numbers(kept) == [n for n in range(30) if n % 2 and n % 3]
    assert numbers(opened) == [0, 1, 2] * 8
    assert [len(numbers(data)) for data in dealt] == [4, 6]
    assert list(map(numbers, sums)) == [[0, 2, 4], [0, 3, 6]]
    assert list(map(numbers, until)) == [[0, 1], [0, 1, 2]]
    assert list(map(numbers, grouped)) == [
        [[0, 2], [4], [1, 3], [5]], [[0, 3], [1, 4], [2, 5]]
    ]  # fmt: skip


def test_names_of_the_module_and_of_functions_around(monkeypatch):
    factor = 2

    class Source:
        def made(self, x):
            return shifted(x) * factor

    functions = (
        lambda x: shifted(x) * factor, functools.partial(lambda y, x: shifted(x) * factor, 0),
        Source().made,
    )  # fmt: skip
    data = [Dataset.range(20).map(function) for function in functions]
    expected = [(n + 1) * 2 for n in range(20)]
    assert [numbers(each) for each in data] == [expected] * 3
    factor = 5
    monkeypatch.setattr(f"{__name__}.SHIFT", 7)
    assert [numbers(each) for each in data] == [expected] * 3
    later = Dataset.range(20).map(functions[0])
    assert numbers(later) == [(n + 7) * 5 for n in range(20)]


def test_what_python_is_called_for_reads_names_with_each_element():
    factor = 2
    data = Dataset.range(5).map(
        lambda x: tf.numpy_function(lambda value: value * factor, [x], tf.int64)
    )
    assert numbers(data) == [0, 2, 4, 6, 8]
    factor = 3
    assert numbers(data) == [0, 3, 6, 9, 12]


def test_names_that_the_function_changes_and_those_to_come():
    count = 0

    def counted(x):
        nonlocal count
        count += 1
        return x + later

    data = Dataset.range(5).map(counted)
    later = 10
    assert numbers(data) == [10, 11, 12, 13, 14]
    assert count == 5


def test_functions_that_call_themselves_and_keep_notes():
    def power(x, n):
        power.calls += 1
        return x if n <= 1 else x * power(x, n - 1)

    power.calls = 0
    assert numbers(Dataset.range(4).map(lambda x: power(x, 3))) == [0, 1, 8, 27]
    assert power.calls == 12
