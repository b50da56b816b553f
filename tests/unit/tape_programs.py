"""Random programs of several tapes, and a reference interpreter of them in NumPy.

A program is a list of instructions on values, which are numbered in the order in which they are
made, and on tapes, which are numbered.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

TAPES = 3
SHAPE = 2
_FUNCTIONS: dict[str, Any] = {
    "mul": np.multiply, "add": np.add, "sub": np.subtract,
    "sin": np.sin, "cos": np.cos, "neg": np.negative,
}  # fmt: skip
_ARITY = {"mul": 2, "add": 2, "sub": 2, "sin": 1, "compiled": 2}


class _Draft:
    """A program while it is drawn, with what each tape may know of its values."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.made: list[list[Any]] = []
        self.count = 0
        self.entered: list[int] = []
        self.paused: list[int] = []
        self.around: list[set[int]] = []  # the tapes that were entered when a pause began
        self.known: dict[int, list[int]] = {}
        for _ in range(3):
            self.value("constant", [round(self.draw.uniform(-1, 1), 3) for _ in range(SHAPE)])

    def value(self, *instruction: Any, results: int = 1) -> None:
        self.made.append(list(instruction))
        self.count += results

    def recent(self) -> int:
        return self.draw.choice([0, 1, 2, *range(max(self.count - 5, 0), self.count)])

    def active(self) -> list[int]:
        return [k for k in self.entered if k not in self.paused]

    def tell(self, operands: list[int], results: list[int]) -> None:
        """Note that results were computed of operands."""
        for k in self.active():
            if set(operands) & set(self.known[k]):
                self.known[k] += results

    def enter(self) -> None:
        idle = [k for k in range(TAPES) if k not in self.entered]
        if idle:
            self.entered.append(self.draw.choice(idle))
            self.known.setdefault(self.entered[-1], [])
            self.made.append(["enter", self.entered[-1]])
            self.watch()

    def exit(self) -> None:
        if active := self.active():
            tape = active[-1] if self.draw.random() < 0.8 else self.draw.choice(active)
            self.entered.remove(tape)
            self.made.append(["exit", tape])

    def watch(self) -> None:
        if active := self.active():
            tape, value = self.draw.choice(active), self.recent()
            self.known[tape].append(value)
            self.made.append(["watch", tape, value])

    def op(self) -> None:
        name = self.draw.choice(sorted(_ARITY))
        operands = [self.recent() for _ in range(_ARITY[name])]
        self.tell(operands, [self.count])
        self.value("op", name, operands)

    def gradient(self) -> None:
        tapes = [k for k, known in self.known.items() if known]
        if not tapes:
            return
        tape = self.draw.choice(tapes)
        known = self.known[tape] if self.draw.random() < 0.9 else list(range(self.count))
        sources = sorted({self.draw.choice(known) for _ in range(self.draw.choice([1, 2]))})
        target = max(self.draw.choice(known) for _ in range(3))
        seed = self.recent() if self.draw.random() < 0.5 else None
        operands = [*known, *([] if seed is None else [seed])]
        self.tell(operands, list(range(self.count, self.count + len(sources))))
        self.value("gradient", tape, target, sources, seed, results=len(sources))

    def pause(self) -> None:
        if active := self.active():
            self.paused.append(self.draw.choice(active))
            self.around.append(set(self.entered))
            self.made.append(["pause", self.paused[-1]])

    def resume(self) -> None:
        # A pause ends after the tapes that began in it.
        if self.paused and self.around[-1] >= set(self.entered):
            self.around.pop()
            self.made.append(["resume", self.paused.pop()])

    def reset(self) -> None:
        if active := self.active():
            self.known[tape := self.draw.choice(active)] = []
            self.made.append(["reset", tape])


_WEIGHTS = {
    "enter": 4.0, "exit": 1.5, "watch": 3.0, "op": 9.0, "gradient": 4.0,
    "pause": 0.4, "resume": 2.0, "reset": 0.2,
}  # fmt: skip


def program(seed: int, length: int = 26) -> list[list[Any]]:
    """Draw a program: constants first, then up to `length` instructions."""
    draft = _Draft(seed)
    for _ in range(length):
        [kind] = draft.draw.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
        getattr(draft, kind)()
    while draft.paused:
        draft.exit()
        draft.resume()
    return draft.made


class _Tape:
    """Record of one tape: identities of values, and operations in their order."""

    def __init__(self) -> None:
        self.tracked: set[int] = set()
        self.operations: list[tuple[int, str, list[int]]] = []


