"""Differences from TensorFlow: decided (docs/differences.md gives the reasons), or not yet mended.

What it does not answer yet it refuses: the text is part of the error.
"""

from typing import Any

SUM = {"a": ["tensor", "float32", [], 2.0]}
OURS: dict[str, Any] = {
    # All wrong tensors are a TypeError; TensorFlow has two classes.
    "a_concrete_function_refuses_other_tensors": ["list", [True, True, True]],
    "input_contexts_are_shown": (
        "InputContext(num_input_pipelines=2, input_pipeline_id=1, num_replicas_in_sync=4)"
    ),
    "names_of_dtypes": ["list", ["float32", "samegrad.float32", "float32", True, True, True]],
    "shapes_with_unknown_sizes": [
        "list",
        ["(None, 2)", "(None, 2)", ["list", [None, ["int", 2]]], None, "(3,)",
         ["list", [["int", 2]]]],
    ],
    # A number of Python has no dtype of its own.
    "a_number_that_a_loop_makes_another_dtype": [
        "list",
        [["tensor", "float32", [], 1.5], ["tensor", "float32", [], 0.0]],
    ],
    # Python runs a function that reads data, in each call.
    "a_function_of_datasets_is_traced_once": ["list", [["int", 4], ["int", 4]]],
    # The weights of a frozen layer are not trainable variables.
    "a_tape_watches_the_weights_of_a_model": [
        "list",
        [["list", [["tuple", [["int", 2], ["int", 1]]], ["tuple", [["int", 1]]]]], ["int", 2]],
    ],
    # It reads the momentum before its update, where TensorFlow reads it afterwards.
    "steps_of_schedule_free_adamw": [
        "list",
        [["array", "float64", [1], [0.9]], ["array", "float64", [1], [0.8262]],
         ["array", "float64", [1], [0.8431]]],
    ],
    # On logical CPUs TensorFlow's all-reduce fails.
    "sums_of_all_replicas_in_a_dict": ["tuple", [SUM, SUM]],
}  # fmt: skip
LACKING = {
    "parts_differ_off_the_first_axis": "may differ in the number of examples (axis 0) only",
    "tensors_are_seen_as_memory": "a bytes-like object is required",
}
