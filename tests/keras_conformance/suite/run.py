"""Keras's own tests, the ones in its wheel, as a judge of samegrad.

    cd tests/keras_conformance/suite
    python run.py                      # all folders
    python run.py --quick              # a part of a few minutes; `pytest tests` runs it
    python run.py --only layers ops/numpy_test.py
    python run.py --record-reference   # where TensorFlow is installed

What passes on TensorFlow has to pass on samegrad, but for `expected_failures.txt`, which may only
shrink: what is in it and passes is an error too (--shrink takes it out). Tests of what samegrad
does not have at all are counted apart; what is skipped counts as failed.
"""

from __future__ import annotations

import argparse
import importlib.util
import lzma
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
REFERENCE = HERE / "passes_with_tensorflow.txt.xz"
EXPECTED = HERE / "expected_failures.txt"
# Tests of distribution are beside the backend of TensorFlow.
DISTRIBUTION = (
    "backend/tensorflow/distribute_test.py", "backend/tensorflow/optimizer_distribute_test.py",
    "distribution",
)  # fmt: skip
FOLDERS = (
    "activations", "callbacks", "constraints", "initializers", "layers", "losses", "metrics",
    "models", "ops", "optimizers", "random", "regularizers", "saving", "trainers", *DISTRIBUTION,
)  # fmt: skip
QUICK = (
    "activations", "callbacks", "constraints", "initializers", "layers", "losses", "metrics",
    "models", "optimizers", "random", "regularizers", "saving", "trainers", "ops/core_test.py",
    "ops/linalg_test.py", "ops/math_test.py", "ops/ops_test.py",
    "ops/numpy_test.py::NumpyTwoInputOpsCorrectnessTest", *DISTRIBUTION,
)  # fmt: skip
# What is not asked of samegrad.
NOT_ASKED = re.compile(r"quantiz|gptq|awq|int4|float8|fp8|^layers/.*int8", re.IGNORECASE)
# Tests of tensors that samegrad does not have: counted apart, and not in the list. What has
# "sparse" in its name and is about integers as classes is counted.
OTHER_TYPES = re.compile(
    r"sparse(?!_?(plus|max|sig|cat|top|soft))|ragged|complex|indexed_slices", re.IGNORECASE
)
# A test that calls a package which is not installed says nothing of samegrad.
_NOT_INSTALLED = re.compile(r"needs \w+, which is not installed|requires the \w+ module")
_SECONDS_PER_TEST = 120


class Outcome(NamedTuple):
    """What came of a test, and why."""

    outcome: str
    reason: str = ""


class Verdict(NamedTuple):
    """What is wrong, and how much passes in each folder."""

    new_failures: dict[str, Outcome]
    now_passing: list[str]
    passed: Counter[str]
    counted: Counter[str]
    passed_all: Counter[str]
    counted_all: Counter[str]

    def report(self) -> str:
        """The table and what is wrong, as text."""
        lines = [
            f"{'':<14}{'samegrad':>10}{'TensorFlow':>12}{'percent':>9}"
            f"    with sparse, ragged, complex tensors"
        ]
        for folder in sorted(self.counted_all):
            passed, counted = self.passed[folder], self.counted[folder]
            passed_all, all_ = self.passed_all[folder], self.counted_all[folder]
            lines.append(
                f"{folder:<14}{passed:>10}{counted:>12}{100 * passed / max(counted, 1):>8.2f}%"
                f"{passed_all:>10}{all_:>8}{100 * passed_all / all_:>8.2f}%"
            )
        for test, (outcome, reason) in sorted(self.new_failures.items()):
            lines.append(f"NEW FAILURE {test}: {outcome}: {reason}")
        lines += [f"PASSES NOW, take it out of {EXPECTED.name}: {x}" for x in self.now_passing]
        return "\n".join(lines)


def keras_tests() -> Path:
    """The folder that Keras's tests are in."""
    spec = importlib.util.find_spec("keras")
    assert spec is not None and spec.origin is not None, "Keras is not installed"
    return Path(spec.origin).parent / "src"


def reference() -> list[str]:
    """The tests that pass on TensorFlow."""
    return lzma.decompress(REFERENCE.read_bytes()).decode().splitlines()


def expected_failures() -> dict[str, str]:
    """The tests that do not pass, and why: lines of tests below a line `# reason`.

    Those whose reason begins with "Sometimes" may pass.
    """
    reasons: dict[str, str] = {}
    reason = ""
    for line in EXPECTED.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            reason = line[1:].strip()
        elif line:
            reasons[line] = reason
    return reasons


def within(test: str, only: Iterable[str]) -> bool:
    """Whether a test is of one of these folders, files or classes."""
    return any(test == x or test.startswith((f"{x}/", f"{x}::")) for x in only)


def judge(results: Mapping[str, Outcome], only: Iterable[str] = FOLDERS) -> Verdict:
    """Compares what came of the tests with what passes on TensorFlow and with the list."""
    expected, only = expected_failures(), tuple(only)
    verdict = Verdict({}, [], Counter(), Counter(), Counter(), Counter())
    for test in reference():
        if not within(test, only):
            continue
        folder = test.partition("/")[0]
        result = results.get(test, Outcome("did not run"))
        passes = result.outcome == "passed"
        verdict.counted_all[folder] += 1
        verdict.passed_all[folder] += passes
        if OTHER_TYPES.search(test):
            continue
        verdict.counted[folder] += 1
        verdict.passed[folder] += passes
        if passes:
            if test in expected and not expected[test].startswith("Sometimes"):
                verdict.now_passing.append(test)
        elif test not in expected and not _NOT_INSTALLED.search(result.reason):
            verdict.new_failures[test] = result
    return verdict


