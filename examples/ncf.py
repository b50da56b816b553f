"""Train a neural collaborative filter, with `fit` or a loop of your own: the same bits.

    python ncf.py --replicas 4
    python ncf.py --replicas 4 --custom-loop

The network is that of He et al., Neural Collaborative Filtering (2017). Users and items are made
from a seed. The result is the hit rate: how often the item that a user chose next is among the
first ten of a hundred.
"""

import argparse

import numpy as np

import samegrad as tf

layers = tf.keras.layers


class Choices:
    """Items that users chose, by hidden traits, by popularity and by chance."""

    def __init__(self, users, items, chosen, seed=0):
        rng = np.random.default_rng(seed)
        liking = rng.normal(size=(users, 6)) @ rng.normal(size=(items, 6)).T
        liking += rng.normal(size=items) + rng.gumbel(size=(users, items))
        taken = rng.permuted(np.argsort(-liking, axis=1)[:, : chosen + 1], axis=1)
        self.seen, self.next_item = taken[:, :-1], taken[:, -1]
        self.is_taken = np.zeros((users, items), bool)
        np.put_along_axis(self.is_taken, taken, True, axis=1)
        others = self.not_taken(np.repeat(np.arange(users)[:, None], 99, axis=1), rng)
        self.candidates = np.concatenate([self.next_item[:, None], others], axis=1)

    def not_taken(self, users, rng):
        """Return for each user an item that the user has not chosen."""
        items = rng.integers(self.is_taken.shape[1], size=users.shape)
        while (wrong := self.is_taken[users, items]).any():
            items[wrong] = rng.integers(self.is_taken.shape[1], size=wrong.sum())
        return items

    def examples(self, epoch, batch_size, negatives=4):
        """Return batches of chosen items, label 1, and of others, label 0."""
        rng = np.random.default_rng([1, epoch])
        users = np.repeat(np.arange(len(self.seen)), self.seen.shape[1])
        others = np.tile(users, negatives)
        items = np.concatenate([self.seen.ravel(), self.not_taken(others, rng)])
        labels = np.repeat(np.float32([1, 0]), [len(users), len(others)])[:, None]
        order = rng.permutation(len(labels))
        pairs = {"user": np.concatenate([users, others])[order], "item": items[order]}
        return tf.data.Dataset.from_tensor_slices((pairs, labels[order])).batch(batch_size)


def network(users, items, width=8):
    """Return a model of the probability that a user chooses an item."""
    user = layers.Input((), dtype="int32", name="user")
    item = layers.Input((), dtype="int32", name="item")
    product = layers.Multiply()(
        [layers.Embedding(users, width)(user), layers.Embedding(items, width)(item)]
    )
    hidden = layers.Concatenate()(
        [layers.Embedding(users, 2 * width)(user), layers.Embedding(items, 2 * width)(item)]
    )
    for units in (4 * width, 2 * width, width):
        hidden = layers.Dense(units, activation="relu")(hidden)
    both = layers.Concatenate()([product, hidden])
    return tf.keras.Model({"user": user, "item": item}, layers.Dense(1)(both))


def training_step(strategy, model, optimizer):
    """Return the function that trains on a global batch and returns its loss."""
    loss_object = tf.keras.losses.BinaryCrossentropy(from_logits=True, reduction="none")

    def step(pairs, labels):
        with tf.GradientTape() as tape:
            losses = loss_object(labels, model(pairs, training=True))
            loss = tf.nn.compute_average_loss(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    @tf.function
    def distributed_step(inputs):
        losses = strategy.run(step, args=inputs)
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    return distributed_step


def hit_rate(model, choices):
    users = np.repeat(np.arange(len(choices.candidates)), 100)
    pairs = {"user": users, "item": choices.candidates.ravel()}
    scores = model.predict(pairs, batch_size=4000, verbose=0).reshape(-1, 100)
    better = (scores[:, 1:] >= scores[:, :1]).sum(axis=1)
    return (better < 10).mean()


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--custom-loop", action="store_true", help="a loop instead of fit")
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--users", type=int, default=1000)
    parser.add_argument("--items", type=int, default=500)
    parser.add_argument("--batch-size", type=int, default=1000, help="of all replicas")
    parser.add_argument("--epochs", type=int, default=6)
    options = parser.parse_args(arguments)

    tf.keras.utils.set_random_seed(7)
    choices = Choices(options.users, options.items, chosen=20)
    strategy = tf.distribute.MirroredStrategy(replicas=options.replicas)
    with strategy.scope():
        model = network(options.users, options.items)
        optimizer = tf.keras.optimizers.LazyAdam(0.005)
    if options.custom_loop:
        step = training_step(strategy, model, optimizer)
    else:
        model.compile(optimizer, tf.keras.losses.BinaryCrossentropy(from_logits=True))
    print(f"before training: hit rate {hit_rate(model, choices):.3f}")
    for epoch in range(options.epochs):
        data = choices.examples(epoch, options.batch_size)
        if options.custom_loop:
            for inputs in strategy.experimental_distribute_dataset(data):
                step(inputs)
        else:
            model.fit(data, verbose=0)
        print(f"epoch {epoch + 1}: hit rate {hit_rate(model, choices):.3f}")
    print(f"weights {tf.fingerprint(model.weights)}")


if __name__ == "__main__":
    main()
