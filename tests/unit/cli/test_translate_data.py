"""Sentence pairs of files and catalogues, words in pieces, and batches of them."""

import itertools
import struct
import sys

import numpy as np
import pytest

import samegrad as tf
from samegrad.cli._errors import CommandError
from samegrad.cli._translate._batches import (
    Epochs,
    batches_of,
    encode_pairs,
    lengths_of_buckets,
    unigram_perplexity,
)
from samegrad.cli._translate._pairs import digest_of_pairs, hold_out, read_packages, read_pairs
from samegrad.cli._translate._vocabulary import END, START, UNKNOWN, Vocabulary


def written(tmp_path, content):
    path = tmp_path / "pairs.tsv"
    path.write_bytes(content)
    return path


def test_lines_of_two_sentences(tmp_path):
    content = (
        "\ufeffOne\tUn\r\n Two  %(n)s \tDeux\u00a0: %(n)s\tCC-BY\nOne\tUn\nOne\tUne\n".encode()
    )
    found = read_pairs(written(tmp_path, content))
    assert found == [("One", "Un"), ("Two %(n)s", "Deux\u00a0: %(n)s"), ("One", "Une")]


def test_a_last_line_without_an_end(tmp_path):
    assert read_pairs(written(tmp_path, b"a\tb\nc\td")) == [("a", "b"), ("c", "d")]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a\tb\nonly one\n", r"line 2, .*got one column, 'only one'"),
        (b"a\tb\n\nc\td\n", "line 2, .*one column, ''"),
        (b"a\tb\nc\td\n\xff\xfe\tx\n", "line 3, must be UTF-8: got the byte 0xff at place 1"),
        (b"a\tgro\xdf\n", "line 1, must be UTF-8: got the byte 0xdf at place 6"),
        (b"a\t \n", "line 1, .*empty target"),
        (b"a\tb\n\tb\n", "line 2, .*empty source"),
        (b"", "empty file"),
    ],
)
def test_wrong_lines_are_named(tmp_path, content, words):
    with pytest.raises(CommandError, match=words):
        read_pairs(written(tmp_path, content))


def test_a_hundred_thousand_lines(tmp_path):
    lines = "".join(f"sentence {n}\tphrase {n}\n" for n in range(100_000))
    path = written(tmp_path, lines.encode() + b"the last\n")
    with pytest.raises(CommandError, match="line 100001,"):
        read_pairs(path)
    path.write_bytes(lines.encode())
    assert len(read_pairs(path)) == 100_000


