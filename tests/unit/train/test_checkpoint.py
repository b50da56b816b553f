"""Checkpoints of objects, with small stand-ins for variables, layers, models and optimizers."""

from __future__ import annotations

import errno
import gc
import os
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from samegrad.train import (
    Checkpoint,
    CheckpointManager,
    CorruptCheckpointError,
    _storage,
    _trackable,
    checkpoint,
    checkpoints_iterator,
    latest_checkpoint,
)
from samegrad.train._trackable import restore_pending


class Variable:
    def __init__(self, value: Any) -> None:
        self.value = np.array(value)

    def _checkpoint_state(self) -> Mapping[str, Any]:
        return {"": self.value}

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        self.value[...] = values[""]


class Dense:
    """Has no variables before its first call."""

    def __init__(self, units: int) -> None:
        self.units = units
        self.kernel: Variable | None = None

    def build(self, rows: int, fail: bool = False) -> None:
        self.kernel = Variable(np.zeros((rows, self.units), np.float32))
        self.bias = Variable(np.zeros(self.units, np.float32))
        restore_pending(self)
        if fail:
            self.kernel = None
            raise RuntimeError("the trace failed")

    def _checkpoint_state(self) -> Mapping[str, Any]:
        return {} if self.kernel is None else {"kernel": self.kernel, "bias": self.bias}

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        raise AssertionError("a layer has no values of its own")


class Model:
    def __init__(self, *units: int) -> None:
        self.layers = [Dense(count) for count in units]

    def build(self, rows: int) -> Model:
        for layer in self.layers:
            layer.build(rows)
            rows = layer.units
        return self

    def add(self, layer: Dense) -> None:
        self.layers.append(layer)
        restore_pending(self)

    def variables(self) -> list[Variable]:
        return [v for layer in self.layers for v in layer._checkpoint_state().values()]

    def _checkpoint_state(self) -> Mapping[str, Any]:
        return {"layers": self.layers}

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        raise AssertionError("a model has no values of its own")


class Momentum:
    def __init__(self, rate: float = 0.1) -> None:
        self.rate = rate
        self.slots: dict[str, Variable] = {}

    def apply(self, variables: list[Variable]) -> None:
        if not self.slots:
            self.slots = {str(i): Variable(0 * v.value) for i, v in enumerate(variables)}
            restore_pending(self)
        for slot, variable in zip(self.slots.values(), variables, strict=True):
            slot.value += variable.value
            variable.value += np.float32(self.rate) * slot.value

    def _checkpoint_state(self) -> Mapping[str, Any]:
        return {"rate": self.rate, "momentum": self.slots}

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        self.rate = values["rate"]


def filled(model: Model) -> Model:
    for number, variable in enumerate(model.variables(), 1):
        variable.value[...] = number
    return model


@pytest.fixture
def trained() -> tuple[Model, Momentum]:
    model, optimizer = filled(Model(3, 2).build(4)), Momentum(0.5)
    optimizer.apply(model.variables())
    return model, optimizer


def bits(model: Model) -> list[bytes]:
    return [variable.value.tobytes() for variable in model.variables()]


def test_keys_are_the_ways_of_names(tmp_path, trained):
    model, optimizer = trained
    path = Checkpoint(model=model, optimizer=optimizer).save(tmp_path / "ckpt")
    assert path == str(tmp_path / "ckpt-1")
    arrays, manifest = _storage.load(path)
    assert sorted(arrays) == [
        *[f"model/layers/{i}/{name}" for i in (0, 1) for name in ("bias", "kernel")],
        *[f"optimizer/momentum/{i}" for i in range(4)],
    ]
    assert manifest["values"] == {"optimizer/rate": 0.5, "save_counter": 1}


def test_restore_into_built_objects(tmp_path, trained):
    model, optimizer = trained
    path = Checkpoint(model=model, optimizer=optimizer).save(tmp_path / "ckpt")
    other, slots = filled(Model(3, 2).build(4)), Momentum()
    slots.apply(other.variables())
    slots.apply(other.variables())
    status = Checkpoint(model=other, optimizer=slots).restore(path)
    assert status.assert_consumed() is status
    status.assert_existing_objects_matched().assert_nontrivial_match().expect_partial()
    assert bits(other) == bits(model)
    assert slots.rate == 0.5
    for name, slot in slots.slots.items():
        np.testing.assert_array_equal(slot.value, optimizer.slots[name].value)


