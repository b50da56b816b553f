"""Every command that trains, under a launcher: the log, the lines and the bits of one process."""

import importlib.util
import sys

import pytest
from launch import every_mpi, run

pytestmark = pytest.mark.parametrize("mpi", every_mpi())
GAN = ["wgan-gp", "--batch-size", "4", "--width", "2", "--iterations", "4", "--save-every", "2"]
GAN += ["--limit", "20", "--quality-every", "2", "--replicas", "4", "--fingerprint"]
TEXT = ["translate", "--epochs", "1", "--vocabulary", "60", "--batch-tokens", "40", "--layers", "1"]
TEXT += ["--width", "8", "--heads", "2", "--max-length", "24", "--replicas", "4", "--fingerprint"]


def lines_and_log(ended, log):
    assert ended.code == 0, ended.text
    return sorted(line for line in ended.out.splitlines() if "saved" not in line), log.read_bytes()


@pytest.fixture
def pairs(tmp_path):
    words = {"one": "un", "red": "rouge", "house": "maison", "is": "est", "old": "vieux"}
    names = list(words)
    rows = [[names[(n * n + k) % 5] for k in range(n % 6 + 1)] for n in range(24)]
    lines = [" ".join(row) + "\t" + " ".join(words[word] for word in row) for row in rows]
    file = tmp_path / "pairs.tsv"
    file.write_text("\n".join(lines) + "\n")
    return file


def compare(mpi, tmp_path, words):
    found = []
    for ranks in (1, 2, 3):
        folder = tmp_path / str(ranks)
        log = tmp_path / f"log{ranks}"
        ended = run(mpi, ranks, "command.py", *words, "--checkpoint-dir", folder, "--log", log)
        found.append(lines_and_log(ended, log))
    assert found[0] == found[1] == found[2]
    assert b"fingerprint" in found[0][1]


def test_a_gan_has_the_log_of_one_process(mpi, tmp_path):
    compare(mpi, tmp_path, GAN)


@pytest.mark.skipif(
    importlib.util.find_spec("sentencepiece") is None, reason="sentencepiece is not installed"
)
def test_a_translator_has_the_log_of_one_process(mpi, tmp_path, pairs):
    if mpi.python != sys.executable:
        pytest.skip("the other interpreter may lack sentencepiece")
    compare(mpi, tmp_path, [*TEXT, "--pairs", pairs])


def test_a_stopped_gan_goes_on_with_other_processes(mpi, tmp_path):
    whole = [*GAN, "--checkpoint-dir", tmp_path / "a", "--log", tmp_path / "whole"]
    assert run(mpi, 1, "command.py", *whole).code == 0
    parts = [*GAN, "--checkpoint-dir", tmp_path / "b", "--log", tmp_path / "parts"]
    stopped = run(mpi, 2, "command.py", *parts, "--steps", 3)
    assert stopped.out.count("Stopped after iteration 3") == 1, stopped.text
    again = run(mpi, 3, "command.py", *parts, "--resume")
    assert again.code == 0 and again.out.count("Resumed from") == 1, again.text
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "parts").read_bytes()


def test_one_rank_without_the_data_is_said_on_all(mpi, tmp_path):
    ended = run(mpi, 3, "command.py", "fail", *GAN, "--checkpoint-dir", tmp_path / "a", limit=90)
    assert ended.code != 0
    why = "[samegrad] cannot use train-images-idx3-ubyte.gz: No such file or directory."
    assert f"samegrad: error: rank 1: {why}" in ended.err
    assert ended.err.count(f"rank 1 failed in call 0: {why} Give another path.") >= 2


def test_more_processes_than_replicas_are_refused(mpi, tmp_path):
    words = [*GAN, "--checkpoint-dir", tmp_path / "a"]
    words[words.index("--replicas") + 1] = "2"
    ended = run(mpi, 3, "command.py", *words, limit=90)
    assert ended.code != 0
    assert "each process needs a replica: got total_replicas=2 for 3 processes" in ended.text
