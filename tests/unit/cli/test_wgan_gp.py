"""The whole job on a small data set: what it prints, watches, stops, resumes and refuses."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad import cli, train
from samegrad.cli import _records
from samegrad.cli._wgan import _training
from samegrad.cli._wgan._steps import WganSteps
from samegrad.cli.fashion_mnist import create_model
from samegrad.keras.datasets import fashion_mnist

pytest.importorskip("tqdm")
# Batches of 8, 8 and 4; judged after iterations 0, 5, 10 and 12, saved after 6 and 12.
SMALL = ["--limit", "20", "--batch-size", "8", "--width", "2", "--iterations", "12"]
SMALL += ["--quality-every", "5", "--save-every", "6", "--fingerprint"]


@pytest.fixture(autouse=True)
def in_own_folder(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def small_data(monkeypatch: Any) -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (40, 28, 28)).astype(np.uint8), np.zeros(40, np.uint8)
    monkeypatch.setattr(
        fashion_mnist, "load_data", lambda path=None: ((images, labels), (images[20:], labels))
    )


def run(*arguments: object) -> int:
    return cli.main(["wgan-gp", *SMALL, *map(str, arguments)])


def records(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def same_logs(one: str, other: str) -> bool:
    return Path(one).read_text() == Path(other).read_text()


def one_line(capsys: Any) -> str:
    lines = [line for line in capsys.readouterr().err.splitlines() if "iterations in" not in line]
    assert len(lines) == 1, lines
    assert lines[0].startswith("samegrad: error: ")
    return str(lines[0])


def test_what_a_run_prints_and_writes(capsys: Any) -> None:
    pytest.importorskip("matplotlib")
    assert run("--log", "log.jsonl", "--plot", "curves.png", "--grid", "grid.png") == 0
    out = capsys.readouterr().out.splitlines()
    steps = [r for r in records("log.jsonl") if "fingerprint" in r]
    judged = [r for r in records("log.jsonl") if "sliced_wasserstein" in r]
    assert [r["step"] for r in steps] == list(range(1, 13))
    assert [r["step"] for r in judged] == [0, 5, 10, 12]
    for number, record in enumerate(judged):
        distance = record["sliced_wasserstein"]
        assert out[number] == f"Iteration {record['step']}: sliced wasserstein {distance:.4f}"
    assert out[4] == f"Fingerprint of the weights after iteration 12: {steps[-1]['fingerprint']}"
    for record in steps:
        loss = 10 * record["penalty"] - record["wasserstein"]
        assert record["critic_loss"] == pytest.approx(loss, rel=1e-5, abs=1e-5)
        assert record["gradient_norm"] > 0
    rates = [record["learning_rate"] for record in steps]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < rates[0] / 10
    for picture in ("curves.png", "grid.png"):
        assert Path(picture).read_bytes().startswith(b"\x89PNG")


def test_replicas_do_not_change_the_log() -> None:
    assert run("--log", "1.jsonl", "--checkpoint-dir", "1") == 0
    two = ["--replicas", 2, "--batch-size", 4]
    assert run("--log", "2.jsonl", "--checkpoint-dir", "2", *two) == 0
    assert same_logs("1.jsonl", "2.jsonl")


@pytest.mark.parametrize("lipschitz", ["gp", "clip"])
@pytest.mark.parametrize("steps", [1, 5, 6, 11])
def test_a_resumed_run_gives_the_bits_of_the_uninterrupted_one(steps: int, lipschitz: str) -> None:
    options = ["--lipschitz", lipschitz]
    assert run("--log", "whole.jsonl", "--checkpoint-dir", "whole", *options) == 0
    assert run("--log", "log.jsonl", "--steps", steps, *options) == 0
    assert [r["step"] for r in records("log.jsonl") if "lambda" in r][-1] == steps
    assert run("--log", "log.jsonl", "--resume", *options) == 0
    assert same_logs("log.jsonl", "whole.jsonl")


@pytest.fixture
def classifier() -> Path:
    """The folder of a network as `samegrad fashion-mnist` saves it."""
    tf.keras.utils.set_random_seed(3)
    model = create_model()
    model.build((None, 28, 28, 1))
    train.Checkpoint(model=model).save("classifier/ckpt")
    return Path("classifier")


@pytest.mark.parametrize("lipschitz", ["gp", "clip"])
def test_resumed_run_has_the_quality_curves_and_pictures_of_the_uninterrupted_one(
    lipschitz: str, classifier: Path
) -> None:
    pytest.importorskip("matplotlib")
    options = ["--lipschitz", lipschitz, "--classifier", classifier]

    def outputs(folder: str) -> list[object]:
        files = {"log": "log", "plot": "curves.png", "grid": "grid.png", "checkpoint-dir": "saved"}
        return [f"--{option}={folder}/{name}" for option, name in files.items()]

    for folder in ("whole", "parts"):
        Path(folder).mkdir()
    assert run(*options, *outputs("whole")) == 0
    assert run(*options, *outputs("parts"), "--steps", 7) == 0
    stopped = Path("parts/grid.png").read_bytes()
    assert run(*options, *outputs("parts"), "--resume", "--replicas", 2, "--batch-size", 4) == 0
    for name in ("log", "curves.png", "grid.png"):
        assert Path("whole", name).read_bytes() == Path("parts", name).read_bytes()
    assert Path("parts/grid.png").read_bytes() != stopped
    judged = [record for record in records("parts/log") if "confidence" in record]
    assert [record["step"] for record in judged] == [0, 5, 10, 12]
    for record in judged:
        assert 0.1 <= record["confidence"] <= 1
        assert 0 <= record["entropy"] <= record["class_entropy"] <= np.log(10)


def test_clipping_and_penalty_begin_alike_and_train_differently() -> None:
    for lipschitz in ("gp", "clip"):
        assert (
            run("--lipschitz", lipschitz, "--log", lipschitz, "--checkpoint-dir", f"{lipschitz}s")
            == 0
        )
    penalized, clipped = records("gp"), records("clip")
    assert penalized[0] == clipped[0]  # the images before the first iteration
    assert [r["step"] for r in penalized] == [r["step"] for r in clipped]
    assert penalized[-1]["sliced_wasserstein"] != clipped[-1]["sliced_wasserstein"]
    norms = [[r["gradient_norm"] for r in run if "lambda" in r] for run in (penalized, clipped)]
    assert norms[0][-1] != norms[1][-1]


def test_killed_at_any_moment_and_resumed(tmp_path: Path) -> None:
    """A process killed without warning: the log becomes that of a whole run."""
    program = tmp_path / "job.py"
    program.write_text(
        "import sys, numpy as np\n"
        "from samegrad import cli\n"
        "from samegrad.keras.datasets import fashion_mnist\n"
        "images = np.random.default_rng(0).integers(0, 256, (40, 28, 28)).astype(np.uint8)\n"
        "fashion_mnist.load_data = lambda path=None: ((images, images), (images[20:], images))\n"
        "sys.exit(cli.main(sys.argv[1:]))\n"
    )
    arguments = ["wgan-gp", *SMALL, "--iterations", "60"]
    command = [sys.executable, str(program), *arguments]
    assert (
        subprocess.run([*command, "--log", "whole.jsonl", "--checkpoint-dir", "w"]).returncode == 0
    )
    command += ["--log", "log.jsonl"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while train.latest_checkpoint("wgan_checkpoints") is None:
        assert process.poll() is None, process.stderr.read()  # type: ignore[union-attr]
        time.sleep(0.005)
    process.kill()
    process.communicate()
    assert subprocess.run([*command, "--resume"]).returncode == 0
    assert same_logs("log.jsonl", "whole.jsonl")


def test_ctrl_c_stops_after_the_iteration_and_says_how_to_resume(
    capsys: Any, monkeypatch: Any
) -> None:
    add = _records.RunLog.add

    def add_then_press(log: Any, record: dict[str, Any]) -> None:
        add(log, record)
        if record["step"] == 7:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(_records.RunLog, "add", add_then_press)
    assert run("--log", "log.jsonl", "--steps=9") == 130
    out = capsys.readouterr().out.splitlines()
    assert out[-2] == "Stopped after iteration 7; saved wgan_checkpoints/ckpt-2. Resume with:"
    assert out[-1] == f"  samegrad wgan-gp {' '.join(SMALL)} --log log.jsonl --resume"


def test_lambda_and_rate_change_at_a_resume_without_another_trace(
    capsys: Any, monkeypatch: Any
) -> None:
    assert run("--log", "log.jsonl", "--steps", 6) == 0
    capsys.readouterr()
    others = ["--lambda", 2.5, "--learning-rate", 0.01, "--schedule", "constant"]
    assert run("--log", "log.jsonl", "--resume", *others) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[1].startswith('From here on {"lambda": 2.5, "learning rate": 0.01, "schedule": "con')
    steps = [record for record in records("log.jsonl") if "lambda" in record]
    assert [record["lambda"] for record in steps] == 6 * [10.0] + 6 * [2.5]
    assert [record["learning_rate"] for record in steps[6:]] == 6 * [0.01]


def test_lambda_changes_between_steps_without_another_trace() -> None:
    traces = []
    steps = WganSteps(tf.distribute.MirroredStrategy(replicas=2), width=2)
    original = steps._critic_step

    def counted(real: Any) -> Any:
        traces.append(1)
        return original(real)

    steps.critic_step = steps._summed(counted)
    images = np.random.default_rng(0).uniform(-1, 1, (8, 28, 28, 1)).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices(images).batch(8).repeat()
    batches = iter(steps.strategy.experimental_distribute_dataset(dataset))
    for weight, rate in ((10.0, 1e-3), (0.0, 1e-4), (5.0, 1e-2)):
        steps.penalty_weight.assign(weight)
        steps.critic_optimizer.learning_rate.assign(rate)
        found = steps.critic_step(next(batches))
        loss = weight * float(found["penalty"]) - float(found["wasserstein"])
        assert float(found["critic_loss"]) == pytest.approx(loss, rel=1e-5, abs=1e-6)
    assert len(traces) == 1


def test_clipped_weights_stay_within_their_bound(monkeypatch: Any) -> None:
    made = []
    original = _training.Training.__init__

    def noted(self: Any, *arguments: Any) -> None:
        original(self, *arguments)
        made.append(self)

    monkeypatch.setattr(_training.Training, "__init__", noted)
    assert run("--lipschitz", "clip", "--clip", 0.01) == 0
    largest = max(float(abs(v.numpy()).max()) for v in made[0].steps.critic.trainable_variables)
    assert largest == np.float32(0.01)
    assert float(made[0].steps.penalty_weight) == 0


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        ("--lambda", "-1", "a number >= 0"),
        ("--lambda", "nan", "a number >= 0"),
        ("--n-critic", "0", "an integer >= 1"),
        ("--clip", "0", "a number > 0"),
        ("--learning-rate", "inf", "a number > 0"),
        ("--iterations", "0", "an integer >= 1"),
        ("--lipschitz", "none", "invalid choice"),
    ],
)
def test_wrong_values_are_refused(capsys: Any, option: str, value: str, rule: str) -> None:
    with pytest.raises(SystemExit) as error:
        run(option, value)
    assert error.value.code == 2
    said = capsys.readouterr().err
    assert rule in said
    assert option in said


def test_a_figure_that_is_not_finite_ends_the_run_and_loses_nothing(
    capsys: Any, monkeypatch: Any
) -> None:
    train_one = _training.Training.train_one_iteration

    def broken(self: Any) -> Any:
        if self.progress.step == 8:
            kernel = self.steps.critic.trainable_variables[0]
            kernel.assign(np.full(kernel.shape, np.inf, np.float32))
        return train_one(self)

    assert run("--log", "whole.jsonl", "--checkpoint-dir", "whole") == 0
    capsys.readouterr()
    with monkeypatch.context() as patch:
        patch.setattr(_training.Training, "train_one_iteration", broken)
        assert run("--log", "log.jsonl") == 2
    line = one_line(capsys)
    assert "every figure must be finite: got " in line
    assert "at iteration 9; the checkpoint wgan_checkpoints/ckpt-1 is of before" in line
    assert "lower --learning-rate" in line
    assert records("log.jsonl") == records("whole.jsonl")[: len(records("log.jsonl"))]
    assert run("--log", "log.jsonl", "--resume") == 0
    assert same_logs("log.jsonl", "whole.jsonl")


def test_bad_input_ends_in_one_line(capsys: Any) -> None:
    assert run("--resume") == 2
    assert "--resume needs a checkpoint: got the folder wgan_checkpoints" in one_line(capsys)
    assert run("--classifier", "absent") == 2
    assert "Run `samegrad fashion-mnist` first" in one_line(capsys)
    assert run("--grid", "grid.xyz") == 2
    assert "--grid must end in" in one_line(capsys)
    assert run("--replicas", 10**11) == 2
    assert "at most 65536 replicas" in one_line(capsys)
    assert run("--steps", 2) == 0
    capsys.readouterr()
    assert run() == 2
    assert "Continue that run with --resume" in one_line(capsys)
    for other in (["--seed", 5], ["--n-critic", 3], ["--width", 3], ["--lipschitz", "clip"]):
        assert run("--resume", *other) == 2
        line = one_line(capsys)
        assert (
            "--resume needs the settings of the checkpoint" in line or "[checkpoint] shapes" in line
        )


def test_the_log_of_another_run_is_refused(capsys: Any) -> None:
    assert run("--log", "other.jsonl", "--checkpoint-dir", "other", "--seed", 5) == 0
    assert run("--log", "log.jsonl", "--steps", 6) == 0
    content = Path("other.jsonl").read_bytes()
    capsys.readouterr()
    assert run("--log", "other.jsonl", "--resume") == 2
    assert "must be the log of the run that is resumed" in one_line(capsys)
    assert Path("other.jsonl").read_bytes() == content
    Path("log.jsonl").write_text("my notes\n")
    assert run("--log", "log.jsonl", "--resume") == 2
    assert "must be a record of a run: got line 1" in one_line(capsys)
    assert Path("log.jsonl").read_text() == "my notes\n"


def test_a_checkpoint_at_two_places_of_the_training_is_refused(capsys: Any) -> None:
    assert run("--steps", 6) == 0
    path = Path("wgan_checkpoints/ckpt-1")
    arrays, values = train._storage.load(path)
    capsys.readouterr()
    for key, value in (("progress/step", 7), ("iterator/position", 3)):
        changed = {**values, "values": {**values["values"], key: value}}
        train._storage.save(path, arrays, changed)
        assert run("--resume") == 2
        assert "must be at one place of the training: got iteration" in one_line(capsys)
