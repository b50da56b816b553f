"""Record the runs that pictures.py draws, as one JSON file.

    python record_pictures.py --peer-python PEERS/bin/python results/2026-11-29-pictures.json
    python record_pictures.py --train samegrad 2 3      # two runs, a line of JSON each

A small network learns from 1,000 examples in batches of 64, the last of 40, divided among
replicas. PyTorch averages the gradients of the replicas as DistributedDataParallel does. Its loss
is the usual one (each replica averages its own examples) or the sum of all, divided by the examples
of all.
`peers.py` measures time and memory.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
from compare import machine, raise_priority

HERE = pathlib.Path(__file__).resolve().parent
REPLICAS = (1, 2, 3, 8)
EXAMPLES, BATCH, EPOCHS, RATE = 1000, 64, 3, 0.05
COST_REPLICAS = (1, 2, 4, 8, 16)
IMAGES = 256  # of a step, over all replicas
Run = dict[str, Any]


def data() -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Return examples, targets and the first weights."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(EXAMPLES, 8)).astype(np.float32)
    shapes = [(8, 16), (16,), (16, 1), (1,)]
    weights = [draw.normal(scale=0.3, size=shape).astype(np.float32) for shape in shapes]
    return x, np.sin(x.sum(axis=1, keepdims=True)).astype(np.float32), weights


def train_samegrad(replicas: int) -> None:
    """Train in this process, and print the run."""
    import samegrad as tf

    x, y, first = data()
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        weights = [tf.Variable(value) for value in first]
        optimizer = tf.keras.optimizers.SGD(RATE)

    def step(batch: Any) -> Any:
        with tf.GradientTape() as tape:
            hidden = tf.nn.relu(batch[0] @ weights[0] + weights[1])
            errors = tf.square(hidden @ weights[2] + weights[3] - batch[1])
            loss = tf.nn.compute_average_loss(tf.reduce_mean(errors, axis=1))
        gradients = tape.gradient(loss, weights)
        optimizer.apply_gradients(list(zip(gradients, weights, strict=True)))
        return loss

    losses, steps = [], []
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH).repeat(EPOCHS)
    for batch in strategy.experimental_distribute_dataset(dataset):
        loss = strategy.reduce("SUM", strategy.run(step, args=(batch,)), axis=None)
        losses.append(float(loss))
        steps.append(flat([weight.numpy() for weight in weights]))
    print_run(losses, steps, tf.fingerprint(weights), importlib.metadata.version("samegrad"))


def train_torch(replicas: int, global_sum: bool) -> None:
    """Train as DistributedDataParallel does, with all replicas in this process."""
    import torch

    torch.set_num_threads(1)
    x, y, first = data()
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    weights = list(model.parameters())
    for parameter, value in zip(weights, first, strict=True):
        parameter.data = torch.tensor(value.T.copy())
    optimizer = torch.optim.SGD(weights, RATE)
    losses, steps = [], []
    for start in [*range(0, EXAMPLES, BATCH)] * EPOCHS:
        batch = min(BATCH, EXAMPLES - start)
        share, total = -(-batch // replicas), 0.0
        sums = [torch.zeros_like(weight) for weight in weights]
        for rank in range(replicas):
            rows = slice(start + rank * share, start + min(batch, (rank + 1) * share))
            errors = (model(torch.tensor(x[rows])) - torch.tensor(y[rows])).square()
            loss = errors.sum() * replicas / batch if global_sum else errors.mean()
            for gradient, own in zip(sums, torch.autograd.grad(loss, weights), strict=True):
                gradient += own
            total += float(loss) / replicas
        for weight, gradient in zip(weights, sums, strict=True):
            weight.grad = gradient / replicas
        optimizer.step()
        losses.append(total)
        steps.append(flat([weight.detach().numpy().T for weight in weights]))
    print_run(losses, steps, "", torch.__version__)


def flat(weights: list[np.ndarray]) -> list[float]:
    return [float(value) for weight in weights for value in weight.ravel()]


def print_run(
    losses: list[float], steps: list[list[float]], fingerprint: str, version: str
) -> None:
    found = {"losses": losses, "weights": steps, "fingerprint": fingerprint, "version": version}
    print(json.dumps(found))


def explain_cnn() -> None:
    """Print the measured plan of a step of the tutorial's CNN, 2 replicas of 64 images."""
    import samegrad as tf

    layers = tf.keras.layers
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        network = [layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D()]
        network += [layers.Conv2D(64, 3, activation="relu"), layers.MaxPooling2D()]
        network += [layers.Flatten(), layers.Dense(64, activation="relu"), layers.Dense(10)]
        model = tf.keras.Sequential(network)
        model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x = tf.random.normal([128, 28, 28, 1], seed=1)
    dataset = tf.data.Dataset.from_tensor_slices((x, np.arange(128) % 10)).batch(128)
    model.fit(dataset, verbose=0)
    (batch,) = strategy.experimental_distribute_dataset(dataset)
    plan = strategy.explain(model.train_step, args=(batch,), measure=50)
    steps = [
        {"kind": s.kind, "operations": [o.name for o in s.operations], "least": s.least}
        for s in plan.steps
    ]
    print(json.dumps({"steps": steps, "least": plan.least}))


