"""What holds nothing that Keras would look into, known by its type alone."""

from __future__ import annotations

from samegrad._tensor.conversion import Tensor

LEAVES = frozenset({Tensor, float, int, str, bool, type(None)})
