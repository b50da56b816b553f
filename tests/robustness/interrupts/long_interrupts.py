"""Interrupts a short program again and again, and looks whether anything is broken afterwards.

    python tests/robustness/interrupts/long_interrupts.py --count 1000
    python tests/robustness/interrupts/long_interrupts.py --kinds step --count 0   # every bytecode

Each case makes the program anew, interrupts one of its calls, and goes on: what the call has left
on, whether its state is that before or after it, and whether all later steps have the bits of a
program that nobody interrupted.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from inject import (
    NO_INSTRUCTIONS,
    build_starver,
    count_instructions,
    run_injected,
    run_signalled,
    run_starved,
)
from program import STEPS, Program, what_is_left_on

import samegrad as tf
from samegrad import _core

ERRORS = (KeyboardInterrupt, MemoryError, SystemExit)
Interrupt = Callable[[Callable[[], object]], object]


class BrokenError(AssertionError):
    """What an interrupt must not leave behind."""


def _expect(condition: object, what: str) -> None:
    if not condition:
        raise BrokenError(what)


def _random_numbers() -> tuple[int, ...]:
    state = _core.random_state()
    return state.seed, state.step, state.ordinal


class Case:
    """One call of the program, with what must hold before and after it."""

    def __init__(self, step: str) -> None:
        self._step = step
        program = self._made()
        self.states = []
        for _ in range(STEPS + 1):
            getattr(program, step)()
            self.states.append(program.state())

    def _made(self, folder: Path | None = None) -> Program:
        eager = self._step == "train_eagerly"
        # What eager code has drawn is drawn: the step that is tried again draws other numbers. And
        # its update of the metric is a call of its own.
        return Program(folder, dropout=0.0 if eager else 0.25, measures=not eager)

    def trained(self, steps: int, folder: Path | None = None) -> Program:
        """A program after so many steps."""
        program = self._made(folder)
        for _ in range(steps):
            getattr(program, self._step)()
        return program

    def known(self, program: Program) -> int:
        """How many steps were made; their state must be whole, if all variables exist."""
        state = program.state()
        steps: int = state["steps"]
        if len(state["values"]) < len(self.states[0]["values"]):
            return steps
        if steps:
            _expect(state == self.states[steps - 1], f"not the state after step {steps}")
        else:
            mean = [v for v in program.mean.variables if float(v) != 0.0]
            _expect(not mean, "a metric without a step")
        return steps

    def finish(self, program: Program) -> None:
        """The remaining steps."""
        for number in range(self.known(program), STEPS):
            getattr(program, self._step)()
            _expect(self.known(program) == number + 1, f"no step {number + 1}")

    def interrupted(self, program: Program, call: Callable[[], object], by: Interrupt) -> None:
        """Interrupts a call."""
        by(call)
        left = what_is_left_on()
        _expect(not left, f"left on: {', '.join(left)}")


def step_case(step: str, before: int) -> tuple[Callable[[Interrupt], None], Callable[[], Any]]:
    """A step is interrupted, after so many others."""
    case = Case(step)

    def check(by: Interrupt) -> None:
        program = case.trained(before)
        case.interrupted(program, getattr(program, step), by)
        _expect(case.known(program) in (before, before + 1), "another number of steps")
        case.finish(program)

    return check, lambda: getattr(case.trained(before), step)


def create_case() -> tuple[Callable[[Interrupt], None], Callable[[], Any]]:
    """The program is interrupted while it is made."""
    case = Case("train")

    def check(by: Interrupt) -> None:
        case.interrupted(Program(), Program, by)
        case.finish(Program())

    return check, lambda: Program


def advance_case() -> tuple[Callable[[Interrupt], None], Callable[[], Any]]:
    """The next batch is interrupted: it is the same one then, or the one after it."""

    def batch(program: Program) -> tuple[bytes, ...]:
        return tuple(part.numpy().tobytes() for value in program.current for part in value.values)

    program = Program()
    expected = [batch(program)]
    for _ in range(6):
        program.advance()
        expected.append(batch(program))

    def check(by: Interrupt) -> None:
        program = Program()
        program.advance()
        by(program.advance)
        left = what_is_left_on()
        _expect(not left, f"left on: {', '.join(left)}")
        place = program.batches._position()
        _expect(place in (2, 3), f"place {place} in the data")
        for number in range(place, 6):
            program.advance()
            _expect(batch(program) == expected[number], f"another batch {number}")

    def prepared() -> Any:
        program = Program()
        program.advance()
        return program.advance

    return check, prepared


def save_case(folder: Path) -> tuple[Callable[[Interrupt], None], Callable[[], Any]]:
    """A save is interrupted: the folder holds the older checkpoint, or the new one."""
    case = Case("train")

    def prepared() -> Program:
        shutil.rmtree(folder, ignore_errors=True)
        program = case.trained(1, folder)
        program.save()
        program.train()
        return program

    def check(by: Interrupt) -> None:
        program = prepared()
        case.interrupted(program, program.save, by)
        _expect(case.known(program) == 2, "a save changed the state")
        found = tf.train.latest_checkpoint(folder)
        program.save()
        other = case.trained(1, folder)
        other.checkpoint.restore(found)
        _expect(case.known(other) in (1, 2), "a checkpoint of no step")
        other = Program(folder)
        other.restore()
        case.finish(other)
        kept = {name.name for name in folder.iterdir() if not name.name.startswith("ckpt-")}
        _expect(kept <= {"checkpoint", ".lock"}, f"left over: {kept}")

    return check, lambda: prepared().save


def restore_case(
    folder: Path, built: bool
) -> tuple[Callable[[Interrupt], None], Callable[[], Any]]:
    """A restore is interrupted, or the first step after it, which makes what is waited for."""
    case = Case("train")
    shutil.rmtree(folder, ignore_errors=True)
    program = case.trained(1, folder)
    program.save()

    def prepared() -> tuple[Program, Callable[[], object]]:
        if built:
            program = case.trained(3, folder)
            return program, program.restore
        program = Program(folder)
        program.restore()
        return program, program.train

    def check(by: Interrupt) -> None:
        program, call = prepared()
        numbers = _random_numbers()
        case.interrupted(program, call, by)
        steps = case.known(program)
        if built:
            _expect(steps in (1, 3), f"restored to step {steps}")
            _expect(steps == 1 or _random_numbers() == numbers, "other random numbers")
            program.restore()
        case.finish(program)

    return check, lambda: prepared()[1]


def cases(folder: Path) -> dict[str, Callable[[], Any]]:
    """All of them by name; each is made when it is wanted."""
    return {
        "first trace": lambda: step_case("train", 0),
        "step": lambda: step_case("train", 1),
        "first run": lambda: step_case("train_without_function", 0),
        "run": lambda: step_case("train_without_function", 1),
        "first eager step": lambda: step_case("train_eagerly", 0),
        "eager step": lambda: step_case("train_eagerly", 1),
        "creation": create_case,
        "next": advance_case,
        "save": lambda: save_case(folder / "save"),
        "restore": lambda: restore_case(folder / "restore", built=True),
        "first trace after a restore": lambda: restore_case(folder / "pending", built=False),
    }


def places(total: int, count: int, seed: int) -> Iterator[int]:
    """`count` of the numbers up to `total`, all over them; all of them for 0."""
    if count == 0 or count >= total:
        yield from range(1, total + 1)
        if count > total:  # as many as are wanted, with other errors
            yield from places(total, count - total, seed + 1)
        return
    draw = random.Random(seed)
    for i in range(count):
        yield 1 + int((i + draw.random()) * total / count)


def injections(check: Any, prepare: Any, count: int, seed: int) -> tuple[int, list[str]]:
    """Exceptions at chosen instructions. Returns how many, and what was broken."""
    total = count_instructions(prepare())
    if total == 0:
        sys.exit(NO_INSTRUCTIONS)
    broken, done = [], 0
    for i, at in enumerate(places(total, count, seed)):
        error = ERRORS[i % len(ERRORS)]
        seen: list[Any] = []

        def by(
            call: Any, at: int = at, error: type[BaseException] = error, seen: list[Any] = seen
        ) -> None:
            injector, raised = run_injected(call, at, error)
            seen.append(injector)
            swallowed = injector.raised and type(raised) is not error
            _expect(not swallowed, f"the exception came as {raised!r:.200}")

        try:
            check(by)
        except BaseException as found:
            where = seen[0].where if seen else ""
            broken.append(f"{error.__name__} at {at} ({where}): {type(found).__name__}: {found}")
        done += bool(seen and seen[0].raised)
    return done, broken


def signals(check: Any, prepare: Any, count: int, seed: int) -> tuple[int, list[str]]:
    """Signals at random times of the call. Returns how many, and what was broken."""
    took = []
    for _ in range(5):
        call, began = prepare(), time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    broken, draw = [], random.Random(seed)
    for _ in range(count):
        delay = max(1e-6, draw.uniform(0, min(took)))

        def by(call: Any, delay: float = delay) -> None:
            raised = run_signalled(call, delay)
            _expect(type(raised) is KeyboardInterrupt, f"the signal came as {raised!r:.200}")

        try:
            check(by)
        except BaseException as found:
            broken.append(f"signal after {delay:.6f} s: {type(found).__name__}: {found}")
    return count, broken


def starvations(check: Any, prepare: Any, count: int, seed: int) -> tuple[int, list[str]]:
    """Allocations of the engine that fail. Returns how many, and what was broken."""
    total, _, raised = run_starved(prepare(), 0)
    _expect(raised is None, repr(raised))
    broken, done = [], 0
    for at in places(total, min(count, total), seed):
        print(f"allocation {at} of {total}", file=sys.stderr, end="\r", flush=True)

        def by(call: Any, at: int = at) -> None:
            nonlocal done
            _, failed, raised = run_starved(call, at)
            done += failed
            fits = raised is None or isinstance(raised, MemoryError)
            _expect(fits, f"the lack of memory came as {raised!r:.200}")

        try:
            check(by)
        except BaseException as found:
            broken.append(f"allocation {at}: {type(found).__name__}: {found}")
    return done, broken


def _fresh(delay: float) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(Path(__file__).with_name("fresh_process.py")), repr(delay)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def first_uses(count: int, seed: int) -> tuple[int, list[str]]:
    """Signals into the first use of the package by a process. Returns as the others."""
    seconds, digest = _fresh(0.0).stdout.split()
    broken, draw = [], random.Random(seed)
    for _ in range(count):
        delay = max(1e-6, draw.uniform(0, float(seconds)))
        found = _fresh(delay)
        if found.returncode != 0 or found.stdout.split()[1:] != [digest]:
            broken.append(f"signal after {delay:.6f} s: {found.stdout}{found.stderr[-1500:]}")
    return count, broken


def main() -> int:
    """Returns how many cases broke something."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="of each kind; 0: everywhere")
    parser.add_argument("--kinds", nargs="*", help="which calls are interrupted; all of them")
    parser.add_argument("--ways", nargs="*", default=["bytecode", "signal"])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if "allocation" in options.ways and "starve" not in os.environ.get("LD_PRELOAD", ""):
        with tempfile.TemporaryDirectory() as folder:
            preload = {"LD_PRELOAD": str(build_starver(Path(folder)))}
            command = [sys.executable, *sys.argv]
            return subprocess.run(command, env={**os.environ, **preload}, check=False).returncode
    warnings.simplefilter("ignore")
    worst = 0
    if "process" in options.ways:
        done, broken = first_uses(options.count, options.seed)
        print(f"first use, process: {done} interrupts, {len(broken)} broken", *broken[:8], sep="\n")
        worst += len(broken)
    with tempfile.TemporaryDirectory() as folder:
        for name, make in cases(Path(folder)).items():
            if options.kinds and name not in options.kinds:
                continue
            check, prepare = make()
            for way, run in WAYS.items():
                if way not in options.ways or (way == "signal" and name not in SIGNALLED):
                    continue
                began = time.perf_counter()
                done, broken = run(check, prepare, options.count, options.seed)
                seconds = time.perf_counter() - began
                print(f"{name}, {way}: {done} interrupts, {len(broken)} broken, {seconds:.0f} s")
                for line in broken[:8]:
                    print("   ", line)
                sys.stdout.flush()
                worst += len(broken)
    return min(worst, 125)


WAYS = {"bytecode": injections, "signal": signals, "allocation": starvations}
SIGNALLED = ("first trace", "step", "first run", "first eager step", "save", "restore")


if __name__ == "__main__":
    sys.exit(main())
