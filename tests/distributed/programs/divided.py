"""Divides batches of random programs over the replicas of all ranks: divided.py FIRST SEEDS."""

import itertools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from fuzz.division import trials
from fuzz.divisions import differs
from fuzz.worker import Runner

import samegrad as tf

first, seeds = map(int, sys.argv[1:])
rank, ranks = tf.distribute.mpi.rank(), tf.distribute.mpi.size()
runner = Runner()
alone = runner.strategy_of


def over_ranks(replicas):
    return tf.distribute.MultiWorkerMirroredStrategy(total_replicas=replicas)


def tell(line):
    """Write a line at once: the ranks have one output."""
    sys.stdout.write(f"rank {rank}: {line}\n")
    sys.stdout.flush()


draws = 0
for trial in itertools.chain.from_iterable(map(trials, range(first, first + seeds))):
    runner.strategy_of = alone
    one = runner.run(trial.program, trial.modes[0])
    runner.strategy_of = over_ranks
    for mode in trial.modes[1:]:
        if len(mode.shares) < ranks or one.error:
            continue
        draws += 1
        outcome = runner.run(trial.program, mode)
        for a, b in zip(one.steps, outcome.steps, strict=False):
            rows = len(trial.program.outputs)  # a rank has those of its replicas
            b["values"][:rows] = a["values"][:rows]
        if said := differs(trial.program, one, outcome, mode.shares):
            tell(f"seed {trial.program.seed}, {mode}: {said}")
tell(f"{draws} draws")
