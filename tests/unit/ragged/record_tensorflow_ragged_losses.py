"""Records TensorFlow's answers: `python record_tensorflow_ragged_losses.py`, with TensorFlow."""

import json
import os
import pathlib

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import ragged_losses as programs
import tensorflow as tf


def recorded(function, case):
    """Return the answer, or that there is none."""
    try:
        return programs.plain(tf.convert_to_tensor(function(tf, keras, case)))
    except (TypeError, ValueError, AttributeError, tf.errors.OpError):
        pass
    try:
        return programs.plain(function(tf, keras, case))
    except (TypeError, ValueError, AttributeError, tf.errors.OpError):
        return programs.REFUSED


def needs_nothing(name):
    """Return whether a metric is made without arguments."""
    try:
        getattr(keras.metrics, name)()
    except TypeError:
        return False
    return True


if __name__ == "__main__":
    losses = {case: recorded(programs.loss, case) for case in programs.losses(keras)}
    cases = [case for case in programs.metrics(keras) if needs_nothing(case.split()[0])]
    metrics = {case: recorded(programs.metric, case) for case in cases}
    parts = [f'"tensorflow": "{tf.__version__}", "keras": "{keras.__version__}"']
    for name, answers in (("losses", losses), ("metrics", metrics)):
        lines = [f'"{case}": {json.dumps(answer)}' for case, answer in answers.items()]
        parts.append(f'"{name}": {{\n' + ",\n".join(lines) + "\n}")
    path = pathlib.Path(__file__).with_name("tensorflow_ragged_losses.json")
    path.write_text("{" + ",\n".join(parts) + "}\n")