def read_results(path: Path) -> dict[str, Outcome]:
    """What the plugin wrote."""
    results = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        outcome, test, reason = line.split("\t")
        results[test] = Outcome(outcome, reason)
    return results


def _parts(only: Iterable[str], jobs: int) -> list[list[str]]:
    """Distribute the files of the tests: the largest first, to the job that has the least."""
    root = keras_tests()
    files: list[str] = []
    for name in only:
        if (root / name).is_dir():
            files += [x.relative_to(root).as_posix() for x in (root / name).rglob("*_test.py")]
        else:
            files.append(name)
    sizes = Counter(test.partition("::")[0] for test in reference()) if REFERENCE.exists() else {}
    parts: list[list[str]] = [[] for _ in range(jobs)]
    totals = [0] * jobs
    for file in sorted(set(files), key=lambda x: (-sizes.get(x.partition("::")[0], 0), x)):
        least = totals.index(min(totals))
        parts[least].append(file)
        totals[least] += sizes.get(file.partition("::")[0], 0) + 1
    return [part for part in parts if part]


def _start(part: list[str], results: Path, on_tensorflow: bool) -> subprocess.Popen[bytes]:
    root = keras_tests()
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", PYTHONDONTWRITEBYTECODE="1")
    environment.pop("KERAS_BACKEND", None)
    if on_tensorflow:
        environment["KERAS_BACKEND"] = "tensorflow"
    paths = [str(HERE), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider"]
    command += ["-p", "plugin", "-c", os.devnull, f"--rootdir={root}", "-W", "ignore"]
    command += ["-o", "python_files=*_test.py", "--continue-on-collection-errors"]
    command += [f"--timeout={_SECONDS_PER_TEST}", f"--results={results}"]
    log = results.with_suffix(".log").open("wb")
    with log:
        return subprocess.Popen(
            [*command, *(str(root / name) for name in part)],
            cwd=results.parent, env=environment, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip


def run(
    only: Iterable[str] = FOLDERS, jobs: int = 2, on_tensorflow: bool = False
) -> dict[str, Outcome]:
    """Runs Keras's tests in processes of their own; what came of each.

    Args:
        only: Folders, files, or classes `file::Class`.
        jobs: How many processes.
        on_tensorflow: Whether on TensorFlow, which then has to be installed.
    """
    results: dict[str, Outcome] = {}
    with tempfile.TemporaryDirectory() as folder:
        parts = _parts(only, jobs)
        paths = [Path(folder, f"{i}.tsv") for i in range(len(parts))]
        started = [
            _start(part, path, on_tensorflow) for part, path in zip(parts, paths, strict=True)
        ]
        try:
            for process, path in zip(started, paths, strict=True):
                code = process.wait()
                if code not in (0, 1):
                    log = path.with_suffix(".log").read_text(errors="replace")[-2000:]
                    print(f"pytest ended with {code}:\n{log}", file=sys.stderr)
                if path.exists():
                    results.update(read_results(path))
        finally:
            for process in started:
                process.kill()
    return results


def record(results: Mapping[str, Outcome]) -> int:
    """Writes what passes; how many tests that is."""
    tests = sorted(test for test, result in results.items() if result.outcome == "passed")
    text = "".join(f"{test}\n" for test in tests)
    REFERENCE.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    return len(tests)


def shrink(tests: Iterable[str]) -> None:
    """Takes tests out of the list, and the reasons that have none left."""
    gone, kept = set(tests), list[str]()
    for line in EXPECTED.read_text(encoding="utf-8").splitlines():
        if line not in gone:
            kept.append(line)
    text = re.sub(r"# [^\n]*\n+(?=# |\Z)", "", "\n".join(kept) + "\n")
    EXPECTED.write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """The command; 0 where nothing is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])  # type: ignore[union-attr]
    parser.add_argument("--only", nargs="+", help="folders, files or file::Class")
    parser.add_argument("--quick", action="store_true", help="a part of a few minutes")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--results", nargs="+", type=Path, help="judge these, run nothing")
    parser.add_argument("--shrink", action="store_true", help="take out of the list what passes")
    parser.add_argument("--record-reference", action="store_true", help="run on TensorFlow")
    options = parser.parse_args(arguments)
    only = tuple(options.only or (QUICK if options.quick else FOLDERS))
    results: dict[str, Outcome] = {}
    for path in options.results or []:
        results.update(read_results(path))
    if not options.results:
        results = run(only, options.jobs, options.record_reference)
    if options.record_reference:
        print(f"{record(results)} tests pass on TensorFlow")
        return 0
    verdict = judge(results, only)
    print(verdict.report())
    if options.shrink:
        shrink(verdict.now_passing)
        return int(bool(verdict.new_failures))
    return int(bool(verdict.new_failures or verdict.now_passing))


if __name__ == "__main__":
    sys.exit(main())
