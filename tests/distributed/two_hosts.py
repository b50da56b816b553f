"""Train over two network namespaces without shared memory, joined by a slow link.

    python tests/distributed/two_hosts.py --python PYTHON [--delay 1] [--cut 200]
    python tests/distributed/two_hosts.py --python PYTHON --peer-python PEERS/bin/python

It needs root, Linux, `ip`, and a Python with mpi4py and MPICH. Each namespace has host name, shared
memory and network of its own. A tap device of each ends in this process, which holds every frame
for the delay; `tc` limits both to 1 Gbit/s. `--cut FRAMES` drops all frames after so many, and the
job must report an error. `--peer-python` times steps beside PyTorch's DistributedDataParallel on
gloo. The result is a line of JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import heapq
import json
import os
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from launch import PROGRAMS

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
HOSTS = ("sgtest0", "sgtest1")
PEERS = Path(__file__).resolve().parents[1] / "benchmarks" / "peers.py"
TIMED = {"cnn": ("4", "20"), "given_25": ("1", "3")}  # steps: warm up, then timed
MTU = 65000
SETUP = 'hostname "$0"; mount -t tmpfs none /dev/shm; exec "$@"'

# A refused connection takes one round trip.
ROUND_TRIP = """
import socket, sys, time
times = []
for _ in range(20):
    begin = time.perf_counter()
    socket.socket().connect_ex((sys.argv[1], 9))
    times.append(1e3 * (time.perf_counter() - begin))
