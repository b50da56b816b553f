"""Divides batches of random programs over the replicas of all ranks: divided.py SEED …

Each division is compared with one replica, and with as many replicas of one process.
"""

import dataclasses
import itertools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from fuzz.division import trials
from fuzz.divisions import differs, unequal
from fuzz.own import Tainted
from fuzz.worker import Runner

import samegrad as tf

rank, ranks = tf.distribute.mpi.rank(), tf.distribute.mpi.size()
runner = Runner()
alone = runner.strategy_of


def over_ranks(replicas):
    return tf.distribute.MultiWorkerMirroredStrategy(total_replicas=replicas)


def tell(line):
    """Write a line at once: the ranks have one output."""
    sys.stdout.write(f"rank {rank}: {line}\n")
    sys.stdout.flush()


def ran(program, mode, strategy_of):
    """Return the results of a mode without outputs, of which a rank has only its replicas'."""
    runner.strategy_of = strategy_of
    outcome = runner.run(program, mode)
    for step in outcome.steps:
        del step["values"][: len(program.outputs)]
    return outcome


draws = 0
for trial in itertools.chain.from_iterable(map(trials, map(int, sys.argv[1:]))):
    program, silent = trial.program, dataclasses.replace(trial.program, outputs=[])
    one = ran(program, trial.modes[0], alone)
    for mode in trial.modes[1:]:
        if len(mode.shares) < ranks or one.error:
            continue
        draws += 1
        together, apart = ran(program, mode, alone), ran(program, mode, over_ranks)
        if together.error or apart.error:
            said = "" if together.error == apart.error else f"{together.error}, {apart.error}"
        else:
            said = unequal(silent, together, apart, Tainted.by(program, []))
        if said := said or differs(silent, one, apart, mode.shares):
            tell(f"seed {program.seed}, {mode}: {said}")
tell(f"{draws} draws")
