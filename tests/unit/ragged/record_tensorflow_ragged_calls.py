"""Records TensorFlow's answers: `python record_tensorflow_ragged_calls.py`, with TensorFlow."""

import json
import pathlib

import tensorflow as tf
from ragged_calls import CALLS, SLOPES, answer, slope

if __name__ == "__main__":
    lines = [f"{json.dumps(call)}: {json.dumps(answer(tf, call))}" for call in CALLS]
    lines += [f"{json.dumps(f'slope of {call}')}: {slope(tf, call)}" for call in SLOPES]
    results = ",\n".join(lines)
    path = pathlib.Path(__file__).with_name("tensorflow_ragged_calls.json")
    path.write_text(f'{{"tensorflow": "{tf.__version__}", "results": {{\n{results}\n}}}}\n')
