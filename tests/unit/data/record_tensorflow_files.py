"""Records what TensorFlow gives for the programs of file_programs.py.

    python tests/unit/data/record_tensorflow_files.py   # with TensorFlow installed

The tests read the file, and need no TensorFlow.
"""

import json
import pathlib
import tempfile

import tensorflow as tf
from file_programs import programs, run, write_files

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write_files(folder)
        found = {name: run(tf, program, folder) for name, program in programs().items()}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.items())
    path = pathlib.Path(__file__).with_name("tensorflow_files.json")
    path.write_text(f'{{"tensorflow": "{tf.__version__}",\n"results": {{\n{lines}\n}}}}\n')
