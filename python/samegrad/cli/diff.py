"""`samegrad diff A B`: compare two recorded runs."""

from __future__ import annotations

import samegrad as tf

EXIT_SAME, EXIT_DIFFERENT = 0, 1
BAD_INPUT = (ValueError,)  # a damaged record


def run(a: str, b: str, json: bool = False, incomplete: bool = False) -> int:
    """Print the first step that differs, and the cause.

    Args:
        a: Path of a record.
        b: Path of the other record.
        json: Print JSON.
        incomplete: Accept files whose last line was cut off.

    Returns:
        0 all steps of both are equal, 1 some differ.

    Raises:
        ValueError: A file is not a record, is damaged, or was cut off.
        OSError: A file cannot be read.
    """
    found = tf.diff_runs(a, b, incomplete=incomplete)
    print(found.to_json() if json else found)
    return EXIT_SAME if found.same else EXIT_DIFFERENT
