"""Models of Keras that compute what the modules of convert_torch_models do."""

from __future__ import annotations

from convert_cases import BERT, RESNET, SHAPES

import samegrad as tf

layers = tf.keras.layers

# Packed projections of torch.nn.MultiheadAttention.
ATTENTION = {
    "layer.query.{kind}": "in_proj_{kind}[0]",
    "layer.key.{kind}": "in_proj_{kind}[1]",
    "layer.value.{kind}": "in_proj_{kind}[2]",
    "layer.attention_output": "out_proj",
}
RESNET_NAMES = {
    "conv1_conv": "conv1",
    "conv1_bn": "bn1",
    "conv{stage}_block{block}_0_conv": "layer{stage-1}.{block-1}.downsample.0",
    "conv{stage}_block{block}_0_bn": "layer{stage-1}.{block-1}.downsample.1",
    "conv{stage}_block{block}_{n}_conv": "layer{stage-1}.{block-1}.conv{n}",
    "conv{stage}_block{block}_{n}_bn": "layer{stage-1}.{block-1}.bn{n}",
    "predictions": "fc",
}
BERT_NAMES = {
    "embeddings.norm": "embeddings.LayerNorm",
    "blocks.{i}.attention.attention_output": "encoder.layer.{i}.attention.output.dense",
    "blocks.{i}.attention": "encoder.layer.{i}.attention.self",
    "blocks.{i}.attention_norm": "encoder.layer.{i}.attention.output.LayerNorm",
    "blocks.{i}.inner": "encoder.layer.{i}.intermediate.dense",
    "blocks.{i}.outer": "encoder.layer.{i}.output.dense",
    "blocks.{i}.outer_norm": "encoder.layer.{i}.output.LayerNorm",
    "pooler": "pooler.dense",
}


def rnn(kind, **options):
    return kind(5, return_sequences=True, name="layer", **options)


def both_directions(kind):
    return layers.Bidirectional(kind(5, return_sequences=True), name="layer")


def separable(kind):
    return kind(5, 3, depth_multiplier=2, name="layer")


LAYERS = {
    "dense": lambda: layers.Dense(5, name="layer"),
    "dense without bias": lambda: layers.Dense(5, use_bias=False, name="layer"),
    "einsum": lambda: layers.EinsumDense("abc,dc->abd", (None, 5), bias_axes="d", name="layer"),
    "conv1d": lambda: layers.Conv1D(6, 3, strides=2, name="layer"),
    "conv2d": lambda: layers.Conv2D(6, (3, 2), name="layer"),
    "conv2d in groups": lambda: layers.Conv2D(6, 3, groups=2, name="layer"),
    "conv2d with dilation": lambda: layers.Conv2D(6, 3, dilation_rate=2, name="layer"),
    "conv3d": lambda: layers.Conv3D(3, 2, name="layer"),
    "transposed conv1d": lambda: layers.Conv1DTranspose(6, 3, strides=2, name="layer"),
    "transposed conv2d": lambda: layers.Conv2DTranspose(6, (3, 2), strides=2, name="layer"),
    "transposed conv3d": lambda: layers.Conv3DTranspose(3, 2, name="layer"),
    "depthwise conv1d": lambda: layers.DepthwiseConv1D(3, depth_multiplier=2, name="layer"),
    "depthwise conv2d": lambda: layers.DepthwiseConv2D((3, 2), depth_multiplier=2, name="layer"),
    "separable conv1d": lambda: separable(layers.SeparableConv1D),
    "separable conv2d": lambda: separable(layers.SeparableConv2D),
    "batch normalization": lambda: layers.BatchNormalization(epsilon=1e-5, name="layer"),
    "layer normalization": lambda: layers.LayerNormalization(epsilon=1e-5, name="layer"),
    "layer normalization of two axes": lambda: layers.LayerNormalization(
        (1, 2), epsilon=1e-5, name="layer"
    ),
    "group normalization": lambda: layers.GroupNormalization(2, epsilon=1e-5, name="layer"),
    "rms normalization": lambda: layers.RMSNormalization(epsilon=1e-6, name="layer"),
    "prelu": lambda: layers.PReLU(shared_axes=[1, 2], name="layer"),
    "embedding": lambda: layers.Embedding(7, 3, name="layer"),
    "lstm": lambda: rnn(layers.LSTM),
    "lstm without bias": lambda: rnn(layers.LSTM, use_bias=False),
    "gru": lambda: rnn(layers.GRU),
    "rnn": lambda: rnn(layers.SimpleRNN),
    "lstm of two layers": lambda: layers.RNN(
        [layers.LSTMCell(5), layers.LSTMCell(5)], return_sequences=True, name="layer"
    ),
    "lstm in both directions": lambda: both_directions(layers.LSTM),
    "gru in both directions": lambda: both_directions(layers.GRU),
    "attention": lambda: layers.MultiHeadAttention(2, 2, name="layer"),
}


