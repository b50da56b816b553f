"""AutoShardPolicy: which process opens which files, and what the global batches are made of."""

import ast

import pytest
from launch import every_mpi, run, run_alone

import samegrad as tf

pytestmark = pytest.mark.parametrize("mpi", every_mpi())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Five files of 3 to 7 lines, file n from 10 * n on; and the same as records."""
    found = tmp_path_factory.mktemp("files")
    for n in range(5):
        lines = [str(10 * n + line) for line in range(3 + n)]
        (found / f"{n}.txt").write_text("\n".join(lines) + "\n")
        with tf.io.TFRecordWriter(str(found / f"{n}.tfrecord")) as writer:
            for line in lines:
                writer.write(line.encode())
    return found


ALL = sorted(10 * n + line for n in range(5) for line in range(3 + n))


class Said:
    """What the processes of `own_files.py` have printed."""

    def __init__(self, ended, ranks):
        assert ended.code == 0, ended.text
        lines = ended.out.splitlines()
        batches = [line for line in lines if line.startswith("epoch")]
        assert all(batches.count(line) % ranks == 0 for line in batches)  # all have the same
        in_order = list(dict.fromkeys(batches))
        self.epochs = [
            [ast.literal_eval(line.partition(": ")[2]) for line in in_order if line[6] == epoch]
            for epoch in "01"
        ]
        self.opened = {
            int(line.split()[1][:-1]): ast.literal_eval(line.partition(": ")[2])
            for line in lines
            if line.startswith("opened")
        }
        self.lines = lines
        assert sorted(self.opened) == list(range(ranks))


def rows(batches):
    return sorted(row for batch in batches for row in batch)


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("kind", ["interleave", "flat_map", "records", "shuffled"])
def test_each_process_opens_every_nth_file_and_no_other(mpi, folder, kind, ranks):
    found = Said(run(mpi, ranks, "own_files.py", kind, folder, 6), ranks)
    end = "tfrecord" if kind == "records" else "txt"
    for rank, opened in found.opened.items():
        assert opened == [f"{n}.{end}" for n in range(5) if n % ranks == rank]
    for batches in found.epochs:  # all elements once; of uneven files the ends come one by one
        assert rows(batches) == ALL
        assert len(batches[0]) == 6
    if kind in ("flat_map", "shuffled"):
        assert found.epochs[0] != found.epochs[1]


def test_composition_of_batches_by_hand(mpi, folder):
    found = Said(run(mpi, 2, "own_files.py", "records", folder, 2), 2)
    assert found.epochs[0] == [
        [0, 1, 2, 10, 11, 12],  # three of files 0, 2, 4, and three of 1, 3
        [20, 21, 22, 13, 30, 31],
        [23, 24, 40, 32, 33, 34],
        [41, 42, 43, 35],  # rank 1 has come to its end
        [44, 45, 46],
    ]
    dropped = Said(run(mpi, 2, "own_files.py", "dropped", folder, 2), 2)
    assert dropped.epochs == [found.epochs[0][:3]] * 2


@pytest.mark.parametrize("kind", ["csv", "joined", "rebatched"])
def test_other_ways_to_read_files(mpi, folder, kind):
    found = Said(run(mpi, 2, "own_files.py", kind, folder, 2), 2)
    assert rows(found.epochs[0]) == rows(found.epochs[1]) == ALL
    assert not set(found.opened[0]) & set(found.opened[1])
    assert sorted(found.opened[0] + found.opened[1]) == [f"{n}.txt" for n in range(5)]


def test_processes_without_a_row(mpi, folder):
    found = Said(run(mpi, 2, "own_files.py", "empty", folder, 2), 2)
    assert found.epochs == [[[0, 1, 2]]] * 2  # of rank 0
    assert Said(run(mpi, 2, "own_files.py", "none", folder, 2), 2).epochs == [[], []]


def test_names_beside_labels_and_functions_that_read(mpi, folder):
    found = Said(run(mpi, 2, "own_files.py", "map", folder, 2), 2)
    assert found.opened == {0: ["0.txt", "2.txt", "4.txt"], 1: ["1.txt", "3.txt"]}
    assert rows(found.epochs[0]) == [0, 1, 2, 3, 4]
    assert found.lines.count(f"batches: {len(found.epochs[0])}") == 2


def test_files_that_are_chosen_before_are_dealt_out_afterwards(mpi, folder):
    found = Said(run(mpi, 2, "own_files.py", "taken", folder, 2), 2)
    assert found.opened == {0: ["0.txt"], 1: ["1.txt"]}
    assert found.epochs[0] == [[0, 1, 2, 10, 11, 12], [13]]


def test_elements_are_kept_by_each_process(mpi, folder):
    found = Said(run(mpi, 2, "own_files.py", "cached", folder, 2), 2)
    assert rows(found.epochs[0]) == rows(found.epochs[1]) == ALL
    again = Said(run(mpi, 2, "own_files.py", "cached", folder, 2), 2)
    assert again.opened == {0: ["kept.elements.0of2"], 1: ["kept.elements.1of2"]}
    assert again.epochs == found.epochs


@pytest.mark.parametrize(
    ("kind", "policy", "name"), [("names kept", "FILE", "names"), ("own kept", "OFF", "own")]
)
def test_no_process_reads_what_another_one_has_kept(mpi, folder, kind, policy, name):
    everything = ALL if policy == "FILE" else list(range(100))
    for _ in range(2):  # a later job reads what the first has written
        found = Said(run(mpi, 2, "own_files.py", kind, folder, 2, policy), 2)
        assert rows(found.epochs[0]) == rows(found.epochs[1]) == everything
    kept = sorted(path.name for path in folder.glob(f"{name}.*"))
    assert kept == [f"{name}.elements.0of2", f"{name}.elements.1of2"]


def test_processes_draw_other_numbers(mpi, folder):
    found = Said(run(mpi, 2, "own_files.py", "draws", folder, 2), 2)
    drawn = rows(found.epochs[0])
    assert len(drawn) == len(set(drawn)) == len(ALL)


def test_off_leaves_the_choice_to_the_program(mpi, folder):
    """`shuffle` before `shard` is the same on all processes, so that their parts are disjoint."""
    found = Said(run(mpi, 2, "own_files.py", "own", folder, 2, "OFF"), 2)
    assert rows(found.epochs[0]) == rows(found.epochs[1]) == list(range(100))
    assert found.epochs[0] != found.epochs[1]
    assert len(found.epochs[0]) == 17 and len(found.epochs[0][-1]) == 4


@pytest.mark.parametrize("policy", ["DATA", "AUTO"])
def test_other_policies_have_the_batches_of_one_process(mpi, folder, policy):
    found = Said(run(mpi, 2, "own_files.py", "records", folder, 4, policy), 2)
    alone = Said(run_alone("own_files.py", "records", folder, 4, "FILE"), 1)
    assert found.epochs == alone.epochs
    assert found.opened[0] == alone.opened[0] == [f"{n}.tfrecord" for n in range(5)]


@pytest.mark.parametrize(
    ("kind", "ranks", "policy", "message"),
    [
        ("records", 6, "FILE", "a file for each process: got 5 files for 6 processes; write more"),
        ("zipped", 2, "FILE", "needs a dataset that reads files: got one of range"),
        ("generator", 2, "FILE", "needs a dataset that reads files: got one of from_generator"),
        ("unbatched", 2, "FILE", "call .batch(global_batch_size) last"),
        ("other", 2, "FILE", "got lists that differ, 5 on rank 0, 4 on rank 1 names"),
        ("fewer", 2, "FILE", "got lists that differ, 5 on rank 0, 1 on rank 1 names; give all"),
        ("broken", 2, "FILE", "one shape on all processes: got [(3,)] on rank 0 and [(4,)]"),
        ("records", 2, "HINT", "call Dataset.shard with mpi.size() and rank()"),
    ],
)
def test_refusals_are_said_on_all_ranks(mpi, folder, kind, ranks, policy, message):
    ended = run(mpi, ranks, "own_files.py", kind, folder, ranks, policy, limit=90)
    assert ended.code != 0
    assert message in ended.err
    assert ended.err.count("ValueError: [experimental_distribute_dataset]") >= ranks, ended.err


@pytest.mark.parametrize(
    ("kind", "own", "others"),
    [
        ("damaged", "'a word'", "read its rows of a batch: rank 1 got "),
        ("ends", "need rows of a global batch", "each process must make its dataset: rank 0 got "),
    ],
)
def test_what_fails_on_one_process_is_said_on_all(mpi, folder, kind, own, others):
    ended = run(mpi, 2, "own_files.py", kind, folder, 2, limit=90)
    assert ended.code != 0
    assert own in ended.err and others in ended.err, ended.err


def test_a_batch_without_rows_for_a_process_is_refused(mpi, folder):
    ended = run(mpi, 2, "own_files.py", "small", folder, 4, limit=90)
    assert ended.code != 0
    assert "got a batch of 2, distributed as [2, 0]; take larger batches" in ended.err


def test_fit_reads_own_files_too(mpi, folder):
    ended = run(mpi, 2, "fit_files.py", folder, "FILE")
    assert ended.code == 0, ended.text
    lines = ended.out.splitlines()
    steps = [line for line in lines if line.startswith("steps")]
    assert len(steps) == 2 and len(set(steps)) == 1
    assert steps[0].startswith("steps 12 ")  # 15 lines of three files, four at a time
    assert "opened 0: ['0.txt', '2.txt', '4.txt']" in lines
    assert "opened 1: ['1.txt', '3.txt']" in lines
    whole = run(mpi, 2, "fit_files.py", folder, "DATA")
    assert whole.code == 0, whole.text
    assert "opened 1: ['0.txt', '1.txt', '2.txt', '3.txt', '4.txt']" in whole.out


@pytest.mark.parametrize(("drops", "batches"), [((), 5), (("drops",), 4)])
def test_fit_over_uneven_data_of_the_program(mpi, folder, drops, batches):
    """17 rows: 9 on rank 0, 8 on rank 1, of two each a batch; all make as many steps."""
    ended = run(mpi, 2, "fit_files.py", folder, "OFF", *drops, limit=90)
    assert ended.code == 0, ended.text
    lines = ended.out.splitlines()
    assert lines.count(f"batches {batches} {batches}") == 2
    steps = [line for line in lines if line.startswith("steps")]
    assert len(steps) == 2 and len(set(steps)) == 1
    assert steps[0].startswith(f"steps {3 * batches} ")
