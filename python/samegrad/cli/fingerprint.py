"""`samegrad fingerprint DIR`: the fingerprint of a checkpoint."""

from __future__ import annotations

import samegrad as tf

BAD_INPUT = (ValueError,)  # there is no checkpoint, or a damaged one


def run(folder: str, info: bool, json: bool) -> int:
    """Print the fingerprint of a checkpoint.

    Args:
        folder: Path of a checkpoint, or of a folder of some, whose latest is read.
        info: Print versions, kernels and numeric policy as well.
        json: Print all of it as a JSON object.

    Returns:
        The exit code 0.

    Raises:
        ValueError: There is no checkpoint, or it is damaged.

    Example:
        >>> path = tf.train.Checkpoint(w=tf.Variable([1.0, 2.0])).write("printed")
        >>> run(path, info=False, json=False)
        sg1-14f8c76a5d2b9594bf186c729bbe4af3
        0
    """
    found = tf.fingerprint_info(folder)
    print(found.to_json() if json else found if info else found.fingerprint)
    return 0
