"""The mistakes of loss scaling: one row each, with the weights that they give to the examples.

A row predicts the effective weight of every example for a layout of the batch. The right weight is
w_i / W: the example's own weight (1 if none is given) by that of all examples of all replicas.
Of rows that predict the same, the first one is named. `OTHER` mistakes do not show in weights.
"""

from samegrad.testing._catalogue._examples import EXAMPLES
from samegrad.testing._catalogue._micro_batches import MICRO_BATCHES
from samegrad.testing._catalogue._nonweight import OTHER
from samegrad.testing._catalogue._replicas import REPLICAS
from samegrad.testing._catalogue._situation import Mistake, Predict, Situation

CATALOGUE: tuple[Mistake, ...] = (*REPLICAS, *EXAMPLES, *MICRO_BATCHES)

__all__ = ["CATALOGUE", "OTHER", "Mistake", "Predict", "Situation"]
