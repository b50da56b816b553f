"""The whole job on few sentences: what it prints, translates, stops, resumes and refuses."""

from __future__ import annotations

import json
import math
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad import cli, train
from samegrad.cli import _records
from samegrad.cli._translate import _precision, _training

pytest.importorskip("sentencepiece")
# Two epochs of at least 6 steps; sentences of 1 to 8 words.
SMALL = ["--pairs", "pairs.tsv", "--epochs", "2", "--vocabulary", "80", "--batch-tokens", "40"]
SMALL += ["--layers", "1", "--width", "8", "--heads", "2", "--max-length", "24", "--fingerprint"]
WORDS = {"one": "un", "red": "rouge", "house": "maison", "is": "est", "old": "vieux", "we": "nous"}


@pytest.fixture(autouse=True)
def in_own_folder(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    write_pairs(4)


def write_pairs(times: int) -> None:
    """Sentences of 1 to 8 words, translated word by word."""
    rng = np.random.default_rng(0)
    names = list(WORDS)
    rows = [[names[n] for n in rng.integers(0, 6, length)] for length in [*range(1, 9)] * times]
    lines = [" ".join(row) + "\t" + " ".join(WORDS[word] for word in row) for row in rows]
    Path("pairs.tsv").write_text("\n".join(lines) + "\n")


def run(*arguments: object) -> int:
    return cli.main(["translate", *SMALL, *map(str, arguments)])


def records(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def one_line(capsys: Any) -> str:
    lines = [line for line in capsys.readouterr().err.splitlines() if "tokens/s" not in line]
    assert len(lines) == 1, lines
    assert lines[0].startswith("samegrad: error: ")
    return str(lines[0])


def test_what_a_run_prints_and_writes(capsys: Any) -> None:
    assert run("--log", "log.jsonl", "--held-out", 0.1) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    epochs = [r for r in records("log.jsonl") if "held_out_perplexity" in r]
    steps = [r for r in records("log.jsonl") if "loss" in r]
    assert lines[0].endswith(" held out; 0 left out, of 24 or more tokens.")
    assert [r["step"] for r in steps] == list(range(1, len(steps) + 1))
    assert [r["epoch"] for r in epochs] == [1, 2]
    first = [r for r in steps if r["epoch"] == 1]
    assert len(first) >= 6
    assert sum(r["tokens"] for r in first) == sum(r["tokens"] for r in steps) / 2
    assert sum(r["sentences"] for r in first) == int(lines[0].split()[0])
    assert len({r["sentences"] for r in steps}) > 1  # they differ from step to step
    for number, record in enumerate(epochs, 1):
        line = next(line for line in lines if line.startswith(f"Epoch {number}, perplexity"))
        assert f"held out: perplexity {record['held_out_perplexity']:.6g}" in line
        assert 1 < record["unigram_perplexity"] < 80
        assert ("BLEU" in line) == ("bleu" in record)
        assert f"Epoch {number}: {sum(r['tokens'] for r in first)} tokens in " in err
    assert sum(", wanted '" in line for line in lines) == 2 * _training.SAMPLES
    assert lines[-1].endswith(f"after step {len(steps)}: {steps[-1]['fingerprint']}")


def test_it_learns_and_translates(capsys: Any) -> None:
    write_pairs(50)
    more = ["--epochs", 20, "--width", 32, "--warm-up", 60, "--dropout", 0, "--log", "log.jsonl"]
    assert run(*more, "--batch-tokens", 200) == 0
    last = records("log.jsonl")[-1]
    first = next(r for r in records("log.jsonl") if "held_out_perplexity" in r)
    assert last["perplexity"] < 2 < first["perplexity"]
    assert last["held_out_accuracy"] > 0.7
    assert last["held_out_perplexity"] < last["unigram_perplexity"] / 3
    out = capsys.readouterr().out
    assert out.count("-> '") == 20 * _training.SAMPLES


def test_real_messages_are_learnt(capsys: Any) -> None:
    """Far below a unigram model on new sentences; seen ones come back, its own outputs fed back."""
    pytest.importorskip("django", reason="its messages are the data")
    made: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        original = _training.Training.__init__

        def noted(self: Any, *arguments: Any) -> None:
            original(self, *arguments)
            made.append(self)

        patch.setattr(_training.Training, "__init__", noted)
        more = ["--epochs", "40", "--max-length", "16", "--dropout", "0", "--replicas", "2"]
        log = ["--batch-tokens", "256", "--width", "96", "--log", "log.jsonl"]
        assert cli.main(["translate", *more, *log]) == 0
    last = records("log.jsonl")[-1]
    assert last["held_out_perplexity"] < last["unigram_perplexity"] / 3
    (training,) = made
    seen = training.pairs[:100]
    found = training.translate([source for source, _ in seen])
    assert sum(text == target for text, (_, target) in zip(found, seen, strict=True)) >= 80


@pytest.mark.parametrize("mean", ["tokens", "sentences"])
def test_replicas_share_the_same_batches(mean: str) -> None:
    common = ["--normalization", mean, "--dropout", 0]
    found = []
    for replicas in (1, 2, 4):
        log = f"{replicas}.jsonl"
        share = ["--replicas", replicas, "--batch-tokens", 160 // replicas]
        assert run(*common, *share, "--log", log, "--checkpoint-dir", log + ".d") == 0
        found.append(records(log))
    for others in found[1:]:
        assert len(others) == len(found[0])
        for one, other in zip(found[0], others, strict=True):
            assert one.get("tokens") == other.get("tokens")
            name = "loss" if "loss" in one else "held_out_perplexity"
            assert other[name] == one[name]


@pytest.mark.parametrize(
    "more",
    [
        [],
        ["--accumulate-tokens", "60", "--replicas", "3"],
        ["--average-checkpoints", "2"],
        ["--mixed-bfloat16", "--replicas", "2"],
    ],
    ids=["plain", "accumulated", "averaged", "bfloat16"],
)
@pytest.mark.parametrize("steps", [1, 4])
def test_a_resumed_run_gives_the_bits_of_the_uninterrupted_one(steps: int, more: list[str]) -> None:
    assert run("--log", "whole.jsonl", "--checkpoint-dir", "whole", *more) == 0
    last = next(r["step"] for r in reversed(records("whole.jsonl")) if "loss" in r)
    first_epoch = next(r["step"] for r in records("whole.jsonl") if "perplexity" in r)
    for stop in sorted({steps, first_epoch, first_epoch + 1, last}):
        assert run("--log", "log.jsonl", "--steps", stop, "--overwrite", *more) == 0
        done = [r for r in records("log.jsonl") if "loss" in r]
        assert done[-1]["step"] == stop
        resumed_at = min(stop + 1, last)
        assert run("--log", "log.jsonl", "--resume", "--steps", resumed_at, *more) == 0
        assert run("--log", "log.jsonl", "--resume", *more) == 0
        assert Path("log.jsonl").read_text() == Path("whole.jsonl").read_text()


@pytest.fixture
def made(monkeypatch: Any) -> list[Any]:
    """The trainings of all runs of a test."""
    found: list[Any] = []
    original = _training.Training.__init__

    def noted(self: Any, *arguments: Any) -> None:
        original(self, *arguments)
        found.append(self)

    monkeypatch.setattr(_training.Training, "__init__", noted)
    return found


def weights_in(model: Any, path: str) -> list[Any]:
    """Those of a checkpoint; the model is given them."""
    tf.train.Checkpoint(model=model).read(path).expect_partial()
    return [variable.numpy() for variable in model.trainable_variables]


def test_weights_are_averaged_over_the_last_epochs(capsys: Any, made: list[Any]) -> None:
    assert run("--epochs", 4, "--average-checkpoints", 3, "--log", "log.jsonl") == 0
    out = capsys.readouterr().out
    (training,) = made
    model = training.steps.model
    at_end = [variable.numpy() for variable in model.trainable_variables]
    fingerprint, judged = training.fingerprint(), training.judge()
    of_epochs = [weights_in(model, f"translate_checkpoints/ckpt-{n}") for n in (2, 3, 4)]
    for found, *values in zip(at_end, *of_epochs, strict=True):
        np.testing.assert_array_equal(found, np.mean(np.float64(values), axis=0).astype("f4"))
        assert not np.array_equal(found, values[-1])
    for found, saved in zip(
        at_end, weights_in(model, "translate_checkpoints/averaged"), strict=True
    ):
        np.testing.assert_array_equal(found, saved)
    *_, last_epoch, record = records("log.jsonl")
    assert {key: record[key] for key in ("averaged", "epoch", "fingerprint")} == {
        "averaged": 3, "epoch": 4, "fingerprint": fingerprint,
    }  # fmt: skip
    assert record["held_out_perplexity"] == judged["held_out_perplexity"]
    assert record["held_out_perplexity"] != last_epoch["held_out_perplexity"]
    line = next(line for line in out.splitlines() if line.startswith("Mean of the weights"))
    assert line.startswith(
        "Mean of the weights after the last 3 epochs, saved as translate_checkpoints/averaged; "
        f"held out: perplexity {record['held_out_perplexity']:.6g}"
    )
    assert out.count(", wanted '") == 5 * min(2, _training.SAMPLES)
    assert train.latest_checkpoint("translate_checkpoints") == "translate_checkpoints/ckpt-4"


def test_a_run_that_was_done_goes_on_from_its_own_weights(made: list[Any]) -> None:
    """Not from the mean; and a mean can be asked for afterwards."""
    assert run("--epochs", 3, "--log", "whole.jsonl", "--checkpoint-dir", "whole") == 0
    averaged = ["--average-checkpoints", "2", "--log", "log.jsonl"]
    assert run("--epochs", 2, *averaged) == 0
    first = Path("log.jsonl").read_text()
    assert run("--epochs", 2, *averaged, "--resume") == 0
    assert Path("log.jsonl").read_text() == first
    assert run("--epochs", 3, *averaged, "--resume") == 0
    *trained, _ = Path("log.jsonl").read_text().splitlines()
    assert trained == Path("whole.jsonl").read_text().splitlines()
    path = "translate_checkpoints/averaged"
    saved = weights_in(made[-1].steps.model, path)
    assert run("--epochs", 3, "--resume", "--checkpoint-dir", "whole", *averaged[:2]) == 0
    for a, b in zip(saved, weights_in(made[-1].steps.model, "whole/averaged"), strict=True):
        np.testing.assert_array_equal(a, b)
    assert run("--epochs", 1, "--overwrite", "--log", "log.jsonl") == 0
    assert not Path(path).exists()  # it was of the run before


def test_a_mean_is_not_replaced_unasked(capsys: Any) -> None:
    Path("translate_checkpoints/averaged").mkdir(parents=True)
    assert run("--average-checkpoints", 1) == 2
    assert "got translate_checkpoints with averaged. Continue that" in one_line(capsys)
    Path("translate_checkpoints/averaged/notes.txt").write_text("mine")
    assert run("--overwrite") == 0  # what is not a checkpoint is not deleted
    assert Path("translate_checkpoints/averaged/notes.txt").exists()


def test_a_run_that_stops_early_has_no_mean(capsys: Any) -> None:
    assert run("--steps", 3, "--average-checkpoints", 1) == 0
    assert "Mean of the weights" not in capsys.readouterr().out
    assert not Path("translate_checkpoints/averaged").exists()


def test_a_mean_of_more_epochs_than_there_are(capsys: Any) -> None:
    assert run("--average-checkpoints", 3) == 2
    assert "--average-checkpoints must be at most --epochs" in one_line(capsys)
    assert not Path("translate_checkpoints").exists()
    assert run() == 0
    train._state_file.record_save("translate_checkpoints/ckpt-2", max_to_keep=1)
    capsys.readouterr()
    assert run("--resume", "--average-checkpoints", 2) == 2
    assert "must be as many checkpoints as are averaged" in one_line(capsys)


def test_mixed_bfloat16_computes_in_it_and_says_what_the_processor_makes_of_it(
    capsys: Any, made: list[Any]
) -> None:
    for name, more in (("plain", []), ("mixed", ["--mixed-bfloat16"])):
        log = ["--log", f"{name}.jsonl", "--checkpoint-dir", name]
        assert run(*more, *log, "--dropout", 0, "--replicas", 2) == 0
        said = [x for x in capsys.readouterr().out.splitlines() if x.startswith("bfloat16: ")]
        assert said == ([_precision.notice()] if more else [])
    plain, mixed = (training.steps.model for training in made)
    assert (plain.compute_dtype, mixed.compute_dtype) == ("float32", "bfloat16")
    blocks = [*mixed.encoder, *mixed.decoder]
    assert {block.own.query_dense.compute_dtype for block in blocks} == {"bfloat16"}
    assert {variable.dtype for variable in mixed.trainable_variables} == {"float32"}
    pairs = zip(records("plain.jsonl"), records("mixed.jsonl"), strict=True)
    losses = [(a["loss"], b["loss"]) for a, b in pairs if "loss" in a]
    assert losses[0][0] == pytest.approx(losses[0][1], rel=0.01)
    assert all(a != b for a, b in losses)
    assert run("--resume", "--checkpoint-dir", "mixed", "--dropout", 0, "--replicas", 2) == 2
    assert "policy float32 instead of mixed_bfloat16" in one_line(capsys)


@pytest.mark.parametrize(
    ("flags", "has"),
    [
        ("fma avx512f avx512_bf16", "has avx512_bf16, but the kernels do not use it: they compute"),
        ("avx512_bf16 amx_bf16", "has amx_bf16, but the kernels do not use it: they compute"),
        ("fma avx2", "has no instructions for it: the kernels compute"),
        (None, "has no instructions for it: the kernels compute"),
    ],
)
def test_what_a_processor_gains_is_told_from_its_flags(
    monkeypatch: Any, flags: str | None, has: str
) -> None:
    if flags is not None:
        Path("cpuinfo").write_text(f"processor\t: 0\nmodel name\t: amx_bf16\nflags\t\t: {flags}\n")
    monkeypatch.setattr(_precision, "_CPUINFO", Path("cpuinfo"))
    assert f"this processor {has} in float32 and round. Steps are not faster" in _precision.notice()


def test_ctrl_c_stops_after_the_step_and_says_how_to_resume(capsys: Any, monkeypatch: Any) -> None:
    add = _records.RunLog.add

    def add_then_press(log: Any, record: dict[str, Any]) -> None:
        add(log, record)
        if record["step"] == 3:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(_records.RunLog, "add", add_then_press)
    assert run("--log", "log.jsonl", "--steps=9") == 130
    out = capsys.readouterr().out.splitlines()
    assert out[-2] == "Stopped after step 3; saved translate_checkpoints/ckpt-1. Resume with:"
    assert out[-1] == f"  samegrad translate {' '.join(SMALL)} --log log.jsonl --resume"


def test_pairs_that_are_too_long_are_left_out(capsys: Any) -> None:
    with Path("pairs.tsv").open("a") as file:
        file.write("one " * 200 + "\tun\n" + "red\t" + "rouge " * 300 + "\n")
    assert run("--steps", 1) == 0
    assert "; 2 left out, of 24 or more tokens." in capsys.readouterr().out


def test_beams_translate_the_samples(capsys: Any) -> None:
    assert run("--steps", 20, "--epochs", 1, "--beams", 3) == 0
    assert capsys.readouterr().out.count(", wanted '") == min(2, _training.SAMPLES)


def test_bad_input_ends_in_one_line(capsys: Any) -> None:
    assert run("--resume") == 2
    assert "--resume needs the vocabulary of the run" in one_line(capsys)
    assert run("--pairs", "absent.tsv") == 2
    assert "cannot read absent.tsv" in one_line(capsys)
    Path("bad.tsv").write_bytes(b"one\tun\none\n")
    assert run("--pairs", "bad.tsv") == 2
    assert "bad.tsv, line 2, must be two sentences" in one_line(capsys)
    Path("latin.tsv").write_bytes(b"one\tun\nold\tna\xefve\n")
    assert run("--pairs", "latin.tsv") == 2
    assert "latin.tsv, line 2, must be UTF-8: got the byte 0xef" in one_line(capsys)
    assert run("--vocabulary", 9) == 2
    assert "--vocabulary must fit the data" in one_line(capsys)
    assert run("--heads", 3) == 2
    assert "multiple of heads: got 8 and 3" in one_line(capsys)
    assert run("--replicas", 10**11) == 2
    assert "at most 65536 replicas" in one_line(capsys)
    assert run("--limit", 1) == 2
    assert "at least 2 pairs" in one_line(capsys)
    assert not Path("translate_checkpoints").exists()


def test_a_resumed_run_needs_its_settings_and_its_log(capsys: Any) -> None:
    assert run("--steps", 2, "--log", "log.jsonl") == 0
    capsys.readouterr()
    assert run() == 2
    assert "Continue that run with --resume" in one_line(capsys)
    for other in (["--seed", 5], ["--normalization", "sentences"], ["--held-out", 0.3]):
        assert run("--resume", "--log", "log.jsonl", *other) == 2
        assert "--resume needs the settings of the checkpoint" in one_line(capsys)
    assert run("--resume", "--width", 16) == 2
    assert "[checkpoint] shapes" in one_line(capsys)
    content = Path("log.jsonl").read_text()
    Path("other.jsonl").write_text(content.replace('"step": 2', '"step": 3'))
    assert run("--resume", "--log", "other.jsonl") == 2
    assert "must be the log of the run that is resumed" in one_line(capsys)
    Path("other.jsonl").write_text("my notes\n" * 2)
    assert run("--resume", "--log", "other.jsonl") == 2
    assert "must be a record of a run: got line 1" in one_line(capsys)


def test_a_checkpoint_at_two_places_of_the_training_is_refused(capsys: Any) -> None:
    assert run("--steps", 2) == 0
    path = Path("translate_checkpoints/ckpt-1")
    arrays, values = train._storage.load(path)
    capsys.readouterr()
    for key, value in (("progress/step", 7), ("epochs/epoch", 3)):
        changed = {**values, "values": {**values["values"], key: value}}
        train._storage.save(path, arrays, changed)
        assert run("--resume") == 2
        assert "must be at one place of the training: got step" in one_line(capsys)


def test_a_loss_that_is_not_finite_ends_the_run(capsys: Any, monkeypatch: Any) -> None:
    train_one = _training.Training.train_one_step

    def broken(self: Any) -> Any:
        record = train_one(self)
        return {**record, "loss": math.nan} if record and record["step"] == 3 else record

    monkeypatch.setattr(_training.Training, "train_one_step", broken)
    assert run("--log", "log.jsonl") == 2
    line = one_line(capsys)
    assert "every loss must be finite: got nan at step 3; no checkpoint was saved before" in line
    assert [r["step"] for r in records("log.jsonl")] == [1, 2]


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        ("--dropout", "1", "a number >= 0 and < 1"),
        ("--held-out", "0", "a number > 0 and < 1"),
        ("--smoothing", "nan", "a number >= 0 and < 1"),
        ("--batch-tokens", "0", "an integer >= 1"),
        ("--average-checkpoints", "0", "an integer >= 1"),
        ("--average-checkpoints", "two", "an integer >= 1"),
        ("--normalization", "batch", "invalid choice"),
    ],
)
def test_wrong_values_are_refused(capsys: Any, option: str, value: str, rule: str) -> None:
    with pytest.raises(SystemExit) as error:
        run(option, value)
    assert error.value.code == 2
    said = capsys.readouterr().err
    assert rule in said
    assert option in said


def test_a_step_is_traced_once_for_all_lengths(monkeypatch: Any) -> None:
    made = []
    original = _training.Training.__init__

    def noted(self: Any, *arguments: Any) -> None:
        original(self, *arguments)
        made.append(self)

    monkeypatch.setattr(_training.Training, "__init__", noted)
    assert run("--epochs", 4, "--replicas", 2) == 0
    (training,) = made
    lengths = {int(source.shape[1]) for source, _ in _shapes(training)}
    assert len(lengths) > 1
    assert training.steps.traces["train"] == training.steps.traces["evaluate"] == 1
    assert training.decoder.traces == 1


def _shapes(training: Any) -> Any:
    training.epochs.begin_next()
    for source, target in training.epochs.iterator:
        yield source.values[0], target.values[0]
