"""Types of leaves: their values hold nothing that Keras would traverse."""

from __future__ import annotations

from samegrad._tensor.conversion import Tensor

LEAVES = frozenset({Tensor, float, int, str, bool, type(None)})
