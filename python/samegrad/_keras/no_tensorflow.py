"""Stands in for TensorFlow, where Keras would import it: it is not there."""

raise ImportError(
    "[samegrad.keras] this part of Keras needs TensorFlow, which samegrad never imports; use what "
    "does without it (samegrad.data for datasets, NumPy for text)."
)
