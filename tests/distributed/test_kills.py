"""A fit that is killed continues to the weights of one that nobody killed (kills.py)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("psutil")


def test_a_killed_fit_ends_with_the_weights_of_a_whole_one():
    script = Path(__file__).with_name("kills.py")
    words = [sys.executable, script, "fit", "--processes", "1", "--kills", "1"]
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["kills"] >= 1 and report["ends"] >= 1
