"""Every layer through a saved model: results, gradients and changed weights keep their bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from layer_cases import CASES, class_of

import samegrad as tf


class Saved(tf.Module):
    """A layer with a function for inference and one for training."""

    def __init__(self, name: str) -> None:
        super().__init__()
        case = CASES[name]
        tf.keras.utils.set_random_seed(5)
        self.layer = class_of(name)(**case.made())
        self.given = [tf.constant(x) for x in case.inputs]
        self.layer(*case.enter(*self.given), **case.options)
        modes = (False, True) if self.layer._call_has_training_arg else (None,)

        def called(mode: bool | None) -> Any:
            options = {} if mode is None else {"training": mode}

            def call(*parts: Any) -> Any:
                found = self.layer(*case.enter(*parts), **case.options, **options)
                return tuple(tf.nest.flatten(found))

            specs = [tf.TensorSpec([None, *x.shape[1:]], x.dtype) for x in case.inputs]
            return tf.function(call, input_signature=specs)

        self.calls = [called(mode) for mode in modes]
        del self.given


def values(model: Any, name: str) -> list[bytes]:
    """The bits of results, of gradients, and of the weights after the calls."""
    given = [tf.constant(x) for x in CASES[name].inputs]
    found: list[Any] = []
    for call in model.calls:
        tf.random.set_seed(2)
        with tf.GradientTape() as tape:
            results = call(*given)
            floats = [r for r in results if tf.as_dtype(r.dtype).is_floating]
            sums = [tf.reduce_sum(tf.cast(r, "float32") ** 2) for r in floats]
            total = tf.add_n([tf.constant(0.0), *sums])
        weights = model.layer.trainable_variables
        gradients = tape.gradient(total, [getattr(w, "_value", w) for w in weights])
        found += [*results, *(g for g in gradients if g is not None)]
    return [part.numpy().tobytes() for part in (*found, *model.layer.variables)]


# Python's own random numbers choose the operations of each trace.
DRAWN_BY_PYTHON = {"AugMix"}


@pytest.mark.parametrize("name", [name for name in CASES if name not in DRAWN_BY_PYTHON])
def test_a_saved_layer_keeps_its_bits(name: str, tmp_path: Path) -> None:
    model = Saved(name)
    tf.saved_model.save(model, tmp_path / "m")
    loaded = tf.saved_model.load(tmp_path / "m")
    assert values(loaded, name) == values(model, name)
