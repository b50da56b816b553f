"""Records TensorFlow's answers: `python record_tensorflow_lists.py`, with TensorFlow installed."""

import json
import pathlib

import tensorflow as tf
from list_programs import PROGRAMS, answer

if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(answer(tf, name))}" for name in PROGRAMS]
    results = ",\n".join(lines)
    path = pathlib.Path(__file__).with_name("tensorflow_lists.json")
    path.write_text(f'{{"tensorflow": "{tf.__version__}", "results": {{\n{results}\n}}}}\n')
