"""Plants faults one by one in a scratch copy of the sources and runs the fuzzer on each.

    python tests/fuzz/plant.py [--scratch FOLDER] [--time 600] [--only WORD …] [--release]

Prints for each fault after how many seconds it was found and what named it: an assertion, a rule of
graphs or plans or a check of kernels ("named"), or a wrong result that was compared later ("by its
numbers"). Or that it was not found, or that its patch does not apply. What the sources get wrong
without a fault is found first and does not count. The build has assertions, unless `--release` is
given.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from fuzz.faults import FAULTS, Fault

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Scratch:
    """A copy of the sources with a build of its own.

    Args:
        folder: Where; kept for the next time.
        isa: The kernel variant that is built.
        preset: Of CMakePresets.json.
    """

    def __init__(self, folder: pathlib.Path, isa: str, preset: str = "fuzz") -> None:
        self.folder, self.isa, self.preset = folder, isa, preset
        self.environment = {k: v for k, v in os.environ.items() if k != "SAMEGRAD_KERNEL_DIR"} | {
            "CCACHE_BASEDIR": str(folder),
            "PYTHONPATH": str(folder / "python"),
            "SAMEGRAD_ISA": isa,
        }

    def copy(self) -> None:
        """Brings the working tree's sources; unchanged files keep their time."""
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for name in listed:
            source, target = ROOT / name, self.folder / name
            if not source.is_file():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists() or target.read_bytes() != source.read_bytes():
                shutil.copyfile(source, target)

    def build(self) -> str:
        """Builds and installs the module; what the compiler says if it cannot."""
        build = self.folder / "build" / self.preset
        if not (build / "build.ninja").exists():
            launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
            said = self._run(
                "cmake",
                "--preset",
                self.preset,
                "-S",
                str(self.folder),
                "-B",
                str(build),
                "-G",
                "Ninja",
                f"-DPython_EXECUTABLE={sys.executable}",
                f"-DSAMEGRAD_ISA_VARIANTS={self.isa}",
                "-DSAMEGRAD_BUILD_TESTS=OFF",
                "-DSAMEGRAD_BUILD_PYTHON=ON",
                *launcher,
            )
            if said:
                return said
        said = self._run("ninja", "-C", str(build))
        return said or self._run(
            "cmake", "--install", str(build), "--prefix", str(self.folder / "python")
        )

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False
        )
        return "" if done.returncode == 0 else (done.stdout + done.stderr)[-2000:]

    def fuzz(self, *options: str) -> tuple[bool, str]:
        """Whether the fuzzer found something, and what it printed."""
        command = [sys.executable, str(self.folder / "tests" / "fuzz" / "run.py"), *options]
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False
        )
        return done.returncode != 0, done.stdout + done.stderr

    def plant(self, fault: Fault) -> str:
        """Patches the file; why not, if it cannot."""
        path = self.folder / fault.file
        if not path.exists():
            return f"there is no {fault.file}"
        text = path.read_text()
        if text.count(fault.old) != 1:
            return f"{fault.file} has {text.count(fault.old)} times: {fault.old}"
        path.write_text(text.replace(fault.old, fault.new))
        return ""


# What an assertion, verify(graph), verify(plan) and the checks of kernels say.
NAMED = re.compile(
    r"^.*(?:assertion failed|: Assertion '|\[plan\] |(?:operand|result|output|constant) %).*$",
    flags=re.MULTILINE,
)


def seeds_that_fail(output: str) -> list[str]:
    return re.findall(r"^==== seed (\d+):", output, flags=re.MULTILINE)


def one(scratch: Scratch, fault: Fault, seconds: float, known: list[str]) -> str:
    """Plants, builds, fuzzes, and takes the fault out again."""
    scratch.copy()
    if said := scratch.plant(fault):
        return f"does not apply: {said}"
    try:
        if said := scratch.build():
            return f"does not build: {said}"
        begun = time.monotonic()
        skip = ["--skip", *known] if known else []
        found, output = scratch.fuzz("--first", "--shrink", "1", "--time", str(seconds), *skip)
        took = time.monotonic() - begun
        if not found:
            return f"NOT FOUND in {took:.0f} s"
        first = re.search(r"^==== (seed .*)$", output, flags=re.MULTILINE)
        if first is None:
            return f"the fuzzer failed: {output[-300:]}"
        named = NAMED.search(output)
        by = f"named: {named[0].strip()}" if named else "by its numbers"
        return f"found after {took:.0f} s, {first[1]}, {by}"
    finally:
        scratch.copy()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    default = pathlib.Path(tempfile.gettempdir()) / "samegrad-faults"
    parser.add_argument("--scratch", type=pathlib.Path, default=default)
    parser.add_argument("--time", type=float, default=600, help="seconds for each fault")
    parser.add_argument("--only", nargs="*", default=[], help="faults whose names have a word")
    parser.add_argument("--isa", default="v3", help="the kernel variant that is built")
    parser.add_argument("--before", type=int, default=300, help="programs without a fault")
    parser.add_argument("--release", action="store_true", help="without assertions")
    options = parser.parse_args()
    preset = "release" if options.release else "fuzz"
    scratch = Scratch(options.scratch.resolve(), options.isa, preset)
    scratch.copy()
    if said := scratch.build():
        print(said)
        return 2
    _, output = scratch.fuzz("--programs", str(options.before), "--time", "3600", "--shrink", "0")
    if f"{options.before} programs\n" not in output:
        print(f"the fuzzer failed: {output[-2000:]}")
        return 2
    known = seeds_that_fail(output)
    print(f"without a fault: {len(known)} of {options.before} programs differ {' '.join(known)}")
    tried = missed = named = 0
    for fault in FAULTS:
        if options.only and not any(word in fault.name for word in options.only):
            continue
        said = one(scratch, fault, options.time, known)
        tried += 1
        missed += not said.startswith("found")
        named += ", named: " in said
        print(f"{fault.name}: {said}", flush=True)
    print(f"{tried - missed} of {tried} found, {named} named at their cause")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
