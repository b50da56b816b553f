"""Workers: one process for each environment, restarted where it dies."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from typing import IO

from fuzz.program import Program
from fuzz.worker import Mode, Outcome, read, write

TESTS = pathlib.Path(__file__).resolve().parents[1]
# Of the samegrad that is imported here: the checkout's, or an installed one.
_found = importlib.util.find_spec("samegrad")
assert _found is not None and _found.origin is not None
PACKAGE = pathlib.Path(_found.origin).parents[1]
EVERYWHERE = (
    "recomputed_bytes=1,"
    "parallel_loop_work=1,parallel_operation_bytes=1,parallel_replica_bytes=1,"
    "parallel_product_work=1,parallel_tree_work=1,parallel_all_reduce_bytes=1"
)
# By name: thresholds that send small programs down other paths, and kernel variants.
ENVIRONMENTS: dict[str, dict[str, str]] = {
    "usual": {},
    "ones": {"SAMEGRAD_THRESHOLDS": "1"},
    "inner": {"SAMEGRAD_THRESHOLDS": f"inner_loop_bytes=1,inner_loop_stretch=1000,{EVERYWHERE}"},
    "deferred": {
        "SAMEGRAD_THRESHOLDS": "deferred_bytes=1,deferred_examples=1,joined_examples=1,"
        "tile_bytes=1,loop_weight_bytes=1,cut_weight_bytes=1,loop_tile_examples=1,"
        "product_block_bytes=2000,product_subtree_rows=11,"
        f"fused_operations=5,fused_block=7,fused_piece=11,all_reduce_block=3,{EVERYWHERE}"
    },
    # Small caches: whatever follows from the description of the machine is another than here.
    "machine": {
        "SAMEGRAD_MACHINE": "l1=4k,l2=32k,l3=64k,threads=3",
        "SAMEGRAD_THRESHOLDS": EVERYWHERE,
    },
    "v3": {"SAMEGRAD_ISA": "v3"},
    "v4": {"SAMEGRAD_ISA": "v4"},
}


# Assertions of the engine and of the standard library, and what sanitizers print.
FAULT = re.compile(r"assertion failed|: Assertion '|ERROR: AddressSanitizer|: runtime error: ")


class Worker:
    """A process that runs programs.

    Args:
        environment: A name in ENVIRONMENTS.
        package: The folder of the samegrad that is tested.
        limit: Seconds after which a program counts as hanging.
    """

    def __init__(
        self, environment: str, package: pathlib.Path = PACKAGE, limit: float = 120
    ) -> None:
        self.environment, self.package, self.limit = environment, package, limit
        self.process: subprocess.Popen[bytes] | None = None
        self.printed: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115

    def _start(self) -> subprocess.Popen[bytes]:
        path = os.pathsep.join([str(self.package), str(TESTS), os.environ.get("PYTHONPATH", "")])
        settings = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        # Kernels are checked by builds with assertions alone.
        settings |= {"SAMEGRAD_VERIFY": "1", "SAMEGRAD_CHECK_KERNELS": "1"}
        settings |= ENVIRONMENTS[self.environment]
        self.printed.truncate(0)
        return subprocess.Popen(
            [sys.executable, "-c", "from fuzz.worker import main; main()"],
            env=settings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.printed,
        )

    def _fault(self) -> str:
        """Return ": " and the printed line that names the fault; "" if none is printed."""
        self.printed.seek(0)
        lines = self.printed.read().decode(errors="replace").splitlines()
        return next((f": {line}" for line in reversed(lines) if FAULT.search(line)), "")

    def ask(self, program: Program, modes: list[Mode]) -> None:
        """Sends a program; `answer` gets the outcomes."""
        if self.process is None or self.process.poll() is not None:
            self.process = self._start()
        self.modes = modes
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            write(self.process.stdin, (program, modes))

    def answer(self) -> list[Outcome]:
        process = self.process
        assert process is not None and process.stdout is not None
        end = time.monotonic() + self.limit
        ready = select.select([process.stdout], [], [], max(end - time.monotonic(), 0))[0]
        reply = read(process.stdout) if ready else None
        if reply is not None:
            return list(reply)
        if not ready:
            said = f"Hang: no answer within {self.limit} s"
        else:
            code = process.wait()
            said = (
                f"Crash: the process ended with {signal.Signals(-code).name if code < 0 else code}"
                + self._fault()
            )
        self.close()
        return [Outcome([], said) for _ in self.modes]

    def close(self) -> None:
        """Ends the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for stream in (self.process.stdin, self.process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        self.process = None


class Workers:
    """One worker for each environment, made when first asked for."""

    def __init__(self, package: pathlib.Path = PACKAGE, limit: float = 120) -> None:
        self.package, self.limit = package, limit
        self.by_name: dict[str, Worker] = {}

    def run(self, program: Program, wanted: dict[str, list[Mode]]) -> dict[str, list[Outcome]]:
        """Runs all modes in their environments, side by side."""
        for name, modes in wanted.items():
            if name not in self.by_name:
                self.by_name[name] = Worker(name, self.package, self.limit)
            self.by_name[name].ask(program, modes)
        return {name: self.by_name[name].answer() for name in wanted}

    def close(self) -> None:
        for worker in self.by_name.values():
            worker.close()
