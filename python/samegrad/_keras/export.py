"""Export to SavedModel, which samegrad does not write."""

from __future__ import annotations

from typing import Any


class ExportArchive:
    """Refuses: a SavedModel holds a graph of TensorFlow.

    Raises:
        NotImplementedError: Always.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "[export] samegrad writes no SavedModel: use model.save('model.keras') and load it "
            "with tf.keras.models.load_model."
        )
