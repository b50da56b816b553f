"""Fine-tune BERT to classify sentences, from a checkpoint of Hugging Face or TensorFlow.

    python bert_pretraining.py --folder small-bert
    python bert_classification.py --bert small-bert --replicas 4

Run the second command again after a kill: it continues at the last checkpoint, and the result is
bitwise identical to that of an uninterrupted run. Under `mpiexec -n 2`, the replicas are
distributed over the processes, and the result is the same.
"""

import argparse
import json
import pathlib
import re

import numpy as np

import samegrad as tf

layers = tf.keras.layers
PAD, UNKNOWN, CLS, SEP = "[PAD]", "[UNK]", "[CLS]", "[SEP]"

# Paths of `Bert` below, and the names of BertModel in transformers.
NAMES = {
    "embeddings.norm": "embeddings.LayerNorm",
    "blocks.{i}.attention.attention_output": "encoder.layer.{i}.attention.output.dense",
    "blocks.{i}.attention": "encoder.layer.{i}.attention.self",
    "blocks.{i}.attention_norm": "encoder.layer.{i}.attention.output.LayerNorm",
    "blocks.{i}.inner": "encoder.layer.{i}.intermediate.dense",
    "blocks.{i}.outer": "encoder.layer.{i}.output.dense",
    "blocks.{i}.outer_norm": "encoder.layer.{i}.output.LayerNorm",
    "pooler": "pooler.dense",
}


class Embeddings(layers.Layer):
    def __init__(self, config):
        super().__init__()
        hidden = config["hidden_size"]
        self.word_embeddings = layers.Embedding(config["vocab_size"], hidden)
        self.position_embeddings = layers.Embedding(config["max_position_embeddings"], hidden)
        self.token_type_embeddings = layers.Embedding(config["type_vocab_size"], hidden)
        self.norm = layers.LayerNormalization(epsilon=config["layer_norm_eps"])
        self.dropout = layers.Dropout(config["hidden_dropout_prob"])

    def call(self, tokens, types):
        x = self.word_embeddings(tokens) + self.token_type_embeddings(types)
        x = x + self.position_embeddings(tf.range(tokens.shape[1]))
        return self.dropout(self.norm(x))