def test_values_wait_for_layers_and_slots(tmp_path, trained):
    model, optimizer = trained
    path = Checkpoint(model=model, optimizer=optimizer).save(tmp_path / "ckpt")
    later, slots = Model(3, 2), Momentum()
    status = Checkpoint(model=later, optimizer=slots).restore(path)
    status.assert_existing_objects_matched().assert_nontrivial_match()
    with pytest.raises(AssertionError, match=r"\[checkpoint\] every value .* and 3 more"):
        status.assert_consumed()
    later.build(4)
    assert bits(later) == bits(model)
    with pytest.raises(AssertionError, match="optimizer/momentum/0"):
        status.assert_consumed()
    slots.apply(later.variables())
    optimizer.apply(model.variables())
    assert bits(later) == bits(model)
    status.assert_consumed()


def test_values_wait_for_parts_added_later(tmp_path, trained):
    model, _ = trained
    path = Checkpoint(model=model).save(tmp_path / "ckpt")
    later = Model(3)
    status = Checkpoint(model=later).restore(path)
    later.build(4)
    last = Dense(2)
    later.add(last)
    last.build(3)
    assert bits(later) == bits(model)
    status.assert_consumed()


def test_values_wait_for_objects_given_to_the_checkpoint_later(tmp_path, trained):
    model, _ = trained
    path = Checkpoint(model=model).save(tmp_path / "ckpt")
    root = Checkpoint()
    status = root.restore(path)
    with pytest.raises(AssertionError, match=r"some value of .*ckpt-1 must fit"):
        status.assert_nontrivial_match()
    root.model = filled(Model(3, 2).build(4))
    assert bits(root.model) == bits(model)
    status.assert_consumed()


def test_values_are_given_once(tmp_path, trained):
    model, _ = trained
    path = Checkpoint(model=model).save(tmp_path / "ckpt")
    later = Model(3, 2)
    Checkpoint(model=later).restore(path)
    later.layers[0].build(4)
    later.layers[0].kernel.value += 1
    trained_on = later.layers[0].kernel.value.copy()
    restore_pending(later.layers[0])
    restore_pending(later)
    later.layers[1].build(3)
    np.testing.assert_array_equal(later.layers[0].kernel.value, trained_on)
    assert bits(later)[2:] == bits(model)[2:]


def test_a_failed_trace_does_not_lose_the_values(tmp_path, trained):
    model, _ = trained
    path = Checkpoint(model=model).save(tmp_path / "ckpt")
    later = Model(3, 2)
    root = Checkpoint(model=later)
    root.restore(path)
    with pytest.raises(RuntimeError, match="trace"):
        later.layers[0].build(4, fail=True)
    gc.collect()
    later.build(4)
    assert bits(later) == bits(model)


def test_values_given_are_not_held_for_ever(tmp_path, trained):
    model, _ = trained
    path = Checkpoint(model=model).save(tmp_path / "ckpt")
    later = Model(3, 2)
    root = Checkpoint(model=later)
    root.restore(path)
    node = weakref.ref(_trackable._awaited(later.layers[0]))
    later.build(4)
    root.save(tmp_path / "ckpt")
    gc.collect()
    assert node() is None


def test_shared_objects_are_stored_once(tmp_path):
    model = filled(Model(3, 3).build(3))
    path = Checkpoint(model=model, head=model.layers[1]).save(tmp_path / "ckpt")
    assert len(_storage.load(path)[0]) == 4
    head = Dense(3)
    head.build(3)
    Checkpoint(head=head).restore(path).expect_partial()
    np.testing.assert_array_equal(head.kernel.value, model.layers[1].kernel.value)
    apart, apart_head = Model(3, 3).build(3), Dense(3)
    status = Checkpoint(model=apart, head=apart_head).restore(path)
    apart_head.build(3)
    assert bits(apart) == bits(model)
    status.assert_existing_objects_matched()


class Child:
    def __init__(self, parent: Parent) -> None:
        self.parent = parent
        self.weight = Variable(1.0)

    def _checkpoint_state(self) -> Mapping[str, Any]:
        return {"parent": self.parent, "weight": self.weight}

    def _restore_state(self, values: Mapping[str, Any]) -> None: ...


class Parent:
    def __init__(self) -> None:
        self.child = Child(self)

    def _checkpoint_state(self) -> Mapping[str, Any]:
        return {"child": self.child}

    def _restore_state(self, values: Mapping[str, Any]) -> None: ...


