"""What pytest gets from samegrad: a mark for numbers of replicas, and a fixture that splits.

Under `mpirun` the processes of a job run the tests together, and rank 0 reports: a test that fails
on one fails on all. Loaded into every run of pytest, so it imports nothing but pytest until it is
used.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from samegrad._base.launchers import launched

_ADDRESS = re.compile(r"0x[0-9a-f]+")  # of an object: another one on each process


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Makes the mark known; under a launcher, lets one process speak."""
    config.addinivalue_line(
        "markers",
        "replicas(*counts): run the test with the fixture replica_count for each of the counts",
    )
    # Workers of pytest-xdist are no ranks; they do not know that their tests are dealt out.
    shared_out = getattr(config.option, "dist", "no") != "no" or hasattr(config, "workerinput")
    if launched().size > 1 and not shared_out:
        config.pluginmanager.register(_Processes(config), "samegrad-processes")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs a marked test for each number of replicas."""
    mark = metafunc.definition.get_closest_marker("replicas")
    if "replica_count" not in metafunc.fixturenames or (mark is None and _has_own(metafunc)):
        return
    counts = mark.args if mark is not None else (1, 2, 3, 8)
    metafunc.parametrize("replica_count", counts, ids=lambda count: f"{count}-replicas")


def _has_own(metafunc: pytest.Metafunc) -> bool:
    """Whether `replica_count` is the user's own fixture or parameter."""
    lists = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize") if mark.args]
    names = [n for one in lists for n in (one.split(",") if isinstance(one, str) else one)]
    known: Any = metafunc.definition
    fixtures = getattr(getattr(known, "_fixtureinfo", None), "name2fixturedefs", {})
    return "replica_count" in fixtures or "replica_count" in (name.strip() for name in names)


@pytest.fixture
def replica_split() -> Callable[..., list[Any]]:
    """A function of a batch and of sizes (or a number of replicas) that gives the shares."""

    def split(batch: Any, sizes: int | Sequence[int]) -> list[Any]:
        from samegrad.testing import layout, uneven_sizes
        from samegrad.testing._layouts import rows_of, take

        rows = rows_of(batch)
        parts = uneven_sizes(rows, sizes) if isinstance(sizes, int) else list(sizes)
        if sum(parts) != rows:
            raise ValueError(
                f"[replica_split] the sizes must add up to the {rows} examples: got {parts}."
            )
        return [take(batch, share[0]) for share in layout(parts).parts]

    return split


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
    """The processes of a job that run the same tests.

    They begin to work together when the tests have been collected, and only where these use
    samegrad: other programs' tests under mpirun are left as they are.
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
        """Notes what went wrong."""
        if report.failed:
            self._broken.append(report.longreprtext)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Joins the job, and compares the tests."""
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
        """What becomes of a test on one process becomes of it on all."""
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
        """A launcher kills the others as soon as one has ended with another status than 0."""
        sys.stdout.flush()
        if self._engine is not None:
            with contextlib.suppress(Exception):
                self._engine.met("the end of the tests", None)

    def _joined(self, engine: Any) -> Any:
        """The job; where there is none to join, the run ends with the reason on each process."""
        try:
            return engine.join()
        except (ImportError, RuntimeError, ValueError) as error:
            self._speak()
            pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)

    def _uses_samegrad(self, session: pytest.Session) -> bool:
        """Whether tests do: this plug-in loads the package, but not the engine."""
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
        """What was held back is said after all."""
        if self._writer is not None:
            self._terminal.write(self._writer._file.getvalue())
            self._writer._file = self._terminal

    def _write_no_files(self) -> None:
        """Rank 0 writes the reports that are files."""
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
    """Makes a report one of all processes."""
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
