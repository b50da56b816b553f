"""pytest plugin: fixtures for replica counts and unequal splits, and test runs under MPI.

Under `mpirun` all processes of a job run the tests together, and rank 0 reports: a test that fails
on one process fails on all. pytest loads the plugin in every run, so it imports only pytest until
it is used. All its fixtures and marks begin with `samegrad_`.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from samegrad._base.launchers import launched

_ADDRESS = re.compile(r"0x[0-9a-f]+")  # of an object: another one on each process


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the mark; under a launcher, let rank 0 report."""
    config.addinivalue_line(
        "markers",
        "samegrad_replicas(*counts): run the test once for each replica count, which the fixture "
        "samegrad_replica_count returns",
    )
    # Workers of pytest-xdist are not ranks, and do not know that the tests are distributed.
    distributed = getattr(config.option, "dist", "no") != "no" or hasattr(config, "workerinput")
    if launched().size > 1 and not distributed:
        config.pluginmanager.register(_Processes(config), "samegrad-processes")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a marked test once for each replica count."""
    mark = metafunc.definition.get_closest_marker("samegrad_replicas")
    if "samegrad_replica_count" not in metafunc.fixturenames:
        return
    counts = mark.args if mark is not None else (1, 2, 3, 8)
    metafunc.parametrize("samegrad_replica_count", counts, ids=lambda count: f"{count}-replicas")


@pytest.fixture
def samegrad_replica_split() -> Callable[..., list[Any]]:
    """Return a function that splits a batch into per-replica batches.

    Returns:
        `split(batch, sizes)`, where `sizes` lists the per-replica batch sizes, or is a number of
        replicas, which get unequal sizes. It returns a list of batches.

    Example:
        def test_split(samegrad_replica_split):
            assert [len(part) for part in samegrad_replica_split(np.arange(5), [3, 2])] == [3, 2]
    """

    def split(batch: Any, sizes: int | Sequence[int]) -> list[Any]:
        from samegrad.testing._doctor import layout, rows_of, take, unequal_sizes

        examples = rows_of(batch)
        parts = unequal_sizes(examples, sizes) if isinstance(sizes, int) else list(sizes)
        if sum(parts) != examples:
            raise ValueError(
                f"[samegrad_replica_split] sizes must sum to the {examples} examples: got {parts}."
            )
        return [take(batch, share[0]) for share in layout(parts).parts]

    return split


@pytest.fixture
def samegrad_replica_invariance() -> Callable[..., Any]:
    """Return `samegrad.testing.assert_replica_invariant`, with a warning for what it skips.

    Returns:
        `check(make, data, ...)`, with the arguments of `assert_replica_invariant`. It prints the
        report, and returns it.

    Example:
        def test_bits(samegrad_replica_invariance):
            samegrad_replica_invariance(make_model, (x, y), replicas=(1, 2, 5))
    """

    def check(make: Callable[[], Any], data: Any, *args: Any, **options: Any) -> Any:
        from samegrad.testing import assert_replica_invariant

        found = assert_replica_invariant(make, data, *args, **options)
        print(found)
        if found.skipped:
            said = [line for line in str(found).splitlines() if line.startswith("skipped: ")]
            warnings.warn(pytest.PytestWarning("[samegrad] " + "\n".join(said)), stacklevel=2)
        return found

    return check


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Iterator[None]:
    """Show one line of each frame where samegrad called user code: arguments are traced there."""
    option: Any = item.config.option
    style = getattr(option, "tbstyle", "auto")
    filters = sys.modules.get("samegrad._base.tracebacks")
    if style == "auto" and filters is not None and call.excinfo is not None:
        option.tbstyle = "short" if hasattr(call.excinfo.value, filters.COMPACT) else style
    yield
    option.tbstyle = style


class _Processes:
    """The processes of an MPI job that run the same tests.

    They join the job after collection, and only if the tests use samegrad: other tests under mpirun
    run as usual.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._engine: Any = None  # samegrad.distribute._job, once the job is joined
        self._broken: list[str] = []  # what could not be collected
        self._first = launched().rank == 0
        self._writer: Any = None
        reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
        if not self._first and reporter is not None:
            self._writer = reporter._tw
            self._terminal, self._writer._file = self._writer._file, io.StringIO()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record collection errors."""
        if report.failed:
            self._broken.append(report.longreprtext)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Join the job and compare the collected tests."""
        used = self._uses_samegrad(session)
        engine: Any = importlib.import_module("samegrad.distribute._job") if used else None
        if engine is None or self._joined(engine).size == 1:
            self._speak()
            self._config.pluginmanager.unregister(self)
            return
        self._engine = engine
        if not self._first:
            self._write_no_files()
        own = [item.nodeid for item in session.items], self._broken
        found = engine.met("the tests that were collected", own)
        if any(other != found[0] for other in found):
            told = [
                f"rank {rank}: {len(items)} tests" + "".join(f"\n{text}" for text in broken)
                for rank, (items, broken) in enumerate(found)
            ]
            pytest.exit(
                "[samegrad] all processes must collect the same tests: got\n" + "\n".join(told),
                returncode=pytest.ExitCode.USAGE_ERROR,
            )

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Iterator[None]:
        """Give a test the same outcome on all processes."""
        outcome: Any = yield
        if self._engine is None:
            return
        report = outcome.get_result()
        text = None if report.passed else _text_of(report)
        try:
            name = f"{report.when} of {report.nodeid}"
            found = self._engine.met(name, (report.outcome, text))
        except Exception as error:  # a process is gone
            item.session.shouldstop = f"[samegrad] {error}"
            _fail(report, f"{type(error).__name__}: {error}")
            return
        _join(report, found, self._engine.current().rank)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Wait for all processes: a launcher kills them when one exits with an error."""
        sys.stdout.flush()
        if self._engine is not None:
            with contextlib.suppress(Exception):
                self._engine.met("the end of the tests", None)

    def _joined(self, engine: Any) -> Any:
        """Return the job, or exit with the reason on each process."""
        try:
            return engine.join()
        except (ImportError, RuntimeError, ValueError) as error:
            self._speak()
            pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)

    def _uses_samegrad(self, session: pytest.Session) -> bool:
        """Return True if tests use samegrad: this plugin loads the package without the engine."""
        modules = {
            id(item.module): item.module for item in session.items if hasattr(item, "module")
        }
        values = [value for module in modules.values() for value in vars(module).values()]
        names = [getattr(value, "__module__", "") or "" for value in values] + [
            value.__name__ for value in values if isinstance(value, types.ModuleType)
        ]
        return (
            "samegrad._core" in sys.modules
            or any(str(name).partition(".")[0] == "samegrad" for name in names)
            or any("samegrad" in text for text in self._broken)
        )

    def _speak(self) -> None:
        """Print the output that was held back."""
        if self._writer is not None:
            self._terminal.write(self._writer._file.getvalue())
            self._writer._file = self._terminal

    def _write_no_files(self) -> None:
        """Unregister plugins that write report files, which rank 0 writes."""
        manager = self._config.pluginmanager
        for _, plugin in manager.list_name_plugin():
            if type(plugin).__name__ == "LogXML":
                manager.unregister(plugin)


def _text_of(report: Any) -> str:
    return str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else report.longreprtext


def _fail(report: Any, text: str) -> None:
    before = _text_of(report) if report.failed else ""
    report.outcome, report.longrepr = "failed", f"{before}\n{text}".lstrip()


def _join(report: Any, found: list[tuple[str, str | None]], rank: int) -> None:
    """Merge the outcomes of all processes into a report."""
    failed = [(n, text) for n, (outcome, text) in enumerate(found) if outcome == "failed"]
    others = [(n, text) for n, text in failed if n != rank]
    if report.failed:
        own = _ADDRESS.sub("", str(found[rank][1]))
        report.sections += [
            (f"rank {n}", text) for n, text in others if _ADDRESS.sub("", str(text)) != own
        ]
        if len(failed) < len(found):
            report.sections.append(
                ("samegrad", f"failed on rank {', '.join(str(n) for n, _ in failed)}")
            )
    elif others:
        _fail(report, "\n\n".join(f"failed on rank {n}:\n{text}" for n, text in others))
    elif report.passed and any(outcome == "skipped" for outcome, _ in found):
        n, why = next((n, text) for n, (outcome, text) in enumerate(found) if outcome == "skipped")
        report.outcome, report.longrepr = "skipped", (report.nodeid, 0, f"rank {n}: {why}")
