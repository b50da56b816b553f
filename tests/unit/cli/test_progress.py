"""Fingerprints, the log, the plot and Ctrl-C."""

from __future__ import annotations

import functools
import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from samegrad.cli._errors import CommandError
from samegrad.cli._pictures import check_picture
from samegrad.cli._progress import WHO, draw_plot, epoch_line, known_records
from samegrad.cli._records import RunLog
from samegrad.cli._stop import StopSignal


def step(number: int, epoch: int = 1) -> dict:
    return {"epoch": epoch, "step": number, "loss": 1 / number, "examples": 4}


def epoch_end(number: int, epoch: int) -> dict:
    figures = {"loss": 0.5, "accuracy": 81.25, "test_loss": 0.25, "test_accuracy": 90.5}
    return {"epoch": epoch, "step": number, **figures}


RECORDS = [step(1), step(2), epoch_end(2, 1), step(3, 2), step(4, 2), epoch_end(4, 2)]


def test_epoch_line_is_that_of_the_tutorial():
    assert epoch_line(epoch_end(2, 1)) == (
        "Epoch 1, Loss: 0.5, Accuracy: 81.25, Test Loss: 0.25, Test Accuracy: 90.5"
    )


def test_log_holds_every_bit_and_is_written_at_once(tmp_path):
    path = tmp_path / "log.jsonl"
    log = RunLog(WHO, path)
    loss = float(np.float32(0.1))
    log.add({"epoch": 1, "step": 1, "loss": loss})
    assert json.loads(path.read_text())["loss"] == loss  # before close: a kill loses nothing
    log.close()
    assert log.records == [{"epoch": 1, "step": 1, "loss": loss}]


def resume(path: Path | None, after: tuple[int, int]) -> RunLog:
    return RunLog(WHO, path, functools.partial(known_records, after=after))


def write(path: Path, records: list[dict]) -> None:
    log = RunLog(WHO, path)
    for record in records:
        log.add(record)
    log.close()


@pytest.mark.parametrize(
    ("resumed", "kept"),
    [((0, 0), 0), ((1, 0), 1), ((2, 0), 2), ((2, 1), 3), ((3, 1), 4), ((4, 1), 5), ((4, 2), 6)],
)
def test_a_resumed_log_becomes_that_of_the_uninterrupted_run(tmp_path, resumed, kept):
    path = tmp_path / "log.jsonl"
    write(path, RECORDS)
    whole = path.read_bytes()
    with path.open("ab") as file:
        file.write(b'{"epoch": 3, "st')  # a kill in the middle of a line
    log = resume(path, resumed)
    assert log.records == RECORDS[:kept]
    for record in RECORDS[kept:]:
        log.add(record)
    log.close()
    assert path.read_bytes() == whole
    assert log.records == RECORDS


@pytest.mark.parametrize(
    "records",
    [
        [*RECORDS[:3], step(3, 1), *RECORDS[4:]],
        [*RECORDS[:2], step(3, 2), RECORDS[2], *RECORDS[4:]],
        [*RECORDS[:2], epoch_end(1, 1), *RECORDS[3:]],
    ],
)
def test_a_log_whose_steps_lie_in_another_epoch_is_refused_as_it_is(tmp_path, records):
    path = tmp_path / "log.jsonl"
    write(path, records)
    content = path.read_bytes()
    with pytest.raises(CommandError, match=r"steps of epoch \d and then its end: got step \d"):
        resume(path, (4, 2))
    assert path.read_bytes() == content


def test_a_new_run_begins_a_new_log(tmp_path):
    path = tmp_path / "log.jsonl"
    write(path, RECORDS)
    write(path, RECORDS[:1])
    assert len(path.read_text().splitlines()) == 1
    with pytest.raises(CommandError, match="must hold the steps up to .* got 2 is missing"):
        resume(path, (4, 2))
    path.unlink()
    resume(path, (4, 2)).close()  # resumed, but the file is gone
    assert path.read_text() == ""


def test_a_foreign_file_is_not_overwritten(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("my notes\n")
    with pytest.raises(CommandError, match=r"notes\.txt must be a record .* line 1"):
        resume(path, (4, 2))
    assert path.read_text() == "my notes\n"


def test_log_that_cannot_be_written(tmp_path):
    with pytest.raises(OSError, match="absent"):
        RunLog(WHO, tmp_path / "absent" / "log.jsonl")


def test_no_log_file():
    log = resume(None, (4, 2))
    log.add(step(5))
    log.close()
    assert log.records == [step(5)]


def test_plot(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "curves.png"
    check_picture(WHO, "--plot", path)
    draw_plot(path, RECORDS)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert os.listdir(tmp_path) == ["curves.png"]
    draw_plot(path, [])  # a run stopped before its first step
    draw_plot(tmp_path / "curves.svg", RECORDS)


def test_plot_that_cannot_be_drawn_is_refused_before_the_training(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    with pytest.raises(CommandError, match=r"must end in one of .*png.*: got 'a\.txt'"):
        check_picture(WHO, "--plot", tmp_path / "a.txt")
    with pytest.raises(CommandError, match="folder of --plot must exist"):
        check_picture(WHO, "--plot", tmp_path / "absent" / "a.png")
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.backend_bases", None)
    with pytest.raises(CommandError, match=r"pip install 'samegrad\[plot\]'"):
        check_picture(WHO, "--plot", tmp_path / "a.png")


def test_first_ctrl_c_asks_and_the_second_interrupts(capfd):
    before = signal.getsignal(signal.SIGINT)
    with StopSignal() as stop:
        assert not stop.is_set
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set
        assert "Stopping after this step" in capfd.readouterr().err
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) == before
