"""Runs programs on the engine, in a process of its own with an environment of its own."""

from __future__ import annotations

import dataclasses
import os
import pickle
import re
import struct
import sys
import warnings
from typing import Any, BinaryIO

import numpy as np

from fuzz.placement import placed
from fuzz.program import Program, direction, input_data, variable_data
from fuzz.source import mapped_text, setup_text, step_text


@dataclasses.dataclass(frozen=True)
class Mode:
    """One way to run a program.

    Args:
        kind: "eager", "function" (both without a strategy), "run", "run in function"; "reduced":
            "run in function" whose losses and gradients are reduced in it; "mapped" and
            "mapped by Python": a dataset's function of elements that are a whole batch each, run by
            the engine's program where there is one, and by Python.
        shares: Examples of each replica.
        off: The pass or part of the plan that is switched off.
        threads: How many.
        cover: Whether the paths that operations take are counted.
        per_count: Whether the program asks for numbers of examples and does something else for
            each: replicas with other numbers have a trace of their own.
        hides: Whether the step keeps its gradients to itself, so that updates may be joined with
            the sums, and touch only rows that have a gradient.
        open_sizes: Whether the function's signature leaves every size of every argument open: it
            is traced with symbols in their place.
        resized: Whether the same function has run with other numbers of examples before.
        layout: A name in `placement.LAYOUTS`: where the replicas' examples are in memory.
    """

    kind: str
    shares: tuple[int, ...]
    off: str = ""
    threads: int = 2
    cover: bool = False
    per_count: bool = False
    hides: bool = False
    open_sizes: bool = False
    resized: bool = False
    layout: str = "apart"

    def distributes(self) -> bool:
        """Whether arguments are what a strategy distributed, whose axis 0 counts examples.

        One replica in a function is given the arrays themselves.
        """
        if self.kind == "run in function":
            return len(self.shares) > 1
        return self.kind in ("run", "reduced")

    def __str__(self) -> str:
        said = f"{self.kind} {self.shares}, {self.threads} threads"
        said += ", a trace per count" if self.per_count else ""
        said += ", gradients hidden" if self.hides else ""
        said += ", all sizes open" if self.open_sizes else ""
        said += ", after other sizes" if self.resized else ""
        said += f", in memory: {self.layout}" if self.layout != "apart" else ""
        return said + (f", without {self.off}" if self.off else "")


@dataclasses.dataclass
class Outcome:
    """What a mode gave.

    Args:
        steps: For each: values [output][replica], gradients and second derivatives
            [variable][replica] (None: none), variables after it.
        error: What was raised, "" if nothing was.
        plan: What explain() says.
        operations: Names of the rows in the traced program.
        programs: Of a dataset's function: how many the engine runs.
    """

    steps: list[dict[str, Any]]
    error: str = ""
    plan: str = ""
    operations: tuple[str, ...] = ()
    programs: int = 0


def _parts(value: Any) -> list[np.ndarray] | None:
    if value is None:
        return None
    if hasattr(value, "values") and not hasattr(value, "numpy"):
        return [_array(v) for v in value.values]
    return [_array(value)]


def _array(value: Any) -> np.ndarray:
    """As NumPy counts: numbers of 16 bits as float32."""
    array = np.array(value.numpy())
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


