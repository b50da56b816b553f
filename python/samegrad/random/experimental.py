"""Generators and splits of seeds, under the names of tf.random.experimental."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.random import fold_in as stateless_fold_in
from samegrad.random import split as stateless_split
from samegrad.random._index_shuffle import index_shuffle

_LATER = dict.fromkeys(
    ("Algorithm", "Generator", "create_rng_state", "get_global_generator", "set_global_generator"),
    "samegrad._autodiff.random_generator",
)
__all__ = [*_LATER, "index_shuffle", "stateless_fold_in", "stateless_split"]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__, _LATER)
guard(__name__)