def test_objects_may_refer_to_each_other(tmp_path):
    parent = Parent()
    parent.child.weight.value[...] = 5
    path = Checkpoint(parent=parent).save(tmp_path / "ckpt")
    other = Parent()
    Checkpoint(parent=other).restore(path).assert_consumed()
    assert other.child.weight.value == 5


def test_arrays_values_lists_and_dicts(tmp_path):
    odd = {"a/b": Variable([1, 2]), "a": {"b": Variable([True])}, "%2F": Variable(3.0)}
    saved = Checkpoint(odd=odd, pair=(Variable(1), Variable(2)), array=np.arange(3), text="é", n=2)
    path = saved.write(tmp_path / "free name")
    again = Checkpoint(
        odd={"a/b": Variable([0, 0]), "a": {"b": Variable([False])}, "%2F": Variable(0.0)},
        pair=(Variable(0), Variable(0)),
        array=np.zeros(3, np.int64),
        text="",
        n=0,
    )
    again.restore(path).assert_consumed()
    assert again.odd["a/b"].value.tolist() == [1, 2]
    assert again.odd["a"]["b"].value.tolist() == [True]
    assert again.odd["%2F"].value == 3.0
    assert [v.value for v in again.pair] == [1, 2]
    assert again.array.tolist() == [0, 1, 2]
    assert (again.text, again.n) == ("é", 2)


def test_what_cannot_be_stored_is_refused_at_once():
    with pytest.raises(TypeError, match=r"must be an array, .*: got object for 'thing'"):
        Checkpoint(thing=object())
    with pytest.raises(TypeError, match=r"lists and dicts must hold .*: got int for 'list/0'"):
        Checkpoint(list=[1, 2])
    with pytest.raises(ValueError, match=r"must not hide .*'save'"):
        Checkpoint(save=1)
    with pytest.raises(AttributeError, match="'absent'"):
        _ = Checkpoint().absent


@pytest.mark.parametrize(
    ("other", "found"),
    [
        (np.zeros((3, 2), np.float32), r"\(3, 2\) float32, stored is \(2, 3\) float32"),
        (np.zeros((2, 3), np.float64), r"\(2, 3\) float64, stored is \(2, 3\) float32"),
    ],
)
def test_wrong_shape_or_dtype_changes_nothing(tmp_path, other, found):
    good = Variable(np.ones(2))
    saved = Checkpoint(a=Variable(np.zeros(2)), w=Variable(np.ones((2, 3), np.float32)))
    path = saved.save(tmp_path / "ckpt")
    with pytest.raises(ValueError, match=rf"\[checkpoint\] .*must match: 'w' is {found}"):
        Checkpoint(a=good, w=Variable(other)).restore(path)
    assert good.value.tolist() == [1, 1]


def test_array_where_a_value_is(tmp_path):
    path = Checkpoint(w=1.5).save(tmp_path / "ckpt")
    with pytest.raises(ValueError, match="arrays are restored into arrays"):
        Checkpoint(w=np.array(1.5)).restore(path)


def test_missing_values_are_named(tmp_path, trained):
    model, _ = trained
    path = Checkpoint(model=Model(3).build(4)).save(tmp_path / "ckpt")
    status = Checkpoint(model=model).restore(path)
    with pytest.raises(AssertionError, match="none for 'model/layers/1/kernel'"):
        status.assert_existing_objects_matched()


def test_no_path_restores_nothing(tmp_path):
    assert latest_checkpoint(tmp_path / "absent") is None
    status = Checkpoint(w=Variable(1)).restore(latest_checkpoint(tmp_path)).expect_partial()
    with pytest.raises(AssertionError, match="got the path None"):
        status.assert_consumed()


def test_save_counter_goes_on_after_a_restore(tmp_path):
    root = Checkpoint(w=Variable(1))
    assert root.save_counter.numpy() == 0
    root.save(tmp_path / "ckpt")
    root.save(tmp_path / "ckpt")
    other = Checkpoint(w=Variable(1))
    other.restore(latest_checkpoint(tmp_path)).assert_consumed()
    assert other.save_counter == 2
    assert other.save(tmp_path / "ckpt").endswith("ckpt-3")
    assert latest_checkpoint(tmp_path).endswith("ckpt-3")


