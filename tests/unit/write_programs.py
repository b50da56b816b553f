"""Random programs that write variables, and what plain Python says that they do."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import samegrad as tf
from samegrad._function import trace as _trace

SHAPES = [(), (1,), (3,), (5, 7), (0, 2), (2, 1)]


@dataclass
class Writes:
    """A program: lines that read and write variables, all numbers small and whole."""

    seed: int
    shape: tuple[int, ...] = ()
    variables: int = 0
    lines: list[tuple[Any, ...]] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        draw = random.Random(self.seed)
        self.shape = draw.choice(SHAPES)
        self.variables = draw.randint(1, 4)
        self.lines = [self._line(draw, draw.randint(0, 9)) for _ in range(draw.randint(1, 7))]
        self.outputs = draw.choices(range(6), k=draw.randint(0, 3))

    def _line(self, draw: random.Random, kind: int) -> tuple[Any, ...]:
        one, other = (draw.randrange(self.variables) for _ in range(2))
        register, another = draw.randrange(6), draw.randrange(6)
        number = draw.randint(-2, 2)
        branch = [("copy", one, other), ("add", other, number)]
        return {
            0: ("copy", one, other),
            1: ("add", one, number),
            2: ("read", register, one),
            3: ("store", one, register),
            4: ("sum", register, register, another),
            5: ("reshape", register, another),
            6: ("swap", one, other),
            7: ("argument", one),
            8: ("if", register, branch, branch[1:]),
            9: ("loop", draw.randint(0, 3), branch),
        }[kind]  # fmt: skip

    def values(self) -> list[np.ndarray]:
        size = int(np.prod(self.shape))
        return [
            (np.arange(size) % 5 + 10.0 * (v + 1)).astype(np.float32).reshape(self.shape)
            for v in range(self.variables + 1)
        ]

    def expected(self, calls: int) -> list[np.ndarray]:
        """The variables after each call, and the outputs, as plain Python has them."""
        *state, argument = self.values()
        seen = []
        for _ in range(calls):
            registers = [state[0]] * 6
            for line in self.lines:
                self._python(line, state, registers, argument)
            seen += [*state, *(registers[k] for k in self.outputs)]
        return seen

    def _python(self, line: Any, state: Any, registers: Any, argument: Any) -> None:
        match line:
            case "copy", one, other:
                state[one] = state[other]
            case "add", one, number:
                state[one] = state[one] + np.float32(number)
            case "read", register, one:
                registers[register] = state[one]
            case "store", one, register:
                state[one] = registers[register]
            case "sum", register, left, right:
                registers[register] = registers[left] * np.float32(0.5) + registers[right]
            case "reshape", register, other:
                registers[register] = registers[other]
            case "swap", one, other:
                state[one], state[other] = state[other], state[one]
            case "argument", one:
                state[one] = argument
            case "if", register, yes, no:
                for inner in yes if registers[register].sum() > 30 else no:
                    self._python(inner, state, registers, argument)
            case "loop", rounds, body:
                for _ in range(rounds):
                    for inner in body:
                        self._python(inner, state, registers, argument)

    def run(self, calls: int, mode: str, per_replica: bool) -> list[np.ndarray]:
        """The same as samegrad has them: eagerly, in a function, or on two replicas."""
        *initial, argument = self.values()
        kept = argument.copy()
        strategy = tf.distribute.MirroredStrategy(replicas=2)
        more = {"synchronization": tf.VariableSynchronization.ON_READ} if per_replica else {}
        if per_replica:
            more["aggregation"] = tf.VariableAggregation.ONLY_FIRST_REPLICA
        with strategy.scope():
            state = [tf.Variable(value, **more) for value in initial]
        step: Callable[..., Any] = lambda x: self._step(state, x)  # noqa: E731
        if mode == "function":
            step = tf.function(step)
        if mode == "strategy":
            step = tf.function(lambda x: strategy.run(self._step, args=(state, x)))
        seen = []
        for _ in range(calls):
            outputs = step(tf.constant(argument))
            if mode == "strategy":
                outputs = [strategy.experimental_local_results(out)[0] for out in outputs]
            held = [v.numpy() for v in state]
            seen += [*held, *(out.numpy() for out in outputs)]
        assert (argument == kept).all()
        return seen

    def _step(self, state: Any, argument: Any) -> list[Any]:
        registers = [state[0].read_value()] * 6
        for line in self.lines:
            self._samegrad(line, state, registers, argument)
        return [tf.identity(registers[k]) for k in self.outputs]

    def _samegrad(self, line: Any, state: Any, registers: Any, argument: Any) -> None:
        match line:
            case "copy", one, other:
                state[one].assign(state[other].read_value())
            case "add", one, number:
                state[one].assign_add(tf.fill(self.shape, np.float32(number)))
            case "read", register, one:
                registers[register] = state[one].read_value()
            case "store", one, register:
                state[one].assign(registers[register])
            case "sum", register, left, right:
                registers[register] = registers[left] * np.float32(0.5) + registers[right]
            case "reshape", register, other:
                flat = tf.reshape(registers[other], (-1,) if np.prod(self.shape) else self.shape)
                registers[register] = tf.reshape(flat, self.shape)
            case "swap", one, other:
                a, b = state[one].read_value(), state[other].read_value()
                state[one].assign(b)
                state[other].assign(a)
            case "argument", one:
                state[one].assign(argument)
            case "if", register, yes, no:
                chosen = tf.reduce_sum(registers[register]) > 30.0
                tf.cond(
                    chosen,
                    lambda: self._branch(yes, state, registers, argument),
                    lambda: self._branch(no, state, registers, argument),
                )
            case "loop", rounds, body:

                def inner(i: Any) -> list[Any]:
                    self._branch(body, state, registers, argument)
                    return [i + 1]

                tf.while_loop(lambda i: i < rounds, inner, [tf.constant(0)])

    def _branch(self, lines: Any, state: Any, registers: Any, argument: Any) -> Any:
        for line in lines:
            self._samegrad(line, state, registers, argument)
        return tf.constant(0.0)


def check(seed: int, mode: str, in_place: bool, per_replica: bool = False, calls: int = 2) -> None:
    """Compares one program with plain Python; every read is of an array of its own."""
    program = Writes(seed)
    before = _trace.OPTIONS.write_in_place
    _trace.OPTIONS.write_in_place = in_place
    try:
        got = program.run(calls, mode, per_replica)
    finally:
        _trace.OPTIONS.write_in_place = before
    for value, expected in zip(got, program.expected(calls), strict=True):
        assert np.array_equal(value, expected), (program, mode, in_place, value, expected)
