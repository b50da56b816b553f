"""Losses over drawn classes, beside TensorFlow's numbers; and how classes are drawn."""

import numpy as np
import pytest

import samegrad as tf

CLASSES = 20
# Of TensorFlow 2.21: losses with and without hits removed, and the sums of |gradient|.
RECORDED = {
    ("sampled_softmax_loss", True): ([3.9287, 2.3914, 2.3338, 1.7907], 18.20899),
    ("sampled_softmax_loss", False): ([4.0249, 2.3914, 2.419, 1.7907], 17.534),
    ("nce_loss", True): ([8.7447, 7.0664, 8.6796, 15.8038], 34.65354),
    ("nce_loss", False): ([10.5886, 7.0664, 10.3155, 15.8038], 36.32542),
}


def drawn_by_hand():
    r = np.random.default_rng(0)
    table = r.normal(size=(CLASSES, 5)).astype("float32")
    biases = r.normal(size=CLASSES).astype("float32")
    x = r.normal(size=(4, 5)).astype("float32")
    labels = np.array([[0, 3], [5, 6], [7, 7], [19, 1]])
    counts = [r.uniform(0.1, 1, shape).astype("float32") for shape in ((4, 2), 5)]
    return table, biases, labels, x, (np.array([3, 4, 7, 0, 11]), *counts)


@pytest.mark.parametrize("in_function", [False, True])
@pytest.mark.parametrize(("name", "without_hits"), sorted(RECORDED))
def test_losses_of_given_samples_are_tensorflows(name, without_hits, in_function):
    table, biases, labels, x, samples = drawn_by_hand()
    weights = tf.Variable(table)

    def step():
        with tf.GradientTape() as tape:
            losses = getattr(tf.nn, name)(
                weights, biases, labels, x, 5, CLASSES, num_true=2, sampled_values=samples,
                remove_accidental_hits=without_hits,
            )  # fmt: skip
        return losses, tf.convert_to_tensor(tape.gradient(losses, weights))

    losses, gradient = (tf.function(step) if in_function else step)()
    expected, total = RECORDED[name, without_hits]
    np.testing.assert_allclose(losses, expected, atol=1e-4)
    np.testing.assert_allclose(np.abs(gradient.numpy()).sum(), total, rtol=1e-5)


@pytest.mark.parametrize("name", ["log_uniform_candidate_sampler", "uniform_candidate_sampler"])
@pytest.mark.parametrize("unique", [False, True])
def test_classes_come_as_often_as_is_expected_of_them(name, unique):
    tf.random.set_seed(5)
    sampler = tf.function(getattr(tf.random, name))
    every = np.arange(CLASSES)[:, None]
    seen, expected = np.zeros(CLASSES), np.zeros(CLASSES)
    for _ in range(600):
        classes, of_all, of_drawn = sampler(every, 1, 8, unique, CLASSES)
        classes = classes.numpy()
        assert classes.dtype == np.int64 and (not unique or len(set(classes.tolist())) == 8)
        np.testing.assert_array_equal(of_drawn, of_all.numpy()[classes, 0])
        np.add.at(seen, classes, 1 / 600)
        expected += of_all.numpy()[:, 0] / 600
    np.testing.assert_allclose(seen, expected, atol=0.1)
    if name == "uniform_candidate_sampler":
        np.testing.assert_allclose(seen, 8 / CLASSES, atol=0.1)
    else:
        assert seen[0] > 3 * seen[-1]


def test_all_classes_and_a_million():
    every = tf.random.uniform_candidate_sampler([[0]], 1, 7, True, 7)
    assert sorted(every.sampled_candidates.numpy()) == list(range(7))
    assert np.isfinite(every.true_expected_count.numpy()).all()
    many = tf.random.log_uniform_candidate_sampler([[999_999]], 1, 64, True, 1_000_000)
    assert len(set(many.sampled_candidates.numpy().tolist())) == 64
    one = tf.random.log_uniform_candidate_sampler([[0]], 1, 1, True, 1)
    assert one.sampled_candidates.numpy() == [0]


def test_training_with_sampled_losses_finds_the_true_classes():
    tf.keras.utils.set_random_seed(1)
    x = np.eye(CLASSES, dtype="float32")
    labels = np.arange(CLASSES)[:, None]
    weights = tf.Variable(tf.zeros([CLASSES, CLASSES]))
    biases = tf.Variable(tf.zeros([CLASSES]))
    optimizer = tf.keras.optimizers.Adam(0.2)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            losses = tf.nn.sampled_softmax_loss(weights, biases, labels, x, 6, CLASSES)
            loss = tf.nn.compute_average_loss(losses)
        parts = [weights, biases]
        optimizer.apply_gradients(zip(tape.gradient(loss, parts), parts, strict=True))

    for _ in range(60):
        step()
    found = tf.argmax(tf.matmul(x, weights, transpose_b=True) + biases, axis=1)
    np.testing.assert_array_equal(found, labels[:, 0])


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"true_classes": [[0.5]]}, r"true_classes must be integers: got float32"),
        ({"true_classes": [0]}, r"must have shape \(batch, num_true\): got \(1,\)"),
        ({"num_true": 2}, r"got \(1, 1\) with num_true=2"),
        ({"num_sampled": 0}, r"num_sampled must be 1 or more: got 0"),
        ({"num_sampled": 9}, r"num_sampled=9 and range_max=8; pass unique=False"),
        ({"range_max": 1 << 25}, r"range_max must be at most"),
        ({"num_sampled": 2.5}, r"num_sampled must be an integer"),
    ],
)
def test_wrong_draws_are_refused(change, rule):
    right = {"true_classes": [[0]], "num_true": 1, "num_sampled": 4, "unique": True, "range_max": 8}
    with pytest.raises((TypeError, ValueError), match=rule):
        tf.random.uniform_candidate_sampler(**(right | change))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"labels": np.ones((4, 2))}, r"labels must be integers: got float64"),
        ({"labels": np.ones((4, 3), int)}, r"got \(4, 3\) with num_true=2"),
        ({"num_classes": 19}, r"got \(20, 5\), \(20,\) and \(4, 5\) with num_classes=19"),
        ({"inputs": np.ones((4, 6), "float32")}, r"and \(4, 6\) with num_classes=20"),
        ({"weights": [1.0, 2.0]}, r"weights must be one table: got 2"),
    ],
)
def test_wrong_losses_are_refused(change, rule):
    table, biases, labels, x, samples = drawn_by_hand()
    right = {
        "weights": table, "biases": biases, "labels": labels, "inputs": x, "num_sampled": 5,
        "num_classes": CLASSES, "num_true": 2, "sampled_values": samples,
    }  # fmt: skip
    with pytest.raises((TypeError, ValueError), match=rule):
        tf.nn.nce_loss(**(right | change))