def test_relative_prefix(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Checkpoint(w=1).save("ckpt") == "ckpt-1"
    assert os.path.samefile(latest_checkpoint("."), "ckpt-1")


def test_a_failed_save_is_not_counted(tmp_path, monkeypatch):
    root = Checkpoint(w=Variable(1))
    root.save(tmp_path / "ckpt")

    def fail(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fail)
        with pytest.raises(OSError, match="No space"):
            root.save(tmp_path / "ckpt")
    assert root.save_counter == 1
    assert root.save(tmp_path / "ckpt").endswith("ckpt-2")


def test_providers(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_providers", {})
    state = {"draws": 3}
    checkpoint.register_provider("random", lambda: dict(state), state.update)
    checkpoint.register_provider("version", lambda: "0.1.0")
    root = Checkpoint(w=Variable(1))
    path = root.save(tmp_path / "ckpt")
    assert _storage.load(path)[1]["providers"] == {"random": {"draws": 3}, "version": "0.1.0"}
    state["draws"] = 8
    root.read(path)
    assert state == {"draws": 8}
    root.restore(path)
    assert state == {"draws": 3}
    monkeypatch.setattr(checkpoint, "_providers", {})
    root.restore(path).assert_consumed()  # an older or newer version may know other ones


def test_manager_keeps_the_last_few(tmp_path):
    root = Checkpoint(w=Variable(1))
    manager = CheckpointManager(root, tmp_path / "run", max_to_keep=2)
    assert manager.latest_checkpoint is None
    assert manager.restore_or_initialize() is None
    paths = [manager.save() for _ in range(4)]
    assert manager.checkpoints == paths[2:]
    assert manager.latest_checkpoint == paths[3]
    assert sorted(os.listdir(manager.directory)) == ["checkpoint", "ckpt-3", "ckpt-4"]
    other = CheckpointManager(Checkpoint(w=Variable(2)), tmp_path / "run", max_to_keep=1)
    assert other.restore_or_initialize() == paths[3]
    assert other.save().endswith("ckpt-5")
    assert other.checkpoints == [os.path.join(manager.directory, "ckpt-5")]
    assert other.save(checkpoint_number=70).endswith("ckpt-70")


def test_manager_keeps_all_and_moves_with_its_folder(tmp_path):
    manager = CheckpointManager(Checkpoint(w=1), tmp_path / "a", max_to_keep=None)
    for _ in range(3):
        manager.save()
    os.rename(tmp_path / "a", tmp_path / "b")
    assert latest_checkpoint(tmp_path / "b") == str(tmp_path / "b" / "ckpt-3")


def test_manager_waits_for_the_interval(tmp_path):
    class Step:
        value = 0

        def __int__(self) -> int:
            return self.value

    step = Step()
    manager = CheckpointManager(
        Checkpoint(w=1), tmp_path, 3, step_counter=step, checkpoint_interval=5
    )
    saved = []
    for step.value in range(12):
        if manager.save():
            saved.append(step.value)
    assert saved == [0, 5, 10]
    assert manager.save(check_interval=False) is not None


def test_manager_refuses_what_makes_no_sense(tmp_path):
    with pytest.raises(ValueError, match="at least 1 or None: got 0"):
        CheckpointManager(Checkpoint(), tmp_path, 0)
    with pytest.raises(ValueError, match="needs a step_counter: got the interval 5"):
        CheckpointManager(Checkpoint(), tmp_path, 1, checkpoint_interval=5)


def test_damaged_state_file(tmp_path):
    Checkpoint(w=1).save(tmp_path / "ckpt")
    state = tmp_path / "checkpoint"
    state.write_bytes(state.read_bytes()[:-5])
    with pytest.raises(CorruptCheckpointError, match=r"checkpoint must list .*Remove it"):
        latest_checkpoint(tmp_path)


def test_checkpoints_iterator_yields_each_new_checkpoint(tmp_path):
    checkpoint, asked = Checkpoint(v=Variable(0)), []

    def ended():
        asked.append(len(asked))
        if len(asked) == 2:
            checkpoint.save(tmp_path / "ckpt")
        return len(asked) == 4

    first = checkpoint.save(tmp_path / "ckpt")
    found = list(checkpoints_iterator(tmp_path, timeout=0, timeout_fn=ended))
    # After the first path, a timeout, the second path, and a timeout.
    assert found == [first, latest_checkpoint(tmp_path)] and len(set(found)) == 2
    assert len(asked) == 4
    assert list(checkpoints_iterator(tmp_path, timeout=0)) == found[-1:]
    assert list(checkpoints_iterator(tmp_path / "absent", timeout=0)) == []
