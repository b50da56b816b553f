"""Train a translator of GRUs with attention, and translate with beam search.

    python nmt.py --replicas 4

The decoder gets the words of the reference (teacher forcing). Padding is masked, and the loss is
divided by the words of all replicas, so that the weights are the same bits for any number of them.
Without `--pairs`, it learns to translate small sentences from English to French.
"""

import argparse
import itertools
import pathlib
import re

import numpy as np

import samegrad as tf

layers = tf.keras.layers
PAD, BEGIN, END, UNKNOWN = range(4)


def small_data(seed):
    """Return pairs of an English and a French sentence, each once, in a random order."""
    subjects = [("the cat", "le chat"), ("the child", "l' enfant"), ("my friend", "mon ami")]
    verbs = [("sees", "voit"), ("wants", "veut"), ("does not like", "n' aime pas")]
    nouns = [("house", "maison"), ("car", "voiture"), ("flower", "fleur"), ("table", "table")]
    colours = [("", ""), ("red", "rouge"), ("green", "verte"), ("white", "blanche")]
    ends = [("", ""), ("today", "aujourd'hui"), ("in the morning", "le matin")]
    pairs = []
    for choice in itertools.product(subjects, verbs, nouns, colours, ends):
        (subject, sujet), (verb, verbe), (noun, nom), (colour, couleur), (end, fin) = choice
        english = f"{subject} {verb} a {colour} {noun} {end} ."
        french = f"{sujet} {verbe} une {nom} {couleur} {fin} ."
        pairs.append((" ".join(english.split()), " ".join(french.split())))
    order = np.random.default_rng(seed).permutation(len(pairs))
    return [pairs[index] for index in order]


def read_pairs(path):
    """Read lines of two sentences with a tabulator between them."""
    lines = pathlib.Path(path).read_text("utf-8").splitlines()
    return [tuple(line.split("\t")[:2]) for line in lines]


class Words:
    """Numbers of the words of a language."""

    def __init__(self, sentences):
        known = sorted({word for sentence in sentences for word in self.split(sentence)})
        self.words = ["[PAD]", "[BEGIN]", "[END]", "[UNKNOWN]", *known]
        self.numbers = {word: number for number, word in enumerate(self.words)}

    @staticmethod
    def split(sentence):
        return re.findall(r"[\w']+|[^\w\s]", sentence.lower())

    def encode(self, sentence):
        numbers = [self.numbers.get(word, UNKNOWN) for word in self.split(sentence)]
        return [BEGIN, *numbers, END]

    def decode(self, numbers):
        return " ".join(self.words[number] for number in numbers if number > END)


class Translator(tf.keras.Model):
    """An encoder that reads both ways, and a decoder that attends to its states."""

    def __init__(self, words, translated_words, width):
        super().__init__()
        self.embedding = layers.Embedding(words, width, mask_zero=True)
        self.encoder = layers.Bidirectional(layers.GRU(width, return_sequences=True))
        self.bridge = layers.Dense(width, activation="tanh")
        self.target_embedding = layers.Embedding(translated_words, width, mask_zero=True)
        self.decoder = layers.GRU(width, return_sequences=True, return_state=True)
        self.query, self.memory = layers.Dense(width), layers.Dense(width)
        self.attention = layers.AdditiveAttention()
        self.combined = layers.Dense(width, activation="tanh")
        self.logits = layers.Dense(translated_words)

    def encode(self, source):
        """Return what the decoder attends to, its mask, and the decoder's first state."""
        mask = source != PAD
        states = self.encoder(self.embedding(source), mask=mask)
        counts = tf.reduce_sum(tf.cast(mask, tf.float32), axis=1, keepdims=True)
        mean = tf.reduce_sum(states * tf.cast(mask, tf.float32)[:, :, None], axis=1) / counts
        return self.memory(states), mask, self.bridge(mean)

    def decode(self, target, memory, mask, state):
        """Return logits of the words after those of the target, and the decoder's last state."""
        outputs, state = self.decoder(self.target_embedding(target), initial_state=state)
        context = self.attention([self.query(outputs), memory], mask=[None, mask])
        return self.logits(self.combined(tf.concat([outputs, context], axis=-1))), state

    def call(self, source, target):
        return self.decode(target, *self.encode(source))[0]