class Reference:
    """The meaning of a program, tape by tape, with derivatives made of the same operations.

    Where a gradient is None, 0 is its value in what follows.
    """

    def __init__(self) -> None:
        self._arrays: list[np.ndarray] = []
        self._tapes = [_Tape() for _ in range(TAPES)]
        self._recording: list[int] = []

    def run(self, instructions: list[list[Any]]) -> list[np.ndarray | None]:
        """Return the gradients of the program in their order."""
        names: list[int] = []
        found: list[np.ndarray | None] = []
        for kind, *rest in instructions:
            if kind == "constant":
                names.append(self._new(np.array(rest[0])))
            elif kind in ("enter", "resume"):
                self._recording.append(rest[0])
            elif kind in ("exit", "pause"):
                self._recording.remove(rest[0])
            elif kind == "reset":
                self._tapes[rest[0]] = _Tape()
            elif kind == "watch":
                self._tapes[rest[0]].tracked.add(names[rest[1]])
            elif kind == "op":
                names.append(self._composite(rest[0], [names[i] for i in rest[1]]))
            else:
                tape, target, sources, seed = rest
                start = self._new(np.ones(SHAPE)) if seed is None else names[seed]
                made = self._gradient(
                    self._tapes[tape], names[target], [names[s] for s in sources], start
                )
                found += [None if m is None else self._arrays[m] for m in made]
                names += [self._new(np.zeros(SHAPE)) if m is None else m for m in made]
        return found

    def _new(self, array: np.ndarray) -> int:
        self._arrays.append(array)
        return len(self._arrays) - 1

    def _composite(self, name: str, operands: list[int]) -> int:
        if name != "compiled":
            return self._op(name, operands)
        a, b = operands
        return self._op("add", [self._op("mul", [self._op("sin", [a]), b]), a])

    def _op(self, name: str, operands: list[int]) -> int:
        result = self._new(_FUNCTIONS[name](*(self._arrays[i] for i in operands)))
        for k in self._recording:
            tape = self._tapes[k]
            if tape.tracked.intersection(operands):
                tape.tracked.add(result)
                tape.operations.append((result, name, operands))
        return result

    def _gradient(
        self, tape: _Tape, target: int, sources: list[int], seed: int
    ) -> list[int | None]:
        reached = set(sources) & tape.tracked
        for result, _, operands in tape.operations:
            if reached.intersection(operands):
                reached.add(result)
        sums = {target: seed}
        for result, name, operands in reversed(tuple(tape.operations)):
            if result not in sums or not reached.intersection(operands):
                continue
            parts = self._parts(name, operands, sums[result])
            for operand, part in zip(operands, parts, strict=True):
                if operand not in reached or operand not in tape.tracked:
                    continue
                known = sums.get(operand)
                sums[operand] = part if known is None else self._op("add", [known, part])
        return [sums.get(s) for s in sources]

    def _parts(self, name: str, operands: list[int], ct: int) -> list[int]:
        if name == "mul":
            a, b = operands
            return [self._op("mul", [ct, b]), self._op("mul", [ct, a])]
        if name == "add":
            return [ct, ct]
        if name == "sub":
            return [ct, self._op("neg", [ct])]
        if name == "neg":
            return [self._op("neg", [ct])]
        if name == "sin":
            return [self._op("mul", [ct, self._op("cos", operands)])]
        return [self._op("neg", [self._op("mul", [ct, self._op("sin", operands)])])]


def run(tf: Any, instructions: list[list[Any]]) -> list[Any]:
    """Return the gradients of the program, by TensorFlow or samegrad."""
    tapes = [tf.GradientTape(persistent=True) for _ in range(TAPES)]
    pauses: dict[int, Any] = {}
    values: list[Any] = []
    found: list[Any] = []
    compiled = tf.function(lambda a, b: tf.sin(a) * b + a)
    ops = {"mul": tf.multiply, "add": tf.add, "sub": tf.subtract, "sin": tf.sin}
    ops["compiled"] = compiled
    for kind, *rest in instructions:
        if kind == "constant":
            values.append(tf.constant(rest[0], tf.float64))
        elif kind == "enter":
            tapes[rest[0]].__enter__()
        elif kind == "exit":
            tapes[rest[0]].__exit__(None, None, None)
        elif kind == "pause":
            pauses[rest[0]] = tapes[rest[0]].stop_recording()
            pauses[rest[0]].__enter__()
        elif kind == "resume":
            pauses.pop(rest[0]).__exit__(None, None, None)
        elif kind == "reset":
            tapes[rest[0]].reset()
        elif kind == "watch":
            tapes[rest[0]].watch(values[rest[1]])
        elif kind == "op":
            values.append(ops[rest[0]](*(values[i] for i in rest[1])))
        else:
            tape, target, sources, seed = rest
            made = tapes[tape].gradient(
                values[target], [values[s] for s in sources], None if seed is None else values[seed]
            )
            found += made
            values += [tf.zeros(SHAPE, tf.float64) if m is None else m for m in made]
    return found