print(round(min(times), 2))
"""


def address(number: int) -> str:
    return f"10.77.0.{number + 1}"


def inside(number: int, *command: object) -> list[str]:
    """Return a command that runs in a host."""
    name = HOSTS[number]
    words = ["ip", "netns", "exec", name, "unshare", "--uts", "--ipc", "--mount"]
    return [*words, "sh", "-c", SETUP, name, *map(str, command)]


class Link:
    """The cable between two tap devices: each frame arrives later by the delay.

    Args:
        delay: Seconds of one direction.
        cut: Number of frames after which all others are lost.
    """

    def __init__(self, delay: float, cut: int) -> None:
        self.delay, self.cut, self.frames, self._ended = delay, cut, 0, False
        self.taps = [self._tap(number) for number in range(2)]
        self._thread = threading.Thread(target=self._carry)
        self._thread.start()

    def _tap(self, number: int) -> int:
        name = HOSTS[number]
        tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP | IFF_NO_PI))
        execute("ip", "link", "set", name, "netns", name)
        for words in (
            f"ip link set lo up mtu {MTU}",
            f"ip address add {address(number)}/24 dev {name}",
            f"ip link set {name} up mtu {MTU}",
            f"tc qdisc replace dev {name} root tbf rate 1gbit burst 256k latency 50ms",
        ):
            execute("ip", "netns", "exec", name, *words.split())
        return tap

    def _carry(self) -> None:
        waiting: list[tuple[float, int, int, bytes]] = []
        while not self._ended:
            left = waiting[0][0] - time.perf_counter() if waiting else 0.1
            for tap in select.select(self.taps, [], [], max(0.0, left))[0]:
                with contextlib.suppress(BlockingIOError):
                    frame, arrives = os.read(tap, MTU + 100), time.perf_counter() + self.delay
                    self.frames += 1
                    heapq.heappush(waiting, (arrives, self.frames, sum(self.taps) - tap, frame))
            while waiting and waiting[0][0] <= time.perf_counter():
                _, _, tap, frame = heapq.heappop(waiting)
                with contextlib.suppress(OSError):
                    if self.frames <= self.cut:
                        os.write(tap, frame)

    def end(self) -> None:
        """Stop carrying frames."""
        self._ended = True
        self._thread.join()
        for tap in self.taps:
            os.close(tap)


def execute(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@contextlib.contextmanager
def two_hosts(delay: float, cut: int) -> Iterator[Link]:
    """Make the namespaces and the link, and remove them afterwards."""
    for name in HOSTS:
        execute("ip", "netns", "add", name)
    try:
        link = Link(delay, cut)
        try:
            yield link
        finally:
            link.end()
    finally:
        for name in HOSTS:
            for left in execute("ip", "netns", "pids", name).split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(left), signal.SIGKILL)
            execute("ip", "netns", "delete", name)


def command(python: str, launcher: Path, *program: object) -> list[str]:
    """Return the mpiexec of MPICH with a process in each host."""
    launcher.write_text(
        "#!/bin/sh\n# HOST and a command, as ssh has them after its options\n"
        'while [ "${1#-}" != "$1" ]; do shift; done\nhost=$1; shift\n'
        f"case $host in {address(0)}) name={HOSTS[0]};; *) name={HOSTS[1]};; esac\n"
        "exec ip netns exec $name unshare --uts --ipc --mount "
        f"sh -c '{SETUP}' $name sh -c \"$*\"\n"
    )
    launcher.chmod(0o755)
    mpiexec = Path(python).parent / "mpiexec"
    options = ["-hosts", ",".join(map(address, range(2))), "-launcher", "ssh"]
    options += ["-launcher-exec", launcher, "-localhost", address(0), "-n", 2]
    return inside(0, mpiexec, *options, python, *program)


def run(words: list[str], limit: float) -> tuple[int, str, float]:
    """Return exit status, output and seconds of a job, which ends after `limit` seconds."""
    begin = time.perf_counter()
    more = {"SAMEGRAD_NUM_THREADS": "1", "SAMEGRAD_MPI_TIMEOUT": "20", "PYTHONUNBUFFERED": "1"}
    with tempfile.TemporaryFile("w+") as output:
        job = subprocess.Popen(
            words, stdout=output, stderr=output, start_new_session=True, env=os.environ | more
        )
        try:
            job.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
        seconds = time.perf_counter() - begin
        output.seek(0)
        return job.returncode, output.read(), seconds


def beside_gloo(python: str, peer_python: str, launcher: Path, pairs: int) -> dict[str, Any]:
    """Return milliseconds of a step over the link: for each pair, samegrad's and gloo's."""
    found: dict[str, Any] = {workload: [] for workload in TIMED}
    for workload, steps in TIMED.items():
        arguments = [PEERS, workload, "mpi", "--replicas", 2, "--steps", *steps]
        words = command(python, launcher, *arguments)
        for _ in range(pairs):
            times = _step_ms(run(words, 600)[1]), _gloo_ms(peer_python, workload)
            found[workload].append(times)
    return found


def _gloo_ms(peer_python: str, workload: str) -> float:
    """Return the milliseconds of a step of a DDP job with a process in each host."""
    words = [peer_python, PEERS, workload, "ddp", "--replicas", 2, "--threads", 1, "--steps"]
    words += TIMED[workload]
    shared = ["env", "WORLD_SIZE=2", f"MASTER_ADDR={address(0)}", "MASTER_PORT=29500"]
    jobs = [
        [*shared, f"RANK={rank}", f"GLOO_SOCKET_IFNAME={name}", *inside(rank, *words)]
        for rank, name in enumerate(HOSTS)
    ]
    with ThreadPoolExecutor() as pool:
        (_, output, _), _ = pool.map(run, jobs, [600, 600])
    return _step_ms(output)


def _step_ms(output: str) -> float:
    reports = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    assert reports and "step_ms" in reports[-1], output[-3000:]
    return float(reports[-1]["step_ms"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable, help="has mpi4py, beside its mpiexec")
    parser.add_argument("--delay", type=float, default=1.0, help="milliseconds of one direction")
    parser.add_argument("--cut", type=int, default=1 << 60, metavar="FRAMES")
    parser.add_argument("--peer-python", help="has requirements.txt of tests/benchmarks")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds of a job")
    options = parser.parse_args()
    program = PROGRAMS / "cnn.py"
    _, alone, alone_s = run([options.python, str(program), "--one-process", "--replicas", "2"], 600)
    found = {"delay_ms": options.delay, "one_process_s": round(alone_s, 1)}
    with (
        tempfile.TemporaryDirectory() as folder,
        two_hosts(options.delay / 1e3, options.cut) as link,
    ):
        round_trip = execute(*inside(0, options.python, "-c", ROUND_TRIP, address(1)))
        found["round_trip_ms"] = float(round_trip)
        words = command(options.python, Path(folder, "launcher"), program)
        code, output, seconds = run(words, options.limit)
        found |= {"exit": code, "two_hosts_s": round(seconds, 1), "frames": link.frames}
        found["same_weights"] = output.count("weights") == 2 and set(alone.split()) == set(
            output.split()
        )
        if code or not found["same_weights"]:
            found["output"] = output[-3000:]
        elif options.peer_python:
            launcher = Path(folder, "launcher")
            found["step_ms"] = beside_gloo(
                options.python, options.peer_python, launcher, options.pairs
            )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