def catalogue(messages):
    """The bytes of a .mo file, as the manual of GNU gettext describes it."""
    messages = {"": "Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=2; "
                "plural=(n != 1);\n", **messages}  # fmt: skip
    pairs = sorted((a.encode(), b.encode()) for a, b in messages.items())
    place = 28 + 16 * len(pairs)
    tables, content = [[], []], b""
    for column in (0, 1):
        for pair in pairs:
            tables[column] += [len(pair[column]), place + len(content)]
            content += pair[column] + b"\0"
    head = struct.pack("<7I", 0x950412DE, 0, len(pairs), 28, 28 + 8 * len(pairs), 0, place)
    numbers = [*tables[0], *tables[1]]
    return head + struct.pack(f"<{len(numbers)}I", *numbers) + content


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with two catalogues, which must not be run."""
    folder = tmp_path / "site" / "messages_of_tests"
    for app, messages in {
        "a": {
            "Save": "Enregistrer",
            "month\x04May": "mai",
            "%(n)d file\0%(n)d files": "%(n)d fichier\0%(n)d fichiers",
            "Not done": "",
        },
        "b": {"Save": "Sauver", "verb\x04May": "peut", "two\nlines": "deux\nlignes\u00a0!"},
    }.items():
        place = folder / app / "locale" / "fr" / "LC_MESSAGES"
        place.mkdir(parents=True)
        (place / "x.mo").write_bytes(catalogue(messages))
    (folder / "__init__.py").write_text("raise RuntimeError('run')\n")
    monkeypatch.syspath_prepend(str(folder.parent))
    return folder


def test_messages_of_a_package(package):
    found = read_packages(["messages_of_tests"], "fr")
    assert sorted(found) == [
        ("%(n)d file", "%(n)d fichier"),
        ("May", "mai"),
        ("Save", "Enregistrer"),
        ("two lines", "deux lignes\u00a0!"),
    ]
    assert "messages_of_tests" not in sys.modules


def test_wrong_packages_are_named(package):
    for name in ("no_such_package", "os", "messages_of_tests.a", ""):
        with pytest.raises(CommandError, match=f"must be installed: got '{name}'"):
            read_packages([name], "fr")
    with pytest.raises(CommandError, match="got 'tlh'. Take one of fr"):
        read_packages(["messages_of_tests"], "tlh")
    path = package / "a" / "locale" / "fr" / "LC_MESSAGES" / "x.mo"
    whole = path.read_bytes()
    for content in (b"", b"no catalogue at all", whole[:10], whole[:-30]):
        path.write_bytes(content)
        with pytest.raises(CommandError, match="catalogue of gettext: got one that is damaged"):
            read_packages(["messages_of_tests"], "fr")


def test_the_default_data_are_real_messages():
    pytest.importorskip("django", reason="its messages are the data")
    pairs = read_packages(["django"], "fr")
    assert len(pairs) > 700
    assert ("Enter a valid URL.", "Saisissez une URL valide.") in pairs
    assert len({source for source, _ in pairs}) == len(pairs)
    assert any("%(" in source for source, _ in pairs)
    assert pairs == read_packages(["django"], "fr")


def some_pairs(count):
    return [(f"source {n}", f"target {n}") for n in range(count)]


def test_a_pair_is_held_out_wherever_it_stands():
    pairs = some_pairs(200)
    train, held_out = hold_out(pairs, 0.1)
    assert len(held_out) == 20
    assert sorted(train + held_out) == sorted(pairs)
    assert (train, held_out) == hold_out(pairs[::-1], 0.1)
    _, others = hold_out([*pairs, ("x", "y")], 20 / 201)
    assert len(set(held_out) - set(others)) <= 1
    assert digest_of_pairs(train) != digest_of_pairs(train[::-1])


def test_splits_of_few_pairs():
    assert [len(part) for part in hold_out(some_pairs(2), 0.999)] == [1, 1]
    assert [len(part) for part in hold_out(some_pairs(3), 0.001)] == [2, 1]
    with pytest.raises(CommandError, match="at least 2 pairs.*got 1"):
        hold_out(some_pairs(1), 0.5)


SENTENCES = ["Enter a valid URL.", "Saisissez une URL valide.", "%(name)s — « déjà\u00a0vu »"] * 5


@pytest.fixture(scope="module")
def vocabulary():
    pytest.importorskip("sentencepiece")
    return Vocabulary.learn(SENTENCES, 60)


def test_pieces_give_the_sentence_back(vocabulary):
    for sentence in SENTENCES:
        tokens = vocabulary.encode(sentence)
        assert tokens.dtype == np.int32
        assert tokens.min() > END
        assert tokens.max() < len(vocabulary) == 60
        assert vocabulary.decode([*tokens, END, 7, 7]) == sentence
        assert vocabulary.decode([*tokens, 0, 0]) == sentence
    assert UNKNOWN in vocabulary.encode("日本")
    assert vocabulary.decode([]) == ""


def test_a_vocabulary_is_learnt_and_saved_to_the_byte(vocabulary, tmp_path):
    path = tmp_path / "vocabulary.model"
    vocabulary.save(path)
    assert Vocabulary.learn(SENTENCES, 60).content == vocabulary.content == path.read_bytes()
    assert Vocabulary.load(path).encode("valid").tolist() == vocabulary.encode("valid").tolist()


def test_wrong_vocabularies(vocabulary, tmp_path):
    for size in (5, 100_000):
        with pytest.raises(CommandError, match=f"--vocabulary must fit the data.*got {size}"):
            Vocabulary.learn(SENTENCES, size)
    with pytest.raises(CommandError, match="no file"):
        Vocabulary.load(tmp_path / "absent")
    for content in (b"", b"something", vocabulary.content[:50]):
        (tmp_path / "damaged").write_bytes(content)
        with pytest.raises(CommandError, match="must be one that this command has saved"):
            Vocabulary.load(tmp_path / "damaged")


def test_ends_and_starts_and_what_is_too_long(vocabulary):
    pairs = [(SENTENCES[0], SENTENCES[1]), ("URL " * 90, "URL")]
    examples, kept = encode_pairs(pairs, vocabulary, 60)
    assert kept == pairs[:1]
    ((source, target),) = examples
    assert source[-1] == END
    assert (target[0], target[-1]) == (START, END)
    longest = max(len(source), len(target) - 1)
    assert len(encode_pairs(pairs, vocabulary, longest)[0]) == 1
    with pytest.raises(CommandError, match=f"--max-length.*got {longest - 1}.*each of 2 pairs"):
        encode_pairs(pairs, vocabulary, longest - 1)


def examples_of(count, longest):
    rng = np.random.default_rng(0)
    for number in range(count):
        source, target = rng.integers(1, longest + 1, 2)
        yield np.full(source, number + 1, np.int32), np.full(target + 1, number + 1, np.int32)


@pytest.mark.parametrize("longest", [1, 7, 8, 9, 40, 1000])
def test_lengths_of_buckets_end_with_the_longest(longest):
    lengths = lengths_of_buckets(longest)
    assert lengths[-1] == longest
    assert lengths == sorted(set(lengths))
    assert all(b <= 1.5 * a + 1 for a, b in itertools.pairwise(lengths))


@pytest.mark.parametrize("tokens", [10, 100, 10_000])
def test_every_example_comes_once_and_within_the_budget(tokens):
    examples = list(examples_of(300, 40))
    seen, shapes = [], set()
    for source, target in batches_of(examples, 40, tokens, seed=1):
        assert source.shape == target.shape
        assert source.shape[0] * (target.shape[1] - 1) <= max(tokens, 40)
        shapes.add(source.shape[1])
        seen += source.numpy()[:, 0].tolist()
        for row, number in zip(target.numpy(), seen[-len(target.numpy()) :], strict=True):
            assert row[row > 0].tolist() == examples[number - 1][1].tolist()
    assert sorted(seen) == list(range(1, 301))
    assert shapes <= {length + 1 for length in lengths_of_buckets(40)}


def test_epochs_have_their_orders_and_are_found_again(tmp_path):
    strategy = tf.distribute.MirroredStrategy(replicas=2)

    def epochs():
        return Epochs(batches_of(list(examples_of(60, 20)), 20, 100, seed=3), strategy)

    def rest(of):
        return [
            [part.numpy().tolist() for part in source.values] for source, _ in of.iterator
        ]  # fmt: skip

    one = epochs()
    first = rest(one)
    one.begin_next()
    second = rest(one)
    assert first != second
    other = epochs()
    rest(other)
    other.begin_next()
    for _ in range(4):
        next(other.iterator)
    path = tf.train.Checkpoint(epochs=other).save(tmp_path / "ckpt")
    resumed = epochs()
    for _ in range(2):
        tf.train.Checkpoint(epochs=resumed).restore(path)
        assert rest(resumed) == second[4:]
    resumed.begin_next()
    one.begin_next()
    assert rest(resumed) == rest(one)


def test_a_unigram_model():
    one = np.array([START, 5, 5, END])
    far = np.array([START, 4])
    found = unigram_perplexity([(one, one)], [(far, far), (far, far)], 6)
    assert found == pytest.approx(9.0)  # counts 0 0 0 1 0 2, each and one more: 1 of 9
