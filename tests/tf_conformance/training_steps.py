"""Compare three training steps with TensorFlow's: layers, losses and optimizers, equal weights.

    python tests/tf_conformance/training_steps.py record FILE [--only TEXT] [--time SECONDS]
    python tests/tf_conformance/training_steps.py compare FILE [--only TEXT] [--time SECONDS]

`record` runs where TensorFlow is installed, `compare` where samegrad is. Each case is a layer with
some arguments, a loss and an optimizer. Both libraries run it in float32 and in float64. A value is
reported if the float64 results differ, or if ours in float32 is more than four times as far from
float64 as TensorFlow's. The second is rounding, unless the first is reported as well.
"""

from __future__ import annotations

import argparse
import inspect
import os
import pathlib
import pickle
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "contract"), str(TESTS / "keras_conformance")]
STEPS = 3
# Values of arguments by their names; a layer that has one gets each value, all else as in its case.
VALUES: dict[str, list[Any]] = {
    "activation": ["gelu", "softmax", "selu", "mish", "hard_sigmoid", "softsign", "sparsemax"],
    "antialias": [True],
    "bias_regularizer": ["l1"],
    "center": [False],
    "crop_to_aspect_ratio": [True],
    "data_format": ["channels_first"],
    "depth_multiplier": [1, 3],
    "dilation_rate": [2],
    "epsilon": [0.1],
    "go_backwards": [True],
    "groups": [1, 2],
    "interpolation": ["nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"],
    "kernel_constraint": ["max_norm", "non_neg", "unit_norm"],
    "kernel_regularizer": ["L1L2", "OrthogonalRegularizer"],
    "keepdims": [True],
    "mask_zero": [True],
    "merge_mode": ["sum", "mul", "ave"],
    "normalize": [True],
    "output_mode": ["multi_hot", "one_hot"],
    "output_padding": [1],
    "pad_to_aspect_ratio": [True],
    "padding": ["valid", "same", "causal"],
    "pool_size": [3],
    "recurrent_activation": ["hard_sigmoid"],
    "reset_after": [False],
    "return_sequences": [True],
    "rms_scaling": [True],
    "scale": [False],
    "score_mode": ["concat"],
    "strides": [1, 2, 3],
    "unroll": [True],
    "use_bias": [False],
    "use_causal_mask": [True],
    "use_scale": [False],
    "value_range": [(0, 1)],
}
# Their results in training are drawn; they are called as in inference.
DRAWN = ("Random", "Dropout", "AlphaDropout", "Gaussian", "Spatial", "AugMix", "CutMix", "MixUp",
         "RandAugment", "Pipeline")  # fmt: skip
# Decided differences, which docs/differences.md explains; gradients of embeddings are made dense.
DECIDED = ("ScheduleFreeAdamW",)
# Losses that TensorFlow computes in float32 whatever the dtype is.
NARROW = ("CTC",)
CHOSEN = ("dropout", "recurrent_dropout")  # arguments that make layers draw


class Case(NamedTuple):
    """A layer with its arguments, a loss and an optimizer by their rows in the tables."""

    layer: str
    changed: dict[str, Any]
    loss: int
    optimizer: int
    variant: int

    def __str__(self) -> str:
        from training_cases import LOSSES, OPTIMIZERS

        changed = "".join(f", {name}={value}" for name, value in self.changed.items())
        loss, optimizer = LOSSES[self.loss], OPTIMIZERS[self.optimizer]
        return f"{self.layer}{changed} | {loss[0]} {loss[3]} | {optimizer[0]} {self.variant}"


def cases(tf: Any) -> list[Case]:
    """Return each layer with each value of its arguments, the losses and optimizers drawn."""
    from layer_cases import CASES, class_of, name_of
    from training_cases import LOSSES, OPTIMIZER_VARIANTS, OPTIMIZERS

    rng, found = np.random.default_rng(4), []
    for name, case in CASES.items():
        if "16 bits" in name or not hasattr(tf.keras.layers, name_of(name)):
            continue
        try:
            known = inspect.signature(class_of(name).__init__).parameters
        except (AttributeError, ValueError):
            continue
        changes: list[dict[str, Any]] = [{}]
        for argument, values in VALUES.items():
            if argument in known:
                changes += [{argument: v} for v in values if case.arguments.get(argument) != v]
        for changed in changes:
            sizes = len(LOSSES), len(OPTIMIZERS), len(OPTIMIZER_VARIANTS)
            found.append(Case(name, changed, *(int(rng.integers(size)) for size in sizes)))
    for loss in range(len(LOSSES)):
        for optimizer in range(len(OPTIMIZERS)):
            for variant in range(len(OPTIMIZER_VARIANTS)):
                if (loss + optimizer + variant) % 4 == 0:
                    found.append(Case("Dense", {}, loss, optimizer, variant))
    order = rng.permutation(len(found))
    drawn = [found[at] for at in order]
    return [case for case in drawn if OPTIMIZERS[case.optimizer][0] not in DECIDED]


