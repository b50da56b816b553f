"""Records TensorFlow's bytes of tensors: `python record_serialized_tensors.py`, with TensorFlow."""

import json
import pathlib

import tensorflow as tf
from serialized_tensors import LISTED, VALUES


def listed(value):
    """The message with a list of the numbers."""
    proto = tf.make_tensor_proto(value)
    array = tf.make_ndarray(proto)
    if proto.tensor_content:
        names = {"f": "float_val", "i": "int_val", "u": "int_val"}
        name = {"float64": "double_val", "int64": "int64_val"}.get(array.dtype.name)
        proto.ClearField("tensor_content")
        getattr(proto, name or names[array.dtype.kind]).extend(array.ravel().tolist())
    return proto.SerializeToString().hex()


if __name__ == "__main__":
    found = {name: tf.io.serialize_tensor(value).numpy().hex() for name, value in VALUES.items()}
    lists = {name: listed(value) for name, value in LISTED.items()}
    made = {"tensorflow": tf.__version__, "serialized": found, "listed": lists}
    path = pathlib.Path(__file__).with_name("serialized_tensors.json")
    path.write_text(json.dumps(made, indent=1) + "\n")