class Block(layers.Layer):
    def __init__(self, config):
        super().__init__()
        hidden, heads = config["hidden_size"], config["num_attention_heads"]
        epsilon = config["layer_norm_eps"]
        dropout = config["attention_probs_dropout_prob"]
        self.attention = layers.MultiHeadAttention(heads, hidden // heads, dropout=dropout)
        self.attention_norm = layers.LayerNormalization(epsilon=epsilon)
        self.inner = layers.Dense(config["intermediate_size"], activation="gelu")
        self.outer = layers.Dense(hidden)
        self.outer_norm = layers.LayerNormalization(epsilon=epsilon)
        self.dropout = layers.Dropout(config["hidden_dropout_prob"])

    def call(self, x, mask):
        y = self.attention(x, x, attention_mask=mask[:, None, :])
        x = self.attention_norm(x + self.dropout(y))
        return self.outer_norm(x + self.dropout(self.outer(self.inner(x))))


class Bert(tf.keras.Model):
    """BERT: tokens and their types [n, length] to hidden states and a pooled state."""

    def __init__(self, config):
        super().__init__()
        self.embeddings = Embeddings(config)
        self.blocks = [Block(config) for _ in range(config["num_hidden_layers"])]
        self.pooler = layers.Dense(config["hidden_size"], activation="tanh")

    def call(self, tokens, types=None):
        x = self.embeddings(tokens, tf.zeros_like(tokens) if types is None else types)
        mask = tokens != 0
        for block in self.blocks:
            x = block(x, mask)
        return x, self.pooler(x[:, 0])


class Classifier(tf.keras.Model):
    def __init__(self, config, classes):
        super().__init__()
        self.bert = Bert(config)
        self.dropout = layers.Dropout(config["hidden_dropout_prob"])
        self.classifier = layers.Dense(classes)

    def call(self, tokens):
        return self.classifier(self.dropout(self.bert(tokens)[1]))


class WarmUp(tf.keras.optimizers.schedules.LearningRateSchedule):
    """A rate that rises linearly for some steps, and then falls to 0."""

    def __init__(self, peak, warmup_steps, steps):
        super().__init__()
        self.peak, self.warmup_steps, self.steps = peak, warmup_steps, steps

    def __call__(self, step):
        step = tf.cast(step, tf.float32)
        rising = (step + 1.0) / self.warmup_steps
        falling = (self.steps - step) / (self.steps - self.warmup_steps)
        return self.peak * tf.minimum(rising, falling)

    def get_config(self):
        return {"peak": self.peak, "warmup_steps": self.warmup_steps, "steps": self.steps}


def optimizer_of(rate):
    """Return AdamW that decays neither biases nor the parameters of LayerNormalization."""
    optimizer = tf.keras.optimizers.AdamW(rate, weight_decay=0.01, global_clipnorm=1.0)
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    return optimizer


class WordPieces:
    """The tokenizer of BERT: the longest known piece first."""

    def __init__(self, vocabulary):
        self.numbers = {piece: number for number, piece in enumerate(vocabulary)}

    def __call__(self, sentence, length):
        pieces = [p for w in re.findall(r"\w+|[^\w\s]", sentence.lower()) for p in self.pieces(w)]
        pieces = [CLS, *pieces[: length - 2], SEP]
        numbers = [self.numbers[piece] for piece in pieces]
        return numbers + [self.numbers[PAD]] * (length - len(numbers))

    def pieces(self, word):
        found, begin = [], 0
        while begin < len(word):
            prefix = "##" if begin else ""
            ends = range(len(word), begin, -1)
            end = next((e for e in ends if prefix + word[begin:e] in self.numbers), None)
            if end is None:
                return [UNKNOWN]
            found.append(prefix + word[begin:end])
            begin = end
        return found


def small_data(count, seed):
    """Return sentences about films, and whether they praise one."""
    rng = np.random.default_rng(seed)
    good, bad = ("wonderful", "great", "charming", "touching"), ("awful", "boring", "dull", "flat")
    sentences, labels = [], []
    for _ in range(count):
        praise, negated = rng.integers(2, size=2)
        subject = rng.choice(["the film", "this story", "the cast", "its music"])
        verb = rng.choice(["is", "was"]) + (" not" if negated else "")
        sentences.append(f"{subject} {verb} {rng.choice(good if praise else bad)} .")
        labels.append(int(praise != negated))
    return sentences, labels


def read_data(path):
    """Read lines of a label, a tabulator and a sentence."""
    rows = [line.split("\t", 1) for line in pathlib.Path(path).read_text().splitlines()]
    return [sentence for _, sentence in rows], [int(label) for label, _ in rows]


def tensorflow_weights(path):
    """Return the arrays of a checkpoint of google-research/bert as Hugging Face has them."""
    reader, weights = tf.train.load_checkpoint(path), {}
    for name in reader.get_variable_to_shape_map():
        array = reader.get_tensor(name)
        name = name.replace("layer_", "layer.").replace("/", ".")
        array = array.T if name.endswith(".kernel") else array
        weights[re.sub(r"(_embeddings)$|\.kernel$", r"\1.weight", name)] = array
    return weights


def pretrained(folder):
    """Return configuration, vocabulary and weights in a folder of Hugging Face or TensorFlow."""
    of_tensorflow = (folder / "bert_config.json").exists()
    config = json.loads((folder / f"{'bert_' * of_tensorflow}config.json").read_text())
    config.setdefault("layer_norm_eps", 1e-12)  # TensorFlow's program has it as a constant
    vocabulary = (folder / "vocab.txt").read_text().splitlines()
    path, load = folder, tf.convert.load
    if of_tensorflow:
        path, load = folder / "bert_model.ckpt", tensorflow_weights
    weights = {}
    for name, array in load(path).items():
        # Published checkpoints have a prefix, and the first names of LayerNorm's parameters.
        name = name.removeprefix("bert.").replace("LayerNorm.gamma", "LayerNorm.weight")
        weights[name.replace("LayerNorm.beta", "LayerNorm.bias")] = array
    return config, vocabulary, weights


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bert", type=pathlib.Path, required=True, help="folder of the checkpoint")
    parser.add_argument("--train", help="lines of label, tabulator, sentence; default: small data")
    parser.add_argument("--test", help="the same, for the evaluation")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("bert-classification"))
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32, help="of all replicas")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--save-every", type=int, default=50, help="steps")
    parser.add_argument("--length", type=int, default=16, help="tokens of a sentence")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    return parser.parse_args(arguments)


