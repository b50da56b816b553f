"""Steps of JAX over devices of this machine: pmap, shard_map and jit, with and without masks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="JAX is not installed")


@pytest.fixture(scope="module")
def verdicts():
    """Of all cases: the number of devices is set before JAX is loaded, so in another process."""
    script = Path(__file__).with_name("jax_devices.py")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return {k: v for line in done.stdout.splitlines() for k, v in json.loads(line).items()}


@pytest.mark.parametrize(
    ("case", "name"),
    [
        ("pmap, psum of shares", None),
        ("pmap, pmean of local means", "mean of the replicas' means"),
        ("pmap, psum of local means", "mean per replica, then sum"),
        ("pmap, pmean of padded means", "padding counts as examples"),
        ("pmap, pmean of shares", "divided by the global batch, then averaged"),
        ("pmap, even", None),
        ("pmap, even, psum", "mean per replica, then sum"),
        ("pmap, never joined", "the replicas' parameters differ"),
        ("pmap, scan", "micro-batches are not divided"),
        ("jit", None),
        ("shard_map, mean", "mean of the replicas' means"),
        ("shard_map, never joined", "the replicas' parameters differ"),
    ],
)
def test_steps_over_devices_are_judged(verdicts, case, name) -> None:
    assert "error" not in verdicts[case], verdicts[case]
    assert verdicts[case]["cause"] == name, verdicts[case]
    assert verdicts[case]["correct"] == (name is None)


def test_even_shares_leave_a_note(verdicts) -> None:
    assert any("mean of the replicas' means" in note for note in verdicts["pmap, even"]["notes"])


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("pmap, uneven without a mask", "equal shares: got 4+7 examples"),
        ("pmap, too few devices", "9 replicas need as many devices: got 8; on CPUs set XLA_FLAGS"),
    ],
)
def test_what_devices_cannot_take_is_named(verdicts, case, words) -> None:
    assert words in verdicts[case].get("error", ""), verdicts[case]
