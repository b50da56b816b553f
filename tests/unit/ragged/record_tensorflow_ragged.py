"""Records TensorFlow's answers: `python record_tensorflow_ragged.py`, with TensorFlow installed."""

import json
import pathlib

import tensorflow as tf
from ragged_programs import LAYERS, PROGRAMS, SLOPES, answer, encoded, slope

if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(answer(tf, name))}" for name in PROGRAMS]
    lines += [f"{json.dumps(f'slope of {name}')}: {slope(tf, name)}" for name in SLOPES]
    lines += [f"{json.dumps(' '.join(one))}: {json.dumps(encoded(tf, *one))}" for one in LAYERS]
    results = ",\n".join(lines)
    path = pathlib.Path(__file__).with_name("tensorflow_ragged.json")
    path.write_text(f'{{"tensorflow": "{tf.__version__}", "results": {{\n{results}\n}}}}\n')
