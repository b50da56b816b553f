"""The whole job on a small data set: what it prints, stops, resumes and refuses."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from samegrad import cli, train
from samegrad._keras.datasets import fashion_mnist as dataset
from samegrad.cli import _records
from samegrad.keras.datasets import fashion_mnist

pytest.importorskip("tqdm")
FOLDER = dataset._DATASET.system_folders[0]
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the package dataset-fashion-mnist is not installed"
)

# 100 examples in batches of 32: the last batch of an epoch has 4.
SMALL = ["--limit", "100", "--batch-size", "32", "--epochs", "3", "--fingerprint"]


@pytest.fixture(autouse=True)
def in_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def small_data(monkeypatch):
    """Loads the files once."""
    loaded = _load()
    monkeypatch.setattr(fashion_mnist, "load_data", lambda path=None: loaded)


_LOADED: list = []


def _load():
    if not _LOADED:
        (x_train, y_train), (x_test, y_test) = fashion_mnist.load_data()
        _LOADED.append(((x_train[:200], y_train[:200]), (x_test[:200], y_test[:200])))
    return _LOADED[0]


def run(*arguments: object) -> int:
    return cli.main(["fashion-mnist", *SMALL, *map(str, arguments)])


def records(path: str) -> list[dict]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_what_a_run_prints_and_writes(capsys):
    assert run("--log", "log.jsonl", "--plot", "curves.png") == 0
    out = capsys.readouterr().out.splitlines()
    number = r"[0-9.e-]+"
    for epoch in (1, 2, 3):
        line = (
            rf"Epoch {epoch}, Loss: {number}, Accuracy: {number}, Test Loss: {number}, "
            rf"Test Accuracy: {number}"
        )
        assert re.fullmatch(line, out[epoch - 1])
    log = records("log.jsonl")
    steps = [record for record in log if "fingerprint" in record]
    epochs = [record for record in log if "test_loss" in record]
    assert [record["step"] for record in steps] == list(range(1, 13))
    assert [record["examples"] for record in steps] == 3 * [32, 32, 32, 4]
    assert [record["epoch"] for record in epochs] == [1, 2, 3]
    assert out[3] == f"Fingerprint of the weights after step 12: {steps[-1]['fingerprint']}"
    accuracy = re.fullmatch(rf"Accuracy after restoring .* strategy: ({number})", out[4])
    assert accuracy[1] == f"{epochs[-1]['test_accuracy']:.9g}"
    for epoch, record in enumerate(epochs):
        own = steps[4 * epoch : 4 * epoch + 4]
        assert record["loss"] == sum(s["loss"] * s["examples"] for s in own) / 100
    assert Path("curves.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(os.listdir("training_checkpoints")) == ["checkpoint", "ckpt-1", "ckpt-2"]


def test_equal_runs_write_equal_logs_and_another_seed_does_not():
    logs = []
    for number, seed in enumerate([0, 0, 1]):
        assert run("--log", f"{number}.jsonl", "--checkpoint-dir", number, "--seed", seed) == 0
        logs.append(Path(f"{number}.jsonl").read_text())
    assert logs[0] == logs[1]
    assert logs[0] != logs[2]


@pytest.mark.parametrize("steps", [1, 4, 6, 12])
def test_a_resumed_run_gives_the_bits_of_the_uninterrupted_one(capsys, steps):
    assert run("--log", "whole.jsonl", "--checkpoint-dir", "whole") == 0
    whole = capsys.readouterr().out.splitlines()
    assert run("--log", "log.jsonl", "--checkpoint-dir", "own", "--steps", steps) == 0
    stopped = capsys.readouterr().out
    assert f"Stopped after step {steps}; saved " in stopped
    assert len(records("log.jsonl")) == steps + (steps - 1) // 4
    assert run("--log", "log.jsonl", "--checkpoint-dir", "own", "--resume") == 0
    resumed = capsys.readouterr().out.splitlines()
    assert resumed[0].endswith(f"after step {steps}.")
    assert resumed[-2:] == whole[-2:]
    assert Path("log.jsonl").read_text() == Path("whole.jsonl").read_text()


def test_other_replicas_go_on_where_one_stopped():
    assert run("--log", "whole.jsonl", "--checkpoint-dir", "whole", "--epochs", 1) == 0
    common = ["--log", "log.jsonl", "--checkpoint-dir", "own", "--epochs", 1]
    assert run(*common, "--steps", 2) == 0
    four = ["--replicas", 4, "--batch-size", 8]
    assert run(*common, *four, "--resume") == 0
    assert Path("log.jsonl").read_text() == Path("whole.jsonl").read_text()


@pytest.mark.parametrize(("every", "saved"), [(1, [1, 2, 3]), (2, [1, 2]), (9, [1])])
def test_save_every_sets_the_epochs_between_checkpoints(every, saved) -> None:
    assert run("--save-every", every, "--limit", 33) == 0
    found = {path.name for path in Path("training_checkpoints").glob("ckpt-*")}
    assert {name.split(".")[0] for name in found} == {f"ckpt-{number}" for number in saved}


def test_more_epochs_after_the_end(capsys):
    assert run("--log", "whole.jsonl", "--checkpoint-dir", "whole") == 0
    assert run("--log", "log.jsonl", "--epochs", 1) == 0
    assert run("--log", "log.jsonl", "--resume") == 0
    assert Path("log.jsonl").read_text() == Path("whole.jsonl").read_text()
    capsys.readouterr()
    assert run("--resume") == 0  # nothing left to train: only the evaluation
    assert "Epoch" not in capsys.readouterr().out


def test_ctrl_c_stops_after_the_step_and_says_how_to_resume(capsys, monkeypatch):
    add = _records.RunLog.add

    def add_then_press(log, record):
        add(log, record)
        if record["step"] == 6:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(_records.RunLog, "add", add_then_press)
    assert run("--log", "log.jsonl", "--steps=9") == 130
    out = capsys.readouterr().out.splitlines()
    assert out[-2] == "Stopped after step 6; saved training_checkpoints/ckpt-1. Resume with:"
    assert out[-1] == f"  samegrad fashion-mnist {' '.join(SMALL)} --log log.jsonl --resume"


def test_killed_at_any_moment_and_resumed():
    """A process killed without warning: the log and the result become those of a whole run."""
    arguments = ["--limit", "200", "--batch-size", "8", "--epochs", "6", "--fingerprint"]
    assert cli.main(["fashion-mnist", *arguments, "--log", "whole.jsonl"]) == 0
    command = [sys.executable, "-m", "samegrad", "fashion-mnist", *arguments]
    command += ["--log", "log.jsonl", "--checkpoint-dir", "own"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while train.latest_checkpoint("own") is None:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.005)
    process.kill()
    process.communicate()
    done = subprocess.run([*command, "--resume"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert Path("log.jsonl").read_text() == Path("whole.jsonl").read_text()


def one_line(capsys) -> str:
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("samegrad: error: ")
    return lines[0]


def test_bad_input_ends_in_one_line(capsys, tmp_path):
    Path("a file").touch()
    assert run("--resume") == 2
    assert "--resume needs a checkpoint: got the folder training_checkpoints" in one_line(capsys)
    assert run("--log", "absent/log.jsonl") == 2
    assert "cannot write absent/log.jsonl: No such file" in one_line(capsys)
    assert run("--log", ".") == 2
    assert "cannot write .: Is a directory. Look at its folder" in one_line(capsys)
    assert run("--plot", "curves.xyz") == 2
    assert "--plot must end in" in one_line(capsys)
    assert run("--plot", "absent/curves.png") == 2
    assert "the folder of --plot must exist" in one_line(capsys)
    assert run("--checkpoint-dir", "a file") == 2
    assert "cannot use a file: File exists" in one_line(capsys)


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--threads", 5000, "[threads] must lie in [0, 4096]"),
        ("--replicas", 10**11, "at most 65536 replicas"),
        ("--batch-size", 10**20, "[Dataset.batch] batch_size must be at most"),
    ],
)
def test_a_number_beyond_the_library_ends_in_one_line(capsys, option, value, words):
    assert run(option, value) == 2
    line = one_line(capsys)
    assert words in line
    assert f"got {value}" in line.replace("replicas=", "")


def test_other_settings_cannot_be_resumed(capsys):
    assert run("--steps", 2) == 0
    capsys.readouterr()
    for other in (["--seed", 5], ["--replicas", 2], ["--learning-rate", 0.5], ["--limit", 50]):
        assert run("--resume", *other) == 2
        assert "--resume needs the settings of the checkpoint" in one_line(capsys)


def test_damaged_checkpoint(capsys):
    assert run("--steps", 2) == 0
    (path,) = Path("training_checkpoints/ckpt-1").glob("arrays-*")
    path.write_bytes(path.read_bytes()[:-1])
    capsys.readouterr()
    assert run("--resume") == 2
    assert "The checkpoint is damaged" in one_line(capsys)


def test_data_folder(capsys, tmp_path, monkeypatch):
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert run("--data-dir", "absent") == 2
    assert "absent does not exist" in one_line(capsys)
    (tmp_path / "data").mkdir()
    for spec in dataset._DATASET.files:
        (tmp_path / "data" / f"{spec.name}.gz").write_bytes(gzip.compress(b"\0\0\10\1"))
    assert run("--data-dir", "data") == 2
    assert "train-images-idx3-ubyte.gz must start with" in one_line(capsys)


def test_fingerprint_is_that_of_the_weights():
    weights = [np.ones((2, 2), np.float32), np.zeros(3, np.float32)]
    content = b"".join(array.tobytes() for array in weights)
    assert _records.fingerprint(weights) == hashlib.blake2b(content, digest_size=8).hexdigest()


def test_a_fingerprint_of_weights_has_one_nan():
    bits = np.array([0x7FC00000, 0xFFC00000, 0x7F800001], np.uint32)
    found = {_records.fingerprint([bits[i : i + 1].view(np.float32)]) for i in range(3)}
    assert len(found) == 1 and _records.fingerprint([np.zeros(1, np.float32)]) not in found


def same_logs(one: str, other: str) -> bool:
    return Path(one).read_text() == Path(other).read_text()


def test_a_forgotten_resume_replaces_nothing(capsys):
    assert run("--log", "log.jsonl", "--steps", 5) == 0
    log = Path("log.jsonl").read_text()
    saved = sorted(Path("training_checkpoints").rglob("*"))
    capsys.readouterr()
    for arguments in ([], ["--log", "log.jsonl"], ["--log", "new.jsonl"]):
        assert run(*arguments) == 2
        assert "Continue that run with --resume, delete it with --overwrite" in one_line(capsys)
    assert run("--log", "log.jsonl", "--checkpoint-dir", "other") == 2
    assert "empty the file with --overwrite" in one_line(capsys)
    assert Path("log.jsonl").read_text() == log
    assert sorted(Path("training_checkpoints").rglob("*")) == saved
    assert not Path("new.jsonl").exists()
    Path("training_checkpoints/checkpoint").unlink()  # not listed, but there
    assert run() == 2
    assert "ckpt-1" in one_line(capsys)


def test_overwrite_begins_anew(capsys):
    assert run("--log", "whole.jsonl", "--checkpoint-dir", "whole") == 0
    assert run("--log", "log.jsonl", "--seed", 5) == 0
    assert run("--log", "log.jsonl", "--overwrite", "--steps", 5) == 0
    assert sorted(os.listdir("training_checkpoints")) == ["checkpoint", "ckpt-1"]
    assert capsys.readouterr().out.splitlines()[-1].endswith("--log log.jsonl --resume")
    assert run("--log", "log.jsonl", "--resume") == 0
    assert same_logs("log.jsonl", "whole.jsonl")
    with pytest.raises(SystemExit):
        run("--resume", "--overwrite")


def test_ten_resumes_in_a_row_give_the_log_plot_and_checkpoint_of_one_run():
    common = ["--log", "log.jsonl", "--checkpoint-dir", "own"]
    assert run("--log", "whole.jsonl", "--checkpoint-dir", "whole", "--plot", "whole.svg") == 0
    assert run(*common, "--steps", 1) == 0
    for steps in range(2, 12):
        assert run(*common, "--resume", "--steps", steps, "--plot", "log.svg") == 0
        assert records("log.jsonl") == records("whole.jsonl")[: len(records("log.jsonl"))]
        assert records("log.jsonl")[-1]["step"] == steps
    assert run(*common, "--resume", "--plot", "log.svg") == 0
    assert same_logs("log.jsonl", "whole.jsonl")
    path = re.compile(r' d="[^"]*"')
    one, other = (path.findall(Path(name).read_text()) for name in ("log.svg", "whole.svg"))
    assert one == other
    arrays = [
        train._storage.load(train.latest_checkpoint(folder))[0] for folder in ("own", "whole")
    ]
    for name, array in arrays[0].items():
        np.testing.assert_array_equal(array, arrays[1][name])


def test_a_log_shorter_than_its_checkpoint_is_refused(capsys):
    assert run("--log", "log.jsonl", "--steps", 6) == 0
    whole = Path("log.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    capsys.readouterr()
    for kept in (
        [],
        lines[:-1],
        lines[:4],
        lines[:2] + lines[3:],
        lines[:4] + lines[5:],
        lines[:2] * 2,
    ):
        Path("log.jsonl").write_bytes(b"".join(kept))
        assert run("--log", "log.jsonl", "--resume") == 2
        assert "up to the checkpoint's last one, step 6 of epoch 2" in one_line(capsys)
        assert Path("log.jsonl").read_bytes() == b"".join(kept)
    assert run("--log", "new.jsonl", "--resume", "--steps", 8) == 0
    assert [record["step"] for record in records("new.jsonl")] == [7, 8]
    assert run("--log", "new.jsonl", "--resume", "--steps", 9) == 0
    assert [record["step"] for record in records("new.jsonl")] == [7, 8, 8, 9]
    capsys.readouterr()
    assert run("--log", "new.jsonl", "--resume", "--plot", "curves.png") == 2
    assert "must have all 9 earlier steps: got step 7" in one_line(capsys)
    assert run("--resume", "--plot", "curves.png") == 2
    assert "must have all 9 earlier steps: got none" in one_line(capsys)


def test_the_log_of_another_run_is_refused(capsys):
    assert run("--log", "other.jsonl", "--checkpoint-dir", "other", "--seed", 5) == 0
    assert run("--steps", 6) == 0
    other = Path("other.jsonl").read_bytes()
    capsys.readouterr()
    assert run("--log", "other.jsonl", "--resume") == 2
    assert "must be the log of the run that is resumed" in one_line(capsys)
    assert Path("other.jsonl").read_bytes() == other


def test_a_log_that_was_changed_anywhere_is_refused(capsys):
    assert run("--log", "log.jsonl", "--steps", 7) == 0
    whole = records("log.jsonl")
    capsys.readouterr()
    for place in (0, 3, len(whole) - 1):
        changed = [dict(record) for record in whole]
        changed[place]["loss"] += 0.5
        text = "".join(json.dumps(record) + "\n" for record in changed)
        Path("log.jsonl").write_text(text)
        assert run("--log", "log.jsonl", "--resume") == 2
        assert "must be the log of the run that is resumed" in one_line(capsys)
        assert Path("log.jsonl").read_text() == text
    Path("log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in whole))
    assert run("--log", "log.jsonl", "--resume", "--steps", 9) == 0
    assert run("--resume", "--steps", 10) == 0  # without a log, none has step 10
    capsys.readouterr()
    assert run("--log", "log.jsonl", "--resume") == 2
    assert "step 10" in one_line(capsys)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_saves_and_exits(number, code):
    arguments = ["--limit", "200", "--batch-size", "8", "--epochs", "40", "--fingerprint"]
    command = [sys.executable, "-m", "samegrad", "fashion-mnist", *arguments, "--log", "log.jsonl"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (Path("log.jsonl").exists() and Path("log.jsonl").stat().st_size):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.005)
    process.send_signal(number)
    if number == signal.SIGTERM:  # some schedulers send it again
        process.send_signal(number)
    out, err = process.communicate()
    assert process.returncode == code, err
    assert "Stopping after this step" in err
    last = records("log.jsonl")[-1]
    assert f"Stopped after step {last['step']}; saved " in out
    assert f"Fingerprint of the weights after step {last['step']}: " in out
    values = train._storage.load(train.latest_checkpoint("training_checkpoints"))[1]["values"]
    assert values["progress/step"] == last["step"]


def test_the_log_is_on_the_disk_before_its_checkpoint(monkeypatch):
    synced = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}").rpartition("/")[2])
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    assert run("--log", "log.jsonl", "--steps", 2) == 0
    assert synced.index("log.jsonl") < synced.index("manifest.json")


def test_a_checkpoint_at_two_places_of_the_training_is_refused(capsys):
    assert run("--steps", 6) == 0
    path = Path("training_checkpoints/ckpt-1")
    arrays, values = train._storage.load(path)
    capsys.readouterr()
    for key, value in (("progress/step", 7), ("progress/epoch", 9), ("iterator/position", 3)):
        changed = {**values, "values": {**values["values"], key: value}}
        train._storage.save(path, arrays, changed)
        assert run("--resume") == 2
        assert "must be at one place of the training: got step" in one_line(capsys)
