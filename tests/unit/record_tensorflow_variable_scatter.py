"""Records what TensorFlow's variables are after the changes of variable_scatter_cases.py.

    python tests/unit/record_tensorflow_variable_scatter.py   # with TensorFlow installed

The tests read the file, and need no TensorFlow.
"""

import json
import pathlib

import tensorflow as tf
from variable_scatter_cases import CASES, key, result

if __name__ == "__main__":
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)
    tf.autograph.set_verbosity(0)
    strategies = {
        n: tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(n)]) for n in (1, 2, 3)
    }
    found = {key(*case): result(tf, strategies[case[2]], case) for case in CASES}
    text = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items())
    path = pathlib.Path(__file__).with_name("tensorflow_variable_scatter.json")
    path.write_text(f'{{"tensorflow": {json.dumps(tf.__version__)}, "results": {{\n{text}\n}}}}\n')
