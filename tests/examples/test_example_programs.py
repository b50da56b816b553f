"""The programs in examples/ run on small data, and their results do not depend on replicas."""

from __future__ import annotations

import importlib
import itertools
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import record_small_bert

import samegrad as tf

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
BERT = ["--steps", "12", "--save-every", "4", "--batch-size", "16", "--length", "10"]


def command(name, *arguments):
    return [sys.executable, str(EXAMPLES / name), *map(str, arguments)]


def run(name, *arguments):
    """Return the lines that a program prints."""
    done = subprocess.run(command(name, *arguments), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def example(name):
    """Return an example program as a module."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(EXAMPLES))


@pytest.fixture(scope="module")
def small_bert(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert") / "small-bert"
    run("bert_pretraining.py", "--folder", folder, "--steps", 30)
    return folder


@pytest.fixture(scope="module")
def whole(small_bert, tmp_path_factory):
    """Return the lines of a fine-tuning on one replica, and its folder."""
    folder = tmp_path_factory.mktemp("whole")
    return run("bert_classification.py", "--bert", small_bert, "--folder", folder,
               "--replicas", 1, *BERT), folder  # fmt: skip


def test_pretrained_bert_has_the_names_of_hugging_face(small_bert):
    names = set(tf.convert.load(small_bert))
    assert {
        "bert.embeddings.word_embeddings.weight",
        "bert.encoder.layer.1.attention.self.query.weight",
        "bert.encoder.layer.1.attention.output.LayerNorm.bias",
        "bert.pooler.dense.weight",
        "cls.predictions.bias",
        "cls.predictions.transform.LayerNorm.weight",
    } <= names
    assert len(names) == 5 + 2 * 16 + 2 + 5


@pytest.mark.parametrize("replicas", [2, 3, 8])
def test_bert_has_the_same_weights_on_any_replicas(small_bert, whole, tmp_path, replicas):
    lines = run("bert_classification.py", "--bert", small_bert, "--folder", tmp_path,
                "--replicas", replicas, *BERT)  # fmt: skip
    assert lines == whole[0] and len(lines) == 13
    assert lines[-1].startswith("accuracy ")


def test_killed_bert_continues_to_the_same_weights(small_bert, whole, tmp_path):
    arguments = ["--bert", small_bert, "--folder", tmp_path, *BERT]
    program = command("bert_classification.py", *arguments, "--replicas", 2)
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while tf.train.latest_checkpoint(tmp_path) is None:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.005)
    process.kill()
    process.communicate()
    first, *others = run("bert_classification.py", *arguments, "--replicas", 4)
    assert first.startswith("continue after ")
    assert others == whole[0][-len(others) :] and len(others) <= 9


def test_fine_tuned_bert_is_saved_with_the_names_of_hugging_face(small_bert, whole):
    before = tf.convert.load(small_bert)
    after = tf.convert.load(whole[1])
    kept = {name for name in before if not name.startswith("cls.")}
    assert after.keys() == kept | {"classifier.weight", "classifier.bias"}
    assert {name: after[name].shape for name in kept} == {n: before[n].shape for n in kept}
    changed = [name for name in kept if not np.array_equal(before[name], after[name])]
    assert "bert.encoder.layer.0.attention.self.query.weight" in changed


def test_bert_of_tensorflow_has_the_arrays_of_its_checkpoint():
    arrays, bert = record_small_bert.weights(), example("bert_classification")
    config, vocabulary, weights = bert.pretrained(record_small_bert.FOLDER)
    model = bert.Bert(config)
    model(np.zeros((1, 4), np.int64))
    tf.convert.from_torch(model, weights, bert.NAMES, ignore=["cls"])
    block, layer = model.blocks[1], "bert/encoder/layer_1"
    for variable, name in (
        (model.embeddings.word_embeddings.embeddings, "bert/embeddings/word_embeddings"),
        (model.embeddings.norm.gamma, "bert/embeddings/LayerNorm/gamma"),
        (block.attention.query_dense.kernel, f"{layer}/attention/self/query/kernel"),
        (block.attention.output_dense.kernel, f"{layer}/attention/output/dense/kernel"),
        (block.inner.kernel, f"{layer}/intermediate/dense/kernel"),
        (block.outer_norm.beta, f"{layer}/output/LayerNorm/beta"),
        (model.pooler.kernel, "bert/pooler/dense/kernel"),
    ):
        np.testing.assert_array_equal(np.ravel(variable), arrays[name].ravel(), err_msg=name)
    assert len(model.weights) + 7 == len(arrays) and vocabulary == record_small_bert.VOCABULARY


def test_bert_of_tensorflow_is_fine_tuned(tmp_path, capsys):
    bert = example("bert_classification")
    bert.main(["--bert", str(record_small_bert.FOLDER), "--folder", str(tmp_path), "--steps", "2"])
    assert capsys.readouterr().out.splitlines()[-1].startswith("accuracy ")
    tuned = tf.convert.load(tmp_path)
    assert tuned["bert.encoder.layer.1.attention.self.query.weight"].shape == (8, 8)


def test_fine_tuning_does_not_decay_biases_and_norms(small_bert):
    """A step without gradients changes the kernels only."""
    bert = example("bert_classification")
    schedule = bert.WarmUp(1.0, 4, 20)
    rates = [float(schedule(step)) for step in range(21)]
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0]
    np.testing.assert_allclose(rates[4:], np.arange(16, -1, -1) / 16)
    config, _, weights = bert.pretrained(small_bert)
    model = bert.Classifier(config, classes=2)
    model(np.zeros((1, 4), np.int64))
    tf.convert.from_torch(model.bert, weights, bert.NAMES, ignore=["cls"])
    optimizer = bert.optimizer_of(0.1)
    before = {v.path: v.numpy() for v in model.trainable_variables}
    optimizer.apply_gradients([(tf.zeros(v.shape), v) for v in model.trainable_variables])
    for variable in model.trainable_variables:
        factor = 1.0 if variable.path.endswith(("bias", "gamma", "beta")) else 1 - 0.1 * 0.01
        np.testing.assert_allclose(
            variable.numpy(), before[variable.path] * factor, rtol=1e-6, err_msg=variable.path
        )


def test_lines_of_a_file_are_classified(small_bert, tmp_path):
    data = tmp_path / "data.tsv"
    data.write_text("1\tthe film was great .\n0\tthe film was awful, and unknown!\n" * 8)
    lines = run("bert_classification.py", "--bert", small_bert, "--folder", tmp_path / "out",
                "--train", data, "--test", data, *BERT, "--steps", "30",
                "--learning-rate", "0.005")  # fmt: skip
    assert lines[-1].startswith("accuracy 1.000")


def densenet(*arguments):
    """Return the fingerprint of the weights that the program prints last."""
    return run("densenet.py", "--epochs", 2, *arguments)[-1]


def test_densenet_has_the_same_weights_by_loop_and_fit_on_any_replicas():
    found = {
        densenet("--train-mode", mode, "--replicas", replicas)
        for mode, replicas in (("custom_loop", 1), ("custom_loop", 3), ("keras_fit", 2))
    }
    assert len(found) == 1 and found.pop().startswith("weights sg1-")


def test_densenet_reads_a_file_like_that_of_cifar10(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (24, 16, 16, 3), np.uint8)
    labels = np.arange(24)[:, None] % 10
    file = tmp_path / "cifar10.npz"
    np.savez(file, x_train=images, y_train=labels, x_test=images, y_test=labels)
    assert densenet("--data", file, "--batch-size", 12).startswith("weights ")


def test_filter_has_the_same_weights_by_loop_and_fit_on_any_replicas():
    small = ["--users", 200, "--items", 150, "--epochs", 2, "--batch-size", 500]
    whole = run("ncf.py", *small, "--replicas", 1)
    assert whole == run("ncf.py", *small, "--replicas", 3, "--custom-loop")
    assert whole == run("ncf.py", *small, "--replicas", 2)
    assert len(whole) == 4 and whole[-1].startswith("weights sg1-")


def test_translator_has_the_same_weights_on_any_replicas():
    small = ["--epochs", 2, "--width", 16, "--held-out", 3]
    whole = run("nmt.py", *small, "--replicas", 1)
    assert whole == run("nmt.py", *small, "--replicas", 3)
    assert " -> " in whole[2] and whole[-1].startswith("weights sg1-")


def test_translator_learns_the_small_data():
    *_, result, _ = run("nmt.py")
    assert int(result.split()[0]) >= 45 and result.split()[1:3] == ["of", "50"]


def test_translator_reads_a_file_of_pairs(tmp_path):
    file = tmp_path / "pairs.tsv"
    file.write_text("one two\tun deux\ntwo\tdeux\none\tun\n" * 8)
    small = ["--epochs", 2, "--width", 8, "--held-out", 2, "--batch-size", 8]
    assert "of 2 held-out" in run("nmt.py", "--pairs", file, *small)[-2]


class Chain:
    """A translator whose next word depends on the last one only."""

    def __init__(self, words):
        self.logits = np.random.default_rng(0).normal(size=(words, words)).astype(np.float32)

    def encode(self, source):
        return tf.zeros((1, 1, 1)), tf.ones((1, 1), "bool"), tf.zeros((1, 1))

    def decode(self, target, memory, mask, state):
        return tf.constant(self.logits[target.numpy()[:, -1]][:, None]), tf.constant(state)


def test_beam_search_finds_the_best_of_all_sentences():
    nmt, words, length = example("nmt"), 6, 4
    chain = Chain(words)
    logits = chain.logits.astype(np.float64)
    probabilities = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    scores = {}
    for size in range(length):
        for inner in itertools.product([w for w in range(words) if w != nmt.END], repeat=size):
            sentence = [nmt.BEGIN, *inner, nmt.END]
            total = sum(probabilities[a, b] for a, b in itertools.pairwise(sentence))
            scores[tuple(sentence)] = total / len(sentence)
    found = nmt.beam_search(chain, [1], length, beams=200)
    assert tuple(found) == max(scores, key=scores.get)
    assert scores[tuple(found)] >= scores[tuple(nmt.beam_search(chain, [1], length, beams=1))]


def test_staged_gan_changes_the_variables_of_the_stage_on_any_replicas():
    whole = run("staged_gan.py", "--steps", 5, "--replicas", 1)
    assert [line.partition("changed: ")[2] for line in whole[:3]] == [
        "generator",
        "discriminator",
        "generator and discriminator",
    ]
    assert whole == run("staged_gan.py", "--steps", 5, "--replicas", 3)


def test_staged_gan_leaves_variables_without_gradients_unchanged():
    small = ["--steps", 3, "--replicas", 2]
    given = command("staged_gan.py", *small, "--all-variables")
    done = subprocess.run(given, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == run("staged_gan.py", *small)
    assert done.stderr.count("Gradients do not exist for variables ['discriminator/") == 1
