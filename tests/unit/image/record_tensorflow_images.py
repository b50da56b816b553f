"""Records what TensorFlow's tf.image gives for the programs of image_programs.py.

    python tests/unit/image/record_tensorflow_images.py   # with TensorFlow and Pillow installed

The tests read the file, and need no TensorFlow.
"""

import json
import pathlib

import tensorflow as tf
from image_programs import record

if __name__ == "__main__":
    path = pathlib.Path(__file__).with_name("tensorflow_images.json")
    path.write_text(json.dumps({"tensorflow": tf.__version__, **record(tf)}, indent=1) + "\n")
