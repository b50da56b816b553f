"""Transformations read as many elements ahead of the consumer as TensorFlow's do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from read_ahead_programs import PROGRAMS, read_ahead

import samegrad as tf
from samegrad.data._cursor import _LARGEST_BLOCK, PREFETCHED

RECORDED = json.loads(Path(__file__).with_name("tensorflow_read_ahead.json").read_text("utf-8"))
PARALLEL = [name for name in PROGRAMS if name.startswith("parallel")]
# Elements of a longer prefetch are handed over several at a time.
FEWER = {"prefetch_40": 9, "ragged_batch": 2}


def test_every_program_is_recorded():
    assert set(RECORDED) == set(PROGRAMS)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in PARALLEL])
def test_a_transformation_reads_as_far_ahead_as_in_tensorflow(name):
    expected, less = RECORDED[name], FEWER.get(name, 0)
    found = read_ahead(tf, PROGRAMS[name], [count - less for count in expected])
    assert len(found) == len(expected)
    assert all(b - less <= a <= b for a, b in zip(found, expected, strict=True)), found


@pytest.mark.parametrize("name", PARALLEL)
def test_parallel_calls_read_a_few_blocks_ahead(name):
    """TensorFlow reads as many elements ahead as there are calls; blocks are for their speed."""
    found, per_element = read_ahead(tf, PROGRAMS[name]), 3 if "batches" in name else 1
    most = per_element * _LARGEST_BLOCK * 2 * (PREFETCHED + 1)
    assert all(a <= b + most for a, b in zip(found, RECORDED[name], strict=True)), found
