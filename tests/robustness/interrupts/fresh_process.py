"""A process whose first use of the package is interrupted; then it runs the program, and prints.

    python tests/robustness/interrupts/fresh_process.py SECONDS

The package loads most of itself at its first use. Prints how long the first steps take if nothing
interrupts them (SECONDS 0), what was left on, and a digest of the final state.
"""

from __future__ import annotations

import hashlib
import sys
import time
import warnings

from inject import run_signalled
from program import STEPS, Program, what_is_left_on


def _train(steps: int) -> Program:
    program = Program()
    for _ in range(steps):
        program.train()
    return program


def main() -> None:
    """Interrupts, then trains."""
    warnings.simplefilter("ignore")
    delay, began = float(sys.argv[1]), time.perf_counter()
    if delay > 0:
        raised = run_signalled(lambda: _train(1), delay)
        assert type(raised) is KeyboardInterrupt, repr(raised)
    else:
        _train(1)
    took = time.perf_counter() - began
    left = what_is_left_on()
    assert not left, left
    digest = hashlib.sha256(repr(_train(STEPS).state()).encode()).hexdigest()
    print(f"{took:.6f} {digest}")


if __name__ == "__main__":
    main()
