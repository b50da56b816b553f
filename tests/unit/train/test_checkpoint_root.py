"""A checkpoint of a root: its parts are stored under their own names, as in TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad.train import Checkpoint, _storage

X = np.ones((2, 4), "float32")


class Parts:
    """Two variables, as a module of TensorFlow has them."""

    def __init__(self, v: float = 1.0, w: Any = (1.0, 2.0)) -> None:
        self.v, self.w = tf.Variable(v), tf.Variable(list(w))

    def _checkpoint_state(self) -> Mapping[str, Any]:
        return dict(vars(self))

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        raise AssertionError


def model() -> Any:
    made = tf.keras.Sequential([tf.keras.layers.Dense(3), tf.keras.layers.Dense(1)])
    made.compile("adam", "mse")
    return made


def stored(path: str) -> list[str]:
    arrays, manifest = _storage.load(path)
    return sorted([*arrays, *manifest["values"]])


def test_names_are_those_of_tensorflow(tmp_path: Path) -> None:
    # TensorFlow 2.21 lists extra, save_counter, v and w of such a module.
    checkpoint = Checkpoint(Parts(), extra=tf.Variable(5.0))
    assert stored(checkpoint.save(tmp_path / "ckpt")) == ["extra", "save_counter", "v", "w"]
    assert float(checkpoint.extra) == 5.0 and checkpoint.save_counter == 1


@pytest.mark.parametrize("count", [0, 1])
def test_a_root_is_restored_with_what_has_names(tmp_path: Path, count: int) -> None:
    extra = {"extra": tf.Variable(5.0), "step": 3} if count else {}
    path = Checkpoint(root=Parts(7.0), **extra).save(tmp_path / "ckpt")
    other = Parts(0.0, (0.0, 0.0))
    again = {"extra": tf.Variable(0.0), "step": 0} if count else {}
    checkpoint = Checkpoint(other, **again)
    checkpoint.restore(path).assert_consumed()
    assert float(other.v) == 7.0 and other.w.numpy().tolist() == [1.0, 2.0]
    assert not count or (float(checkpoint.extra), checkpoint.step) == (5.0, 3)


def test_the_parts_may_be_named_one_by_one(tmp_path: Path) -> None:
    path = Checkpoint(Parts(7.0)).save(tmp_path / "ckpt")
    v, w = tf.Variable(0.0), tf.Variable([0.0, 0.0])
    Checkpoint(v=v, w=w).restore(path).assert_consumed()
    assert float(v) == 7.0
    back = Parts(0.0)
    Checkpoint(back).restore(Checkpoint(v=v, w=w).save(tmp_path / "named")).assert_consumed()
    assert float(back.v) == 7.0


def test_values_wait_for_the_layers_of_a_root(tmp_path: Path) -> None:
    trained = model()
    trained.fit(X, X[:, :1], verbose=0)
    path = Checkpoint(trained).save(tmp_path / "ckpt")
    later = model()
    status = Checkpoint(later).restore(path)
    with pytest.raises(AssertionError, match="every value of .* and 7 more"):
        status.assert_consumed()
    later.predict(X, verbose=0)
    later.optimizer.build(later.trainable_variables)
    status.assert_consumed()
    for one, other in zip(trained.variables, later.variables, strict=True):
        assert one.numpy().tobytes() == other.numpy().tobytes()
    assert int(later.optimizer.iterations) == 1


def test_a_part_of_the_root_may_be_named_again_and_is_stored_once(tmp_path: Path) -> None:
    parts = Parts()
    checkpoint = Checkpoint(parts, v=parts.v, same=parts.w)
    path = checkpoint.save(tmp_path / "ckpt")
    assert stored(path) == ["save_counter", "v", "w"] and checkpoint.v is parts.v
    parts.v.assign(3.0)
    checkpoint.restore(path).assert_consumed()
    assert float(parts.v) == 1.0


def test_a_name_of_two_objects_is_refused() -> None:
    rule = r"\[checkpoint\] a name is that of one object: got 'v' .* the root, Parts; choose"
    with pytest.raises(ValueError, match=rule):
        Checkpoint(Parts(), v=tf.Variable(1.0))
    parts = Parts()
    parts.number = 3
    with pytest.raises(ValueError, match="'number'"):
        Checkpoint(parts, number=3)


def test_a_name_that_the_root_gets_later_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    parts = Parts()
    checkpoint = Checkpoint(parts, late=tf.Variable(1.0))
    parts.late = tf.Variable(2.0)
    with pytest.raises(ValueError, match="'late'"):
        checkpoint.save(tmp_path / "ckpt")
    assert not list(tmp_path.iterdir()) and checkpoint.save_counter == 0


@pytest.mark.parametrize(
    "root", [3, [Parts()], {"a": Parts()}, tf.Variable(1.0), Checkpoint(x=Parts())]
)
def test_what_has_no_names_is_no_root(root: Any) -> None:
    rule = r"\[checkpoint\] the root must be .* give it a name: Checkpoint\(name=...\)"
    with pytest.raises(ValueError, match=rule):
        Checkpoint(root)
    with pytest.raises(TypeError, match="positional"):
        Checkpoint(Parts(), root)


def test_a_damaged_restore_changes_nothing(tmp_path: Path) -> None:
    path = Checkpoint(Parts(7.0)).save(tmp_path / "ckpt")
    other = Parts(0.0, (0.0, 0.0, 0.0))
    with pytest.raises(ValueError, match="'w' is"):
        Checkpoint(other).restore(path)
    assert float(other.v) == 0.0
