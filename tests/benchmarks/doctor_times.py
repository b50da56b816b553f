"""How long `samegrad_doctor.diagnose` takes for a module of ten million parameters.

    PEERS/bin/python tests/benchmarks/doctor_times.py [--runs 3] [--parameters N] [--json FILE]

Needs PyTorch, NumPy and samegrad_doctor; the engine is not used. Each run is a process of its own,
whose time is that of `diagnose` with the first step (for DistributedDataParallel with the start of
its two processes on gloo, which import PyTorch). Goals on two cores: 5 s simulated, 10 s over
processes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

GOALS = {"simulated": 5.0, "ddp": 10.0}  # seconds
CAUSE = "mean of the replicas' means"
INPUTS = 64


def build() -> tuple[Any, Any]:
    """A module of as many parameters as the environment says, and its loss on a replica."""
    import torch

    width = int(os.environ["DOCTOR_PARAMETERS"]) // (2 * INPUTS)
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(INPUTS, width, bias=False), torch.nn.Tanh(),
        torch.nn.Linear(width, INPUTS, bias=False),
    )  # fmt: skip
    return model, mean_loss


def mean_loss(model: Any, batch: Any) -> Any:
    """The local mean, which is wrong for unequal per-replica batches."""
    x, y = batch
    return (model(x.float()) - y.float()).square().mean()


def one_run(kind: str) -> dict[str, Any]:
    """Seconds of one diagnosis in this process."""
    from samegrad_doctor import diagnose
    from samegrad_doctor.adapters import ddp_step, ddp_workers, torch_step

    rng = np.random.default_rng(0)
    batch = (rng.normal(size=(12, INPUTS)), rng.normal(size=(12, INPUTS)))
    calls = 0
    begin = time.perf_counter()
    with ddp_workers():
        step = ddp_step(build) if kind == "ddp" else torch_step(*build())

        def counted(shares: list[Any]) -> Any:
            nonlocal calls
            calls += 1
            return step(shares)

        counted.takes_empty_shards = False  # type: ignore[attr-defined]
        replicas = (2,) if kind == "ddp" else (2, 3)
        found = diagnose(counted, batch, replicas=replicas)
        seconds = time.perf_counter() - begin
    if found.cause is None or found.cause.name != CAUSE:
        raise SystemExit(f"[doctor_times] the diagnosis must be {CAUSE!r}: got\n{found}")
    return {"seconds": seconds, "steps": calls}


def measured(kind: str, runs: int, parameters: int) -> dict[str, Any]:
    """The median of several processes."""
    found = []
    environment = {**os.environ, "DOCTOR_PARAMETERS": str(parameters)}
    for _ in range(runs):
        done = subprocess.run(
            [sys.executable, str(Path(__file__).resolve()), "--only", kind],
            env=environment, stdout=subprocess.PIPE, text=True, check=True,
        )  # fmt: skip
        found.append(json.loads(done.stdout))
    seconds = [one["seconds"] for one in found]
    return {
        "median_s": median(seconds), "best_s": min(seconds), "worst_s": max(seconds),
        "steps": found[0]["steps"], "goal_s": GOALS[kind], "parameters": parameters,
    }  # fmt: skip


def report(found: dict[str, dict[str, Any]]) -> str:
    """A line for each kind."""
    return "\n".join(
        f"{kind:10s} {own['parameters']:,} parameters, {own['steps']} steps: median "
        f"{own['median_s']:.1f} s (best {own['best_s']:.1f}, worst {own['worst_s']:.1f}; "
        f"goal {own['goal_s']:.0f})"
        for kind, own in found.items()
    )


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Measures both kinds, or runs one of them here."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--parameters", type=int, default=10_000_000)
    parser.add_argument("--json")
    parser.add_argument("--only", choices=list(GOALS), help="one run, here")
    options = parser.parse_args(arguments)
    if options.only:
        found: dict[str, Any] = one_run(options.only)
        print(json.dumps(found))
        return found
    least = 2 * INPUTS
    if options.runs < 1 or options.parameters < least:
        parser.error(
            f"[doctor_times] it takes a run and {least} parameters at least: got {options}."
        )
    found = {kind: measured(kind, options.runs, options.parameters) for kind in GOALS}
    print(report(found))
    if options.json:
        Path(options.json).write_text(json.dumps(found))
    return found


if __name__ == "__main__":
    main()