def layer(name):
    """Return a built model of one layer, and the map of its names to those of PyTorch."""
    dtype = "int64" if name == "embedding" else "float32"
    x = layers.Input(SHAPES[name][1:], dtype=dtype)
    one = LAYERS[name]()
    y = one(x, x) if name == "attention" else one(x)
    return tf.keras.Model(x, y), ATTENTION if name == "attention" else {"layer.{name}": "{name}"}


def normalized(x, name, activation=True):
    x = layers.BatchNormalization(epsilon=1e-5, name=f"{name}_bn")(x)
    return layers.ReLU()(x) if activation else x


def convolution(x, channels, size, name, stride=1):
    """Pad like PyTorch, which pads both sides alike; "same" does not with a stride of 2."""
    if size > 1:
        x = layers.ZeroPadding2D(size // 2)(x)
    name = f"{name}_conv"
    return layers.Conv2D(channels, size, strides=stride, use_bias=False, name=name)(x)


def resnet():
    """Return ResNet-50 as torchvision has it, with the names of keras.applications."""
    width = RESNET["width"]
    inputs = x = layers.Input((64, 64, 3))
    x = normalized(convolution(x, width, 7, "conv1", 2), "conv1")
    x = layers.MaxPooling2D(3, 2)(layers.ZeroPadding2D(1)(x))
    for stage, blocks in enumerate((3, 4, 6, 3)):
        channels = width << stage
        for block in range(blocks):
            name, stride = f"conv{stage + 2}_block{block + 1}", 2 if stage and not block else 1
            shortcut = x
            if not block:
                shortcut = convolution(x, 4 * channels, 1, f"{name}_0", stride)
                shortcut = normalized(shortcut, f"{name}_0", activation=False)
            x = normalized(convolution(x, channels, 1, f"{name}_1"), f"{name}_1")
            x = normalized(convolution(x, channels, 3, f"{name}_2", stride), f"{name}_2")
            x = normalized(convolution(x, 4 * channels, 1, f"{name}_3"), f"{name}_3", False)
            x = layers.ReLU()(layers.Add()([shortcut, x]))
    x = layers.GlobalAveragePooling2D()(x)
    return tf.keras.Model(inputs, layers.Dense(RESNET["classes"], name="predictions")(x))


class Embeddings(layers.Layer):
    def __init__(self, vocabulary, length, hidden):
        super().__init__()
        self.word_embeddings = layers.Embedding(vocabulary, hidden)
        self.position_embeddings = layers.Embedding(length, hidden)
        self.token_type_embeddings = layers.Embedding(2, hidden)
        self.norm = layers.LayerNormalization(epsilon=1e-12)

    def call(self, tokens, types):
        x = self.word_embeddings(tokens) + self.token_type_embeddings(types)
        return self.norm(x + self.position_embeddings(tf.range(tokens.shape[1])))


class Block(layers.Layer):
    def __init__(self, hidden, heads, intermediate):
        super().__init__()
        self.attention = layers.MultiHeadAttention(heads, hidden // heads)
        self.attention_norm = layers.LayerNormalization(epsilon=1e-12)
        self.inner = layers.Dense(intermediate, activation=tf.keras.activations.gelu)
        self.outer = layers.Dense(hidden)
        self.outer_norm = layers.LayerNormalization(epsilon=1e-12)

    def call(self, x, mask):
        y = self.attention(x, x, attention_mask=mask[:, None, :])
        x = self.attention_norm(x + y)
        return self.outer_norm(x + self.outer(self.inner(x)))


class Bert(tf.keras.Model):
    def __init__(self, vocabulary, length, hidden, layers, heads, intermediate):
        super().__init__()
        self.embeddings = Embeddings(vocabulary, length, hidden)
        self.blocks = [Block(hidden, heads, intermediate) for _ in range(layers)]
        self.pooler = tf.keras.layers.Dense(hidden, activation="tanh")

    def call(self, inputs):
        tokens, types, mask = inputs
        x = self.embeddings(tokens, types)
        for block in self.blocks:
            x = block(x, mask)
        return x, self.pooler(x[:, 0])


def bert(inputs):
    """Return the model, built by a call."""
    model = Bert(**BERT)
    model(inputs)
    return model