def recorded(python: str, *arguments: str) -> list[Run]:
    """Return the lines of JSON that a program prints."""
    print(*arguments, file=sys.stderr, flush=True)
    process = subprocess.Popen(
        [python, *arguments], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    raise_priority(process.pid, -10)  # as compare.py does
    output, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{arguments}: exit status {process.returncode}")
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def compared(run: Run, one: Run) -> Run:
    """Return a run with the difference of its weights from those of one replica."""
    differences = np.abs(np.array(run["weights"]) - np.array(one["weights"])).max(axis=1)
    return {"losses": run["losses"], "fingerprint": run["fingerprint"],
            "difference": [float(f"{value:.3g}") for value in differences]}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("json", nargs="?", type=pathlib.Path)
    parser.add_argument("--peer-python", default=sys.executable, help="has requirements.txt")
    parser.add_argument("--train", nargs="+", metavar=("NAME", "REPLICAS"), help="some runs")
    parser.add_argument("--explain", action="store_true", help="a single plan")
    options = parser.parse_args()
    if options.explain:
        explain_cnn()
    elif options.train:
        name, *counts = options.train
        for count in map(int, counts):
            if name == "samegrad":
                train_samegrad(count)
            else:
                train_torch(count, global_sum=name == "torch_sum")
    else:
        options.json.write_text(json.dumps(all_runs(options.peer_python), indent=1) + "\n")


def all_runs(peer: str) -> Run:
    """Return everything that the pictures show."""
    me, found, versions = __file__, {}, {}
    for name in ("samegrad", "torch", "torch_sum"):
        python = sys.executable if name == "samegrad" else peer
        lines = recorded(python, me, "--train", name, *map(str, REPLICAS))
        runs = dict(zip(REPLICAS, lines, strict=True))
        found[name] = {count: compared(run, runs[1]) for count, run in runs.items()}
        versions[name] = runs[1]["version"]
    costs = {}
    for count in COST_REPLICAS:
        job = [str(HERE / "peers.py"), "cnn", "samegrad", "--replicas", str(count)]
        job += ["--batch", str(IMAGES // count), "--steps", *"2555555"]
        costs[count] = cost(recorded(sys.executable, *job))
    step = recorded(sys.executable, me, "--explain")[0]
    command = "python tests/benchmarks/record_pictures.py --peer-python PEERS/bin/python FILE.json"
    about = machine() | {"command": command, "load": os.getloadavg()[0], "versions": versions}
    return about | {"curves": found, "costs": costs, "step": step}


def cost(reports: list[Run]) -> Run:
    """Return the fastest turn and the memory of a contestant."""
    turns = reports[1:]
    return {
        "step_ms": min(turn["step_ms"] for turn in turns),
        "memory_mib": max(turn["peak_memory_mib"] for turn in turns),
    }


if __name__ == "__main__":
    main()