def beam_search(model, source, length, beams=4):
    """Return the most probable translation of one sentence, per word."""
    memory, mask, state = model.encode(tf.constant([source]))
    memory, mask = (np.repeat(x.numpy(), beams, axis=0) for x in (memory, mask))
    state = np.repeat(state.numpy(), beams, axis=0)
    sentences, scores = [[BEGIN]] * beams, np.array([0.0] + [-np.inf] * (beams - 1))
    ended = []
    for _ in range(length):
        last = tf.constant([sentence[-1:] for sentence in sentences])
        logits, state = model.decode(last, memory, mask, state)
        logits, state = logits.numpy()[:, 0].astype(np.float64), state.numpy()
        peaks = logits.max(axis=1, keepdims=True)
        log_sums = peaks + np.log(np.exp(logits - peaks).sum(axis=1, keepdims=True))
        totals = scores[:, None] + logits - log_sums
        order = np.argsort(-totals, axis=None, kind="stable")[: 2 * beams]
        kept = []
        for beam, word in zip(*np.unravel_index(order, totals.shape)):
            sentence = [*sentences[beam], int(word)]
            if word == END:
                ended.append((totals[beam, word] / len(sentence), sentence))
            elif len(kept) < beams:
                kept.append((beam, sentence, totals[beam, word]))
        beam, sentences, scores = zip(*kept)
        state, scores = state[list(beam)], np.array(scores)
    return max(ended)[1] if ended else sentences[0]


def training_step(strategy, model, optimizer):
    """Return the function that trains on a global batch and returns its loss."""
    loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def step(source, target):
        inputs, labels = target[:, :-1], target[:, 1:]
        with tf.GradientTape() as tape:
            losses = loss_object(labels, model(source, inputs, training=True))
            # The mean over the words of all replicas, without padding.
            loss = tf.nn.compute_weighted_mean_loss(losses, tf.cast(labels != PAD, tf.float32))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    @tf.function
    def distributed_step(inputs):
        losses = strategy.run(step, args=inputs)
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    return distributed_step


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", help="lines of sentence, tabulator, translation")
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32, help="sentences of all replicas")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--width", type=int, default=48)
    parser.add_argument("--held-out", type=int, default=50, help="sentences that are not learned")
    options = parser.parse_args(arguments)

    tf.keras.utils.set_random_seed(1)
    pairs = read_pairs(options.pairs) if options.pairs else small_data(seed=0)
    held_out, pairs = pairs[: options.held_out], pairs[options.held_out :]
    words, translated = Words(one for one, _ in pairs), Words(other for _, other in pairs)

    def encoded():
        for source, target in pairs:
            yield np.array(words.encode(source)), np.array(translated.encode(target))

    spec = tf.TensorSpec((None,), tf.int64)
    data = tf.data.Dataset.from_generator(encoded, output_signature=(spec, spec)).cache()
    data = data.shuffle(len(pairs), seed=1).padded_batch(options.batch_size)

    strategy = tf.distribute.MirroredStrategy(replicas=options.replicas)
    with strategy.scope():
        model = Translator(len(words.words), len(translated.words), options.width)
        optimizer = tf.keras.optimizers.Adam(5e-3)
    step = training_step(strategy, model, optimizer)
    batches = strategy.experimental_distribute_dataset(data)
    for epoch in range(options.epochs):
        losses = [float(step(inputs)) for inputs in batches]
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}", flush=True)

    right = 0
    for number, (source, target) in enumerate(held_out):
        length = 2 * len(words.encode(source)) + 5
        found = translated.decode(beam_search(model, words.encode(source), length))
        right += found == " ".join(Words.split(target))
        if number < 3:
            print(f"{source} -> {found}")
    print(f"{right} of {len(held_out)} held-out sentences are translated as expected")
    print(f"weights {tf.fingerprint(model)}")


if __name__ == "__main__":
    main()