def weights_of(variables: Any) -> None:
    """Draw the weights that are trained."""
    rng = np.random.default_rng(11)
    for variable in variables:
        drawn = 0.3 * rng.normal(size=tuple(variable.shape))
        variable.assign(drawn + 1.0 if variable.path.endswith("gamma") else drawn)


class Trained:
    """A layer, its inputs, a matrix behind it and the loss of their product.

    Args:
        tf: TensorFlow or samegrad.
        case: What is made.
    """

    def __init__(self, tf: Any, case: Case) -> None:
        from layer_cases import CASES, class_of
        from training_cases import HEADS, LOSSES, OPTIMIZER_VARIANTS, OPTIMIZERS, targets_for

        self.tf, self.wide, self.table = tf, tf.keras.config.floatx(), CASES[case.layer]
        arguments = {**self.table.made(), **case.changed}
        arguments |= {name: 0.0 for name in CHOSEN if name in arguments}
        self.layer = class_of(case.layer)(**arguments)
        self.options = dict(self.table.options)
        if self.layer._call_has_training_arg:
            self.options["training"] = not case.layer.startswith(DRAWN)
        self.inputs = [self.constant(x) for x in self.table.inputs]
        name, head, targets, arguments = LOSSES[case.loss]
        self.loss, self.head = getattr(tf.keras.losses, name)(**arguments), HEADS[head]
        self.words = 5 if targets == "words" else 1
        rows = len(self.table.inputs[0])
        self.target = self.constant(targets_for(targets, (rows,), np.random.default_rng(3)))
        name, arguments = OPTIMIZERS[case.optimizer]
        arguments = arguments | OPTIMIZER_VARIANTS[case.variant]
        self.optimizer = getattr(tf.keras.optimizers, name)(**arguments)
        self.outputs = self.called()
        drawn = np.random.default_rng(2).normal(size=(self.outputs.shape[1], 3 * self.words))
        self.matrix = tf.keras.Variable(drawn / len(drawn) ** 0.5, dtype=self.wide, name="matrix")
        self.variables = [*self.layer.trainable_variables, self.matrix]
        weights_of(self.layer.trainable_variables)

    def constant(self, array: Any) -> Any:
        """Return a tensor, whose floats have the width of the case."""
        return self.tf.constant(array.astype(self.wide) if array.dtype.kind == "f" else array)

    def called(self) -> Any:
        """Return all outputs of the layer as a matrix."""
        tf, found = self.tf, self.layer(*self.table.enter(*self.inputs), **self.options)
        parts = [tf.cast(part, self.wide) for part in tf.nest.flatten(found)]
        return tf.concat([tf.reshape(x, (len(self.inputs[0]), -1)) for x in parts], -1)

    def step(self) -> tuple[Any, list[Any], list[Any]]:
        """Return the loss, and the gradients of the variables and of the inputs."""
        tf, learned = self.tf, [x for x in self.inputs if x.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(learned)
            z = tf.matmul(self.called(), self.matrix.value)
            z = tf.reshape(z, (-1, self.words, 3)) if self.words > 1 else z
            value = self.loss(self.target, self.head(z))
            for penalty in self.layer.losses:
                value += penalty
        gradients = tape.gradient(value, [*self.variables, *learned])
        own = len(self.variables)
        dense = [None if g is None else tf.convert_to_tensor(g) for g in gradients[:own]]
        pairs = zip(dense, self.variables, strict=True)
        self.optimizer.apply_gradients([(g, v) for g, v in pairs if g is not None])
        return value, gradients[:own], gradients[own:]


def trained(tf: Any, case: Case) -> dict[str, Any]:
    """Return the losses, the gradients of the first step, and all variables at the end."""
    whole = Trained(tf, case)
    step = whole.step if tf.__name__ == "tensorflow" else tf.function(whole.step)
    figures: dict[str, Any] = {"outputs": whole.called()}
    for number in range(STEPS):
        figures[f"loss {number}"], gradients, slopes = step()
        if number == 0:
            figures |= {f"gradient {i}": g for i, g in enumerate(gradients)}
            figures |= {f"gradient of input {i}": g for i, g in enumerate(slopes)}
    figures |= {f"variable {i} {v.name}": v for i, v in enumerate(whole.layer.variables)}
    figures["matrix"] = whole.matrix
    return {
        name: np.asarray(tf.convert_to_tensor(value))
        for name, value in figures.items()
        if value is not None and "seed_generator" not in name
    }


def answers(tf: Any, case: Case) -> dict[str, Any]:
    """Return the figures in float32 and float64, or the text of an error in their place."""
    found: dict[str, Any] = {}
    for wide in ("float32", "float64"):
        tf.keras.backend.clear_session()
        tf.keras.config.set_floatx(wide)
        tf.keras.config.set_dtype_policy(wide)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[wide] = trained(tf, case)
        except Exception as error:
            found[wide] = f"{type(error).__name__}: {str(error)[:300]}"
    return found


def distance(found: Any, judge: Any) -> float:
    """Return the largest difference as a part of the largest number."""
    if found.shape != judge.shape:
        return np.inf
    wide = found.astype("float64")
    if not np.array_equal(np.isfinite(wide), np.isfinite(judge)):
        return np.inf
    known = np.isfinite(judge)
    if not known.any():
        return 0.0
    scale = max(float(np.abs(judge[known]).max()), 1e-6)
    return float(np.abs(wide - judge)[known].max()) / scale


def differences(case: str, ours: dict[str, Any], theirs: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each figure that is not TensorFlow's."""
    limit = 1e-6 if any(name in case for name in NARROW) else 1e-7  # of constants in float32
    for wide in ("float64", "float32"):
        mine, other = ours[wide], theirs[wide]
        if isinstance(mine, str) or isinstance(other, str):
            if isinstance(mine, str) != isinstance(other, str):
                yield f"{wide}: ours {str(mine)[:200]!r}, TensorFlow {str(other)[:200]!r}"
            continue
        if mine.keys() != other.keys():
            yield f"{wide}: names {sorted(mine.keys() ^ other.keys())}"
        judge = theirs["float64"] if isinstance(theirs["float64"], dict) else {}
        for name in mine.keys() & judge.keys() & other.keys():
            far, theirs_far = distance(mine[name], judge[name]), distance(other[name], judge[name])
            if wide == "float64" and far > limit:
                yield f"float64: {name} differs by {far:.1e}"
            if wide == "float32" and far > 4 * theirs_far + 1e-6:
                yield f"float32: {name} differs by {far:.1e} of float64, theirs {theirs_far:.1e}"


def main() -> int:
    """Record or compare; return 1 if there are differences."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--only", default="", help="text in the name of a case")
    parser.add_argument("--time", type=float, default=1e9, help="seconds after which it ends")
    told = parser.parse_args()
    end = time.monotonic() + told.time
    if told.action == "record":
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        import tensorflow as tf

        sys.modules["samegrad"] = tf  # the tables of cases import samegrad
        answered: dict[str, Any] = {}
        for case in cases(tf):
            if told.only in str(case) and time.monotonic() < end:
                answered[str(case)] = answers(tf, case)
                told.file.write_bytes(pickle.dumps(answered))
        print(f"{len(answered)} cases recorded")
        return 0
    import samegrad as tf

    recorded = pickle.loads(told.file.read_bytes())
    chosen = [case for case in cases(tf) if told.only in str(case) and str(case) in recorded]
    wrong = tried = 0
    for case in chosen:
        if time.monotonic() >= end:
            break
        tried += 1
        lines = list(differences(str(case), answers(tf, case), recorded[str(case)]))
        wrong += bool(lines)
        print("\n    ".join([str(case), *lines]) if lines else "", end="\n" if lines else "")
    print(f"{wrong} of {tried} cases differ")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
