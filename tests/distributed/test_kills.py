"""A fit or a command that is killed continues to the weights of an undisturbed one (kills.py)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("psutil")


@pytest.mark.parametrize("kind", ["fit", "command"])
def test_a_killed_job_ends_with_the_weights_of_a_whole_one(kind):
    script = Path(__file__).with_name("kills.py")
    words = [sys.executable, script, kind, "--processes", "1", "--kills", "1"]
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["kills"] >= 1 and report["ends"] >= 1