class Runner:
    """Runs modes; imports the engine when made.

    Attributes:
        strategy_of: Makes a strategy of so many replicas.
    """

    def __init__(self) -> None:
        import samegrad
        from samegrad import _core
        from samegrad._function import trace as _trace

        self.tf, self.core, self.trace = samegrad, _core, _trace
        self.seen: list[Any] = []
        self.strategy_of = lambda replicas: samegrad.distribute.MirroredStrategy(replicas=replicas)
        samegrad.config.set_loss_normalization_check("off")
        samegrad.config.set_replica_dependence_check("off")
        compiled = _trace.compiled

        def noted(*args: Any) -> Any:
            made = compiled(*args)
            if made is not None:
                self.seen.append(made[0])
            return made

        _trace.compiled = noted

    def run(self, program: Program, mode: Mode) -> Outcome:
        tf = self.tf
        tf.config.threading.set_intra_op_parallelism_threads(mode.threads)
        if mode.off:
            setattr(self.trace.OPTIONS, mode.off, False)
        self.seen.clear()
        outcome = Outcome([])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._run(program, mode, outcome)
        except Exception as error:
            outcome.error = f"{type(error).__name__}: {error}"
        finally:
            if mode.off:
                setattr(self.trace.OPTIONS, mode.off, True)
        if mode.cover:
            outcome.plan = "\n".join(step.explain()["text"] for step in self.seen)
            text = "\n".join(step.program() for step in self.seen)
            outcome.operations = tuple(re.findall(r"= (\w+)\(", text))
        self.seen.clear()
        return outcome

    def _run(self, program: Program, mode: Mode, outcome: Outcome) -> None:
        tf = self.tf
        tf.random.set_seed(program.seed)
        streams = {1000 + i: w for i, w in enumerate(variable_data(program))}
        space: dict[str, Any] = {
            "tf": tf,
            "np": np,
            "FLOAT": getattr(tf, program.dtype),
            "directions": direction(program, 0),
        }
        setup = setup_text(program)
        for stream in streams:  # variables are made of data that is here already
            setup = re.sub(
                rf"tf\.Variable\(\(draw64\({stream}.*$",
                f"tf.Variable(data[{stream}], dtype=FLOAT)",
                setup,
                flags=re.M,
            )
        space["data"] = streams
        strategy = None
        if mode.kind.startswith("mapped"):
            self._map(program, mode, outcome, space)
            return
        if mode.kind.startswith("run") or mode.kind == "reduced":
            strategy = self.strategy_of(len(mode.shares))
            with strategy.scope():
                exec(setup, space)
        else:
            exec(setup, space)
        exec(compile(step_text(program), "<program>", "exec"), space)
        metrics = self._measure(program, space, strategy) if mode.kind == "reduced" else []
        call = self._callable(space["step"], program, mode, strategy)
        if mode.resized:
            for more in (2, 5):
                self._run_resized(call, program, mode, strategy, more)
            self._begin_again(program, space)
            for metric in metrics:
                metric.reset_state()
        for number in range(program.steps):
            values, g, h = call(*self._arguments(program, number, mode, strategy))
            values = [*values, *(metric.result() for metric in metrics)]
            after = [_array(space[f"w{i}"]) for i in range(len(program.variables))]
            outcome.steps.append(
                {
                    "values": [_parts(v) for v in values],
                    "g": [_parts(v) for v in g],
                    "h": [_parts(v) for v in h],
                    "w": after,
                }
            )

    def _measure(self, program: Program, space: dict[str, Any], strategy: Any) -> list[Any]:
        """Adds to the step a mean of each output of examples of their own; returns the metrics."""
        step, types = space["step"], program.types()
        means = {}
        with strategy.scope():
            for i, name in enumerate(program.outputs):
                if types[name].kind == "f" and types[name].axis == 0 and types[name].local:
                    means[i] = self.tf.keras.metrics.Mean(dtype=program.dtype)

        def measured(*args: Any) -> Any:
            values, g, h = step(*args)
            for i, mean in means.items():
                mean.update_state(values[i])
            return values, g, h

        space["step"] = measured
        return list(means.values())

    def _arguments(self, program: Program, number: int, mode: Mode, strategy: Any) -> list[Any]:
        data = input_data(program, number)
        if mode.kind == "reduced":
            columns = [self._tensor(x, program) for x in data]
            return placed(columns, mode.shares, mode.layout, strategy)
        return [self._argument(x, program, mode, strategy) for x in data]

    def _run_resized(
        self, call: Any, program: Program, mode: Mode, strategy: Any, more: int
    ) -> None:
        shares = tuple(share + more for share in mode.shares)
        other, in_shares = (dataclasses.replace(x, shares=shares) for x in (program, mode))
        call(*self._arguments(other, 0, in_shares, strategy))

    def _begin_again(self, program: Program, space: dict[str, Any]) -> None:
        for i, value in enumerate(variable_data(program)):
            space[f"w{i}"].assign(self.tf.constant(value, program.dtype))
        for variable in space["optimizer"].variables if "optimizer" in space else ():
            if "learning_rate" not in variable.path:
                variable.assign(self.tf.zeros_like(variable))

    def _map(self, program: Program, mode: Mode, outcome: Outcome, space: dict[str, Any]) -> None:
        from samegrad.data import _mapped

        tf = self.tf
        for i, w in enumerate(variable_data(program)):
            space[f"w{i}"] = tf.constant(w, program.dtype)
        exec(compile(mapped_text(program), "<program>", "exec"), space)
        elements = [input_data(program, number) for number in range(4)]
        columns = [
            tf.constant(np.stack(x), self._dtype(program, x[0]))
            for x in zip(*elements, strict=True)
        ]
        calls = (None, 2, tf.data.AUTOTUNE)[len(mapped_text(program)) % 3]
        data = tf.data.Dataset.from_tensor_slices(tuple(columns)).map(space["mapped"], calls)
        first = _mapped._FIRST_BY_PYTHON, _mapped._COMPARED
        _mapped._FIRST_BY_PYTHON, _mapped._COMPARED = 0 if mode.kind == "mapped" else 10**9, 0
        try:
            for values in data:
                parts = [_parts(v) for v in values]
                outcome.steps.append({"values": parts, "g": [], "h": [], "w": []})
        finally:
            _mapped._FIRST_BY_PYTHON, _mapped._COMPARED = first
        outcome.programs = data._node.function.program_count

    def _dtype(self, program: Program, x: np.ndarray) -> Any:
        return program.dtype if x.dtype.kind == "f" else None

    def _by_count(self, x: Any) -> Any:
        for _ in range(len(x) % 3):
            x = self.tf.identity(x)
        return x

    def _open(self, program: Program) -> list[Any]:
        kinds = {"f": getattr(self.tf, program.dtype)}
        return [
            self.tf.TensorSpec([None] * x.ndim, kinds.get(x.dtype.kind, x.dtype))
            for x in input_data(program, 0)
        ]

    def _callable(self, step: Any, program: Program, mode: Mode, strategy: Any) -> Any:
        if mode.per_count:
            plain = step
            step = lambda *args: plain(*map(self._by_count, args))  # noqa: E731
        if mode.hides:
            open_ = step
            step = lambda *args: (open_(*args)[0], [], [])  # noqa: E731
        if mode.kind == "eager":
            return step
        if mode.open_sizes:
            return self.tf.function(step, input_signature=self._open(program))
        if mode.kind == "function":
            return self.tf.function(step)
        if mode.kind == "run":
            return lambda *args: strategy.run(step, args=args)
        if mode.kind == "reduced":
            return self.tf.function(lambda *args: _reduced(strategy, step, args))
        return self.tf.function(lambda *args: strategy.run(step, args=args))

    def _argument(self, x: np.ndarray, program: Program, mode: Mode, strategy: Any) -> Any:
        if strategy is None or not mode.distributes():
            return self._tensor(x, program)
        ends = np.cumsum(mode.shares)
        parts = [x[end - n : end] for end, n in zip(ends, mode.shares, strict=True)]
        return strategy.experimental_distribute_values_from_function(
            lambda context: self._tensor(parts[context.replica_id_in_sync_group], program)
        )

    def _tensor(self, x: np.ndarray, program: Program) -> Any:
        made = self.tf.constant(x, self._dtype(program, x))
        return made._as_examples(0, 1) if program.examples else made


def _reduced(strategy: Any, step: Any, args: Any) -> Any:
    """What a step returns, with its loss and its derivatives summed over the replicas."""
    (*values, loss), g, h = strategy.run(step, args=args)

    def total(value: Any) -> Any:
        return None if value is None else strategy.reduce("SUM", value, axis=None)

    return [*values, total(loss)], list(map(total, g)), list(map(total, h))


def read(stream: BinaryIO) -> Any:
    head = stream.read(8)
    if len(head) < 8:
        return None
    (size,) = struct.unpack("<q", head)
    body = stream.read(size)
    return pickle.loads(body) if len(body) == size else None


def write(stream: BinaryIO, message: Any) -> None:
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(struct.pack("<q", len(body)) + body)
    stream.flush()


def main() -> None:
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what programs print does not belong to the replies
    runner = Runner()
    while (request := read(sys.stdin.buffer)) is not None:
        program, modes = request
        write(replies, [runner.run(program, mode) for mode in modes])
