"""The MPI job that this process is a rank of, where a launcher has started several."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import faulthandler
import functools
import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from samegrad import _core
from samegrad._base.launchers import launched, may_be_launched
from samegrad._base.location import warn
from samegrad._base.numerics import numerics
from samegrad._tensor.per_replica import PerReplica

_FUNCTIONS = (
    "MPI_Isend", "MPI_Irecv", "MPI_Testall", "MPI_Cancel", "MPI_Iallgather", "MPI_Iprobe",
    "MPI_Recv", "MPI_Abort",
)  # fmt: skip
_WHO = "MultiWorkerMirroredStrategy"
# A rank says where it is by this signal, which nobody else uses.
_STACK_SIGNAL = int(signal.SIGRTMIN) + 9 if hasattr(signal, "SIGRTMIN") else 0
# MPI counts in int: larger messages go in pieces.
PIECE_BYTES = 1 << 30
DEFAULT_TIMEOUT = 600.0
# How long a rank that fails before it has joined waits for the others, to tell them.
_LAST_WORDS = 30.0
_LONGEST_TIMEOUT = 1e9  # for clocks that count nanoseconds
# On one machine gradients go through memory that all ranks see: so much of it that it stays in a
# cache which they share. 0 in the variable: they are sent.
_SHARED_VARIABLE = "SAMEGRAD_MPI_SHARED"
_SHARED_BYTES, _LEAST_SEGMENT, _MOST_SEGMENT = 32 << 20, 1 << 20, 4 << 20
_PAGE, _LINE = 4096, 64
_BYTES_OF_MPI = 17 << 16  # that MPICH has there for each rank


@dataclass(frozen=True)
class Job:
    """One rank of a job.

    Attributes:
        rank: Of this process, from 0.
        size: How many processes there are.
        hosts: The name of each rank's machine.
        library: The MPI that carries, with its version.
    """

    rank: int
    size: int
    hosts: tuple[str, ...]
    library: str


class _State:
    """Mutable state of the process."""

    job: Job | None = None
    keep: tuple[Any, ...] = ()  # what the engine's table points into
    sums_dtype = "float32"  # of large sums of gradients between processes


_state = _State()


def set_compression(compression: str) -> None:
    """Set how large float32 sums travel between processes: "none" or "bfloat16"."""
    _core.set_sums_as_bfloat16(compression == "bfloat16")
    _state.sums_dtype = "bfloat16" if compression == "bfloat16" else "float32"


def sums_dtype() -> str:
    """Return the dtype in which large float32 sums travel between processes.

    Example:
        >>> sums_dtype()
        'float32'
    """
    return _state.sums_dtype


def current() -> Job | None:
    """The job, if this process has joined one."""
    return _state.job


def join(timeout: float | None = None) -> Job:
    """Return the job of this process, of one rank if no launcher has started several.

    Args:
        timeout: Seconds that a rank waits for others before it ends the job; None: those of
            SAMEGRAD_MPI_TIMEOUT, else 600, or what was said before.

    Raises:
        ImportError: Several processes were started, and there is no mpi4py, or no MPI for it.
        RuntimeError: The launcher belongs to another MPI than the one that was loaded.
        ValueError: The time is not a positive number.
    """
    if timeout is not None and not timeout > 0:
        raise ValueError(f"[{_WHO}] timeout is a positive number of seconds: got {timeout}.")
    if _state.job is None:
        timeout = _default_timeout() if timeout is None else timeout
        with _in_time(timeout):
            _state.job = _joined()
    if timeout is not None and _state.job.size > 1:
        _core.set_patience(float(timeout))
    return _state.job


def _in_time(timeout: float) -> contextlib.AbstractContextManager[Any]:
    """End a process whose others do not come to join: MPI itself would wait for ever."""
    launch = launched()
    if launch.size == 1:
        return contextlib.nullcontext()
    why = (
        f"samegrad: rank {launch.rank} of {launch.size} has waited for {timeout:g} s for the "
        "others to join the job, and ends it: one of them may have ended before it made a "
        "strategy, which its own messages tell; SAMEGRAD_MPI_TIMEOUT is the time."
    )
    guard: contextlib.AbstractContextManager[Any] = _core.deadline(
        min(timeout, _LONGEST_TIMEOUT), why
    )
    return guard


@functools.cache
def warn_of_processes() -> None:
    """Warn once, on one process of several, that each trains a model of its own."""
    launch = launched()
    if launch.size > 1 and launch.rank == 0 and _state.job is None:
        warn(
            f"[MirroredStrategy] replicas are those of one process: got {launch.size} processes, "
            f"started by {launch.launcher}, each with a model of its own; use "
            "tf.distribute.MultiWorkerMirroredStrategy to train one model with all of them."
        )


def called(call: str) -> None:
    """Compare with the other ranks which call this is: where they differ, all raise ValueError."""
    _core.world_agree([("call", call)])


def gathered(call: str, value: Any) -> list[Any]:
    """Gather the value of every rank, in the order of the ranks."""
    called(call)
    return [pickle.loads(one) for one in _core.world_gather(pickle.dumps(value))]


_MEETINGS = 1000  # collectives that a rank may still be in, one after the other


def met(call: str, value: Any) -> list[Any]:
    """Gather the values of all ranks after an operation that some may have left early.

    A rank that arrives while another one is still in a collective ends that one, on both, with an
    error that names the two calls. The other rank then arrives as well.

    Raises:
        ValueError: It never does.
        RuntimeError: A rank is gone.
    """
    for _ in range(_MEETINGS):
        try:
            return gathered(call, value)
        except ValueError as error:
            last = error
    raise last


def on_first_rank(call: str, write: Callable[[], None]) -> None:
    """Rank 0 writes something for all, who come here together and learn how it went.

    Args:
        call: What it is, for messages.
        write: Called on rank 0; where there is no job, in this process.

    Raises:
        OSError: On the other ranks, where rank 0 could not; it raises what `write` raised.
    """
    job = _state.job
    if job is None or job.size == 1:
        write()
        return
    error: Exception | None = None
    if job.rank == 0:
        try:
            write()
        except Exception as found:
            error = found
    said = gathered(call, None if error is None else f"{type(error).__name__}: {error}")
    if error is not None:
        raise error
    if said[0] is not None:
        raise OSError(f"[{_WHO}] {call} is written by rank 0, which could not: {said[0]}")


def library_name() -> str:
    """The MPI in use, for `sysconfig`."""
    if _state.job is not None and _state.job.library:
        return _state.job.library
    if "mpi4py.MPI" in sys.modules:
        return str(sys.modules["mpi4py.MPI"].Get_library_version()).splitlines()[0].strip()
    return "none loaded"


def _default_timeout() -> float:
    given = os.environ.get("SAMEGRAD_MPI_TIMEOUT", "")
    with contextlib.suppress(ValueError):
        return float(given) if given else DEFAULT_TIMEOUT
    raise ValueError(
        f"[{_WHO}] SAMEGRAD_MPI_TIMEOUT is a number of seconds: got {given!r}; set 600, say."
    )


def _joined() -> Job:
    launch = launched()
    started, launcher = launch.size, launch.launcher
    expected = started > 1 or "mpi4py.MPI" in sys.modules
    if not expected and not may_be_launched():
        return Job(0, 1, (os.uname().nodename,), "")
    if not _has_room(_BYTES_OF_MPI * min(started, os.cpu_count() or 1)):  # others are elsewhere
        _tell_of_little_room(launch.rank, "MPI may end with a bus error")
        time.sleep(0.5)  # until the launcher has shown it
    mpi = _import_mpi(started, launcher)
    world = mpi.COMM_WORLD
    library = str(mpi.Get_library_version()).splitlines()[0].strip().rstrip("\0")
    if world.size == 1:
        if started > 1:
            raise RuntimeError(
                f"[{_WHO}] {launcher} has started {started} processes, and the MPI that was "
                f"loaded knows of one: got {library!r}, which is not the launcher's; use the "
                "mpirun of this environment, or MPI4PY_LIBMPI=/path/to/the/launcher's/libmpi.so."
            )
        return Job(0, 1, (os.uname().nodename,), library)
    if mpi.Query_thread() != mpi.THREAD_MULTIPLE:
        raise RuntimeError(
            f"[{_WHO}] MPI must allow calls from several threads: got level {mpi.Query_thread()} "
            f"of {library!r}; leave mpi4py.rc.thread_level at 'multiple'."
        )
    _connect(mpi)
    return Job(world.rank, world.size, tuple(world.allgather(os.uname().nodename)), library)


def _import_mpi(started: int, launcher: str) -> Any:
    if not os.path.isdir("/sys/class/infiniband"):
        # Open MPI's windows would complain, on every rank, that there is no such network.
        os.environ.setdefault("OMPI_MCA_osc", "^ucx")
    try:
        import mpi4py

        ours = "mpi4py.MPI" not in sys.modules
        if ours:
            # At the end of any process, it would end MPI: also in a forked child, for its parent.
            mpi4py.rc.finalize = False
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise ImportError(
            f"[{_WHO}] {launcher or 'a launcher of MPI'} has started {started} processes, which "
            f"need mpi4py and an MPI: got {type(error).__name__}: {error}; pip install "
            "'samegrad[mpi]', on a cluster mpi4py and the site's MPI."
        ) from None
    begins = not MPI.Is_initialized()  # imported for its version, by `samegrad info`
    if begins:
        MPI.Init_thread(MPI.THREAD_MULTIPLE)
    if ours or begins:
        atexit.register(_finalize, MPI, os.getpid())
    return MPI


def _finalize(mpi: Any, process: int) -> None:
    """The end of MPI, in the process that began it."""
    if os.getpid() == process and not mpi.Is_finalized():
        mpi.Finalize()


def _connect(mpi: Any) -> None:
    """Give the engine the functions and handles of the loaded library."""
    library = ctypes.CDLL(mpi.__file__)  # which is linked to it
    messages, notices = mpi.COMM_WORLD.Dup(), mpi.COMM_WORLD.Dup()
    mask = (1 << 64) - 1
    table = {
        name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in _FUNCTIONS
    } | {
        "rank": mpi.COMM_WORLD.rank,
        "size": mpi.COMM_WORLD.size,
        "handle_bytes": mpi._sizeof(mpi.Comm),
        "status_bytes": mpi._sizeof(mpi.Status),
        "messages": mpi._handleof(messages) & mask,
        "notices": mpi._handleof(notices) & mask,
        "byte": mpi._handleof(mpi.BYTE) & mask,
        "piece_bytes": PIECE_BYTES,
    }
    build = {
        **_core.build_info(),
        **numerics(),
        "fused_multiply_add": _core.isa_fused()[_core.isa()],  # decides the bits of the kernels
        "version": _core.__version__,
    }
    facts = [
        (f"build: {name.replace('_', ' ')}", str(value)) for name, value in sorted(build.items())
    ]
    faulthandler.register(_STACK_SIGNAL, file=2, all_threads=True)
    node = mpi.COMM_WORLD.Split_type(mpi.COMM_TYPE_SHARED, key=mpi.COMM_WORLD.rank)
    _core.set_core_share(_share_of(_cores(), node.allgather(_cores())))
    window, segments, segment_bytes = _shared_segments(mpi, node)
    _core.join_world(table, segments, segment_bytes, DEFAULT_TIMEOUT, _STACK_SIGNAL, facts)
    _state.keep = (library, messages, notices, window)
    PerReplica._spread = True
    if getattr(sys.excepthook, "__module__", "") != "samegrad":  # which does it from the start
        sys.excepthook = _ends_job(sys.excepthook)
    atexit.register(_core.leave_world)


def _cores() -> set[int]:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def _share_of(own: set[int], of_all: list[set[int]]) -> int:
    """Return a rank's number of cores, at least 1, where each is split between its users.

    Args:
        own: What it may use.
        of_all: What each rank on its machine may use, itself included.
    """
    cores = sum(1 / sum(core in one for one in of_all) for core in own)
    return max(1, int(cores + 1e-6))


def _shared_segments(mpi: Any, node: Any) -> tuple[Any, list[int], int]:
    """Memory that all ranks see, where they are on one machine.

    Args:
        mpi: The module.
        node: A communicator of the ranks on this machine.

    Returns:
        Its window, the address of each rank's segment, and the bytes of one.
    """
    world = mpi.COMM_WORLD
    wanted = node.size == world.size and os.environ.get(_SHARED_VARIABLE, "1") != "0"
    size = min(max(_SHARED_BYTES // world.size, _LEAST_SEGMENT), _MOST_SEGMENT)
    size -= size % _PAGE
    wanted = wanted and _has_room((size + _PAGE) * world.size)
    if node.size == world.size and not wanted and os.environ.get(_SHARED_VARIABLE, "1") != "0":
        _tell_of_little_room(world.rank, "processes send messages, which takes them longer")
    if not world.allreduce(wanted, op=mpi.LAND):
        return None, [], 0
    window, segments = None, []
    with contextlib.suppress(mpi.Exception):  # an MPI without windows sends messages
        window = mpi.Win.Allocate_shared(size + _PAGE, 1, comm=node)
        # Pages are mapped whole: a segment begins at the same line of memory on all ranks.
        found = [window.Shared_query(rank)[0].address for rank in range(world.size)]
        segments = [address + -address % _LINE for address in found]
        ctypes.memset(segments[world.rank], 0, size)
    if not world.allreduce(bool(segments), op=mpi.LAND):  # all have zeros now
        return None, [], 0
    return window, segments, size


def _tell_of_little_room(rank: int, outcome: str) -> None:
    """Rank 0 says what comes of it that /dev/shm is nearly full, and the usual cause."""
    if rank == 0:
        sys.stderr.write(
            f"samegrad: /dev/shm has too little room: {outcome}. Remove what jobs that were killed "
            "have left there (mpich_shm_* of MPICH); in containers --shm-size makes it larger.\n"
        )


def _has_room(size: int, folder: str = "/dev/shm") -> bool:
    """Tell if shared memory has so many bytes left: writing more kills the process."""
    try:
        found = os.statvfs(folder)
    except OSError:  # the MPI has it elsewhere
        return True
    return found.f_bavail * found.f_frsize >= size


def end_all(why: str, code: int) -> None:
    """This rank goes no further: the others are told why, and all of them end.

    Returns where there are no others, or where they do not come to hear it.

    Args:
        why: Of what the rank could not go on.
        code: The exit status.
    """
    if _state.job is None:
        if launched().size == 1:
            return
        with contextlib.suppress(Exception):  # it has failed already, for the reason that counts
            join(_LAST_WORDS)
    if _state.job is None or _state.job.size == 1:
        return
    told = bool(_core.world_failure())
    _core.world_fail(why)
    # Who failed first ends the job when its own words are out.
    time.sleep(5.0 if told else 0.5)
    _core.abort_world(code)


def failed_elsewhere(why: str) -> bool:
    """Return True if another rank fails for the same reason within a moment.

    Args:
        why: The reason of this rank.
    """
    with contextlib.suppress(Exception):  # where the job cannot be joined, nobody tells
        if join(_LAST_WORDS).size > 1:
            end = time.monotonic() + 1.0
            while time.monotonic() < end:
                if why in _core.world_failure():
                    return True
                time.sleep(0.02)
    return False


def _ends_job(previous: Any) -> Any:
    """An exception hook: what nobody catches ends all ranks."""

    def hook(kind: Any, error: BaseException, trace: Any) -> None:
        show_failure(previous, kind, error, trace)

    return hook


def show_failure(previous: Any, kind: Any, error: BaseException, trace: Any) -> None:
    """Show an exception that nobody has caught, and end all ranks.

    Args:
        previous: The hook that shows exceptions where there are no ranks.
        kind: As hooks are given it; and so are the next two.
        error: The exception.
        trace: Where it was raised.
    """
    launch, job = launched(), _state.job
    where = f"rank {job.rank} of {job.size}" if job else f"rank {launch.rank} of {launch.size}"
    when = f"after call {_core.world_calls()}" if job else "before it had joined the job"
    lines = [f"samegrad: {where} failed {when}:\n"]
    if previous is sys.__excepthook__:
        lines += traceback.format_exception(kind, error, trace)
    sys.stderr.write("".join(lines))
    if previous is not sys.__excepthook__:
        previous(kind, error, trace)
    sys.stderr.flush()
    end_all(f"{kind.__name__}: {error}", 130 if issubclass(kind, KeyboardInterrupt) else 1)
