"""Graphs are verified after each pass; plans are for one machine; Keras has its first types.

A run of several groups of tests ends with the seconds of each group and of the slowest files. A
group is a folder below `tests/`, of two levels where the second one is a folder (`unit/data`).
"""

from __future__ import annotations

import collections
import importlib.util
import os
import pathlib
import signal
import sys

import pytest

os.environ.setdefault("SAMEGRAD_VERIFY", "1")
# A shell starts background jobs with SIGINT ignored, which programs of the tests would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Plans are asserted as they are for caches of these sizes, on any machine.
os.environ.setdefault("SAMEGRAD_MACHINE", "l1=32k,l2=1m,l3=32m")

_HERE = pathlib.Path(__file__).parent
_DOCTOR = _HERE.parent / "python" / "samegrad_doctor"
_spec = importlib.util.find_spec("samegrad_doctor")
if _spec is None or _spec.origin is None:  # a tree in which only samegrad is installed
    sys.path.insert(0, str(_DOCTOR / "src"))
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [sys.path[0], os.environ.get("PYTHONPATH", "")])
    )
# `-m "not slow"` leaves these folders and files out, which take most of the time.
_SLOW = (
    "benchmarks",
    "contract/test_divisions.py",
    "contract/test_explained_bits.py",
    "contract/test_feeding.py",
    "contract/test_filter_updates.py",
    "contract/test_shared_by_threads.py",
    "contract/test_side_by_side.py",
    "contract/test_sparse_gradients.py",
    "contract/test_tutorial.py",
    "contract/test_wide_layers.py",
    "cpp",
    "distributed",
    "docs",
    "doctor/test_combined_mistakes.py",
    "doctor/test_correct_steps.py",
    "doctor/test_evaluation_sets.py",
    "doctor/test_gan_steps.py",
    "doctor/test_grammar.py",
    "doctor/test_held_out.py",
    "doctor/test_noise.py",
    "doctor/test_pytest_under_launchers.py",
    "doctor/test_random_steps.py",
    "doctor/test_right_scripts.py",
    "doctor/test_testing_package.py",
    "examples",
    "fuzz",
    "keras_conformance/suite",
    "keras_conformance/test_keras_applications.py",
    "keras_conformance/test_keras_attention.py",
    "keras_conformance/test_keras_backup.py",
    "keras_conformance/test_keras_callbacks.py",
    "keras_conformance/test_keras_matrix_fit.py",
    "keras_conformance/test_keras_matrix_layers.py",
    "keras_conformance/test_keras_matrix_losses.py",
    "keras_conformance/test_keras_matrix_metrics.py",
    "keras_conformance/test_keras_matrix_optimizers.py",
    "keras_conformance/test_keras_register.py",
    "keras_conformance/test_keras_scopes.py",
    "keras_conformance/test_keras_stubs.py",
    "notebooks",
    "packaging",
    "robustness/errors/test_random_calls.py",
    "robustness/errors/test_traceback_lines.py",
    "robustness/interrupts",
    "unit/cli",
    "unit/data/test_buckets.py",
    "unit/data/test_ended_iterators.py",
    "unit/data/test_files.py",
    "unit/data/test_iterator.py",
    "unit/data/test_read_ahead.py",
    "unit/gan",
    "unit/test_attention.py",
    "unit/test_bad_input.py",
    "unit/test_completion.py",
    "unit/test_environment.py",
    "unit/test_imports.py",
    "unit/test_layers.py",
    "unit/test_memory.py",
    "unit/test_notebook_warnings.py",
    "unit/test_sources.py",
    "unit/train",
    "unit/transformer",
)
_SLOW_OF_DOCTOR = (
    "test_diagnose.py",
    "test_places_and_windows.py",
    "test_realistic_size.py",
    "test_reports_of_shares.py",
    "test_two_parts.py",
    "test_unusual_batches.py",
)
_SLOWEST = 20  # files in the table
_seconds: collections.Counter[str] = collections.Counter()  # by file
_tests: collections.Counter[str] = collections.Counter()


def pytest_configure(config: pytest.Config) -> None:
    """Start files in alphabetical order: xdist would start those with the fewest tests last.

    These are the longest: the C++ build, Keras's own tests, the wheel.
    """
    config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow tests."""
    slow = [_HERE / name for name in _SLOW]
    slow += [_DOCTOR / "tests" / name for name in _SLOW_OF_DOCTOR]
    gone = [str(path) for path in slow if not path.exists()]
    if gone:
        raise pytest.UsageError(f"tests/conftest.py lists as slow what does not exist: {gone}")
    for item in items:
        if not {item.path, *item.path.parents}.isdisjoint(slow):
            item.add_marker(pytest.mark.slow)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add the time of a setup, a test or a teardown to its file."""
    file = report.nodeid.partition("::")[0]
    _seconds[file] += report.duration
    _tests[file] += report.when == "call"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write the table of groups and of the slowest files."""
    groups: dict[str, list[str]] = collections.defaultdict(list)
    for file in _seconds:
        groups["/".join(pathlib.PurePath(file).parts[:-1][1:3])].append(file)
    if len(groups) < 3:
        return  # `--durations` tells more of a few files
    _write(terminalreporter, "seconds of all workers by group of tests", groups)
    slowest = dict(_seconds.most_common(_SLOWEST))
    _write(terminalreporter, f"the {_SLOWEST} slowest files", {file: [file] for file in slowest})


def _write(reporter: pytest.TerminalReporter, title: str, groups: dict[str, list[str]]) -> None:
    reporter.section(title)
    totals = {name: sum(_seconds[file] for file in files) for name, files in groups.items()}
    for name in sorted(totals, key=totals.__getitem__, reverse=True):
        tests = sum(_tests[file] for file in groups[name])
        reporter.write_line(f"{totals[name]:8.1f} s {tests:6d} tests  {name}")


@pytest.fixture(autouse=True)
def _types_of_a_new_process() -> None:
    """Keras keeps the policy that its first layer had, whatever `set_floatx` says later."""
    config = sys.modules.get("keras.src.backend.config")
    state = sys.modules.get("keras.src.backend.common.global_state")
    if config is not None and state is not None:
        config.set_floatx("float32")
        state.set_global_attribute("dtype_policy", None)
