"""Tables, sound and functions of Python in datasets: TensorFlow's values, resumed anywhere."""

from __future__ import annotations

import json
import pathlib

import pytest
from file_programs import programs, run, write_files
from pipeline_programs import plain

import samegrad as tf

RECORDED = json.loads(pathlib.Path(__file__).with_name("tensorflow_files.json").read_text())
PROGRAMS = programs()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    write_files(path)
    return str(path)


def test_every_recorded_program_is_there():
    assert set(RECORDED["results"]) == set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_tensorflow(name, folder):
    found = run(tf, PROGRAMS[name], folder)
    assert json.dumps(found) == json.dumps(RECORDED["results"][name])
