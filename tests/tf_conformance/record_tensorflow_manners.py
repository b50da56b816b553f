"""Records TensorFlow's answers: `python record_tensorflow_manners.py > tensorflow_manners.json`.

Run it where TensorFlow is installed; test_manners.py compares with the recorded file.
"""

import json

import manners_of_checkpoints  # noqa: F401
import manners_of_errors  # noqa: F401
import manners_of_functions  # noqa: F401
import manners_of_generators  # noqa: F401
import manners_of_keras  # noqa: F401
import manners_of_lengths  # noqa: F401
import manners_of_loops  # noqa: F401
import manners_of_losses  # noqa: F401
import manners_of_nn  # noqa: F401
import manners_of_numpy  # noqa: F401
import manners_of_records  # noqa: F401
import manners_of_shapes  # noqa: F401
import manners_of_sparse  # noqa: F401
import manners_of_strategies  # noqa: F401
import manners_of_tables  # noqa: F401
import manners_of_tapes  # noqa: F401
import manners_of_tensors  # noqa: F401
import manners_of_test_files  # noqa: F401
import manners_of_text  # noqa: F401
import manners_of_variables  # noqa: F401
import manners_of_version_1  # noqa: F401
from manner_programs import PROGRAMS, answer


def main() -> None:
    """Prints them."""
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    lines = (f"{json.dumps(n)}: {json.dumps(answer(tf, p))}" for n, p in sorted(PROGRAMS.items()))
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
