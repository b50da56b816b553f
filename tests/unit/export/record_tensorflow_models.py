"""Record results of exported models in TensorFlow, and its definitions of the operations.

Run it in an environment with TensorFlow 2.21 and samegrad:

    python tests/unit/export/record_tensorflow_models.py
"""

from __future__ import annotations

import json
import tempfile
from typing import Any

from tensorflow_files import read_model
from tensorflow_programs import OPERATIONS, PROGRAMS, RESULTS

import samegrad as tf


def results_of(folder: str, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The outputs of a model for each call, as lists."""
    import tensorflow

    serve = tensorflow.saved_model.load(folder).signatures["serving_default"]
    return [
        {name: found.numpy().tolist()
         for name, found in serve(**{k: tensorflow.constant(v) for k, v in call.items()}).items()}
        for call in calls
    ]  # fmt: skip


def definition_of(name: str) -> dict[str, Any]:
    """Operands, results and attributes of an operation; dtypes are numbers or attributes."""
    from tensorflow.python.framework import op_def_registry

    definition = op_def_registry.get(name)

    def argument(one: Any) -> list[Any]:
        return [one.type_attr or one.type, one.number_attr]

    return {
        "inputs": [argument(one) for one in definition.input_arg],
        "outputs": [argument(one) for one in definition.output_arg],
        "attributes": {
            one.name: [one.type, one.HasField("default_value"), list(one.allowed_values.list.type)]
            for one in definition.attr
        },
    }


def main() -> None:
    """Write both files next to the tests."""
    from test_tensorflow_export import exported_operations  # before TensorFlow takes Keras

    results = {}
    for name, make in PROGRAMS.items():
        program = make()
        with tempfile.TemporaryDirectory() as folder:
            tf.export.to_tensorflow(program.function, folder, program.signature)
            results[name] = results_of(folder, program.calls)
            names = {node.op for node in read_model(folder).nodes}
            print(name, len(names), "operations")
    RESULTS.write_text(json.dumps(results) + "\n")
    lines = [f'"{name}": {json.dumps(definition_of(name))}' for name in exported_operations()]
    OPERATIONS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
