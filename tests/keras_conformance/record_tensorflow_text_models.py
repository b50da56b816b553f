"""Records the losses of TensorFlow for the programs of text_model_programs.py.

    python tests/keras_conformance/record_tensorflow_text_models.py   # with TensorFlow installed

The tests read the file, and need no TensorFlow.
"""

import json
import pathlib

import numpy as np
import tensorflow as tf
from text_model_programs import BATCH, PROGRAMS, built, losses

if __name__ == "__main__":
    found = {"tensorflow": tf.__version__}
    for name in PROGRAMS:
        model, given = built(tf, name)
        outputs = model.predict(given, batch_size=BATCH, verbose=0)
        found[name] = {
            "outputs": np.ravel(outputs).tolist(),
            "losses": losses(tf, model, given),
        }
    path = pathlib.Path(__file__).with_name("tensorflow_text_models.json")
    path.write_text(json.dumps(found, separators=(",", ":")) + "\n")