def dataset(data, tokenizer, length):
    sentences, labels = data
    tokens = [tokenizer(sentence, length) for sentence in sentences]
    return tf.data.Dataset.from_tensor_slices((np.array(tokens), np.array(labels)))


def steps_of(strategy, model, optimizer, accuracy):
    """Return functions that train on a global batch, and that evaluate one."""
    loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def train_step(tokens, labels):
        with tf.GradientTape() as tape:
            logits = model(tokens, training=True)
            loss = tf.nn.compute_average_loss(loss_object(labels, logits))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    def test_step(tokens, labels):
        accuracy.update_state(labels, model(tokens, training=False))

    @tf.function
    def distributed_train_step(inputs):
        losses = strategy.run(train_step, args=inputs)
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    @tf.function
    def distributed_test_step(inputs):
        strategy.run(test_step, args=inputs)

    return distributed_train_step, distributed_test_step


def log(line):
    if tf.distribute.mpi.rank() == 0:
        print(line, flush=True)


def main(arguments=None):
    options = parse(arguments)
    tf.keras.utils.set_random_seed(1)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(total_replicas=options.replicas)
    config, vocabulary, weights = pretrained(options.bert)
    tokenizer = WordPieces(vocabulary)
    train = read_data(options.train) if options.train else small_data(1000, seed=1)
    test = read_data(options.test) if options.test else small_data(200, seed=2)
    train_data = dataset(train, tokenizer, options.length).shuffle(1000, seed=1).repeat()
    test_data = dataset(test, tokenizer, options.length).batch(options.batch_size)

    with strategy.scope():
        model = Classifier(config, classes=2)
        model(np.zeros((1, options.length), np.int64))
        # The heads of the pre-training are left out.
        tf.convert.from_torch(model.bert, weights, NAMES, ignore=["cls"])
        schedule = WarmUp(options.learning_rate, max(options.steps // 10, 1), options.steps)
        optimizer = optimizer_of(schedule)
        accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
    train_step, test_step = steps_of(strategy, model, optimizer, accuracy)
    batches = train_data.batch(options.batch_size)
    iterator = iter(strategy.experimental_distribute_dataset(batches))
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, iterator=iterator)
    manager = tf.train.CheckpointManager(checkpoint, options.folder, max_to_keep=2)

    if restored := manager.restore_or_initialize():
        log(f"continue after {restored}")
    for step in range(int(optimizer.iterations), options.steps):
        loss = train_step(next(iterator))
        log(f"step {step + 1}: loss {float(loss)!r}")
        if (step + 1) % options.save_every == 0 or step + 1 == options.steps:
            manager.save()

    for inputs in strategy.experimental_distribute_dataset(test_data):
        test_step(inputs)
    log(f"accuracy {float(accuracy.result()):.3f}, weights {tf.fingerprint(model)}")
    if tf.distribute.mpi.rank() == 0:
        names = {f"bert.{ours}": f"bert.{theirs}" for ours, theirs in NAMES.items()}
        tf.convert.save(tf.convert.to_torch(model, names), options.folder / "model.safetensors")


if __name__ == "__main__":
    main()
