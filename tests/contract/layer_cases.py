"""How each public layer is made and called, for test_every_layer.py; those left out, and why."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial as made
from typing import Any, NamedTuple

import numpy as np

import samegrad as tf

layers = tf.keras.layers
ROWS = 12
RNG = np.random.default_rng(1)


class Case(NamedTuple):
    """A layer's arguments and what it is called with.

    Attributes:
        arguments: For the constructor; a `made` is called for each layer anew.
        inputs: Arrays of ROWS rows each.
        enter: The arguments of a call, of the inputs of a share.
        mixes: Whether a row's result depends on other rows, not in training alone.
        learns: Inputs that get a gradient.
        options: Named arguments of each call.
    """

    arguments: dict[str, Any]
    inputs: tuple[np.ndarray, ...]
    enter: Callable[..., tuple[Any, ...]]
    mixes: bool
    learns: bool
    options: dict[str, Any]

    def made(self) -> dict[str, Any]:
        """The arguments of one more layer."""
        return {name: _fresh(value) for name, value in self.arguments.items()}


def _fresh(value: Any) -> Any:
    if isinstance(value, list):
        return [_fresh(part) for part in value]
    return value() if isinstance(value, made) else value


def one(*inputs: Any) -> tuple[Any, ...]:
    return inputs


def as_list(*inputs: Any) -> tuple[Any, ...]:
    return (list(inputs),)


def with_states(x: Any, *states: Any) -> tuple[Any, ...]:
    return x, list(states)


def on(*inputs: np.ndarray, enter: Any = one, mixes: bool = False, learns: bool = True,
       options: dict[str, Any] | None = None, **arguments: Any) -> Case:  # fmt: skip
    return Case(arguments, inputs, enter, mixes, learns, options or {})


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=(ROWS, *shape)).astype(np.float32)


def whole(high: int, *shape: int) -> np.ndarray:
    return RNG.integers(0, high, (ROWS, *shape)).astype(np.int32)


VECTORS, SERIES, IMAGES, VOLUMES = normal(6), normal(8, 3), normal(6, 6, 2), normal(4, 4, 4, 2)
PHOTOS = RNG.uniform(0, 255, (ROWS, 8, 8, 3)).astype(np.float32)
WORDS = whole(7, 5)
SOUNDS = normal(64)
FILMS = {1: normal(3, 5, 2), 2: normal(3, 4, 4, 2), 3: normal(2, 3, 3, 3, 2)}
BY_RANK = {1: SERIES, 2: IMAGES, 3: VOLUMES}


def of_ranks(name: str, **arguments: Any) -> dict[str, Case]:
    """A layer for one, two and three axes of space."""
    return {f"{name}{rank}D": on(x, **arguments) for rank, x in BY_RANK.items()}


def photos(name: str, **arguments: Any) -> dict[str, Case]:
    """A layer that changes photos, which nobody learns from."""
    return {name: on(PHOTOS, learns=False, **arguments)}


def merged(name: str, **arguments: Any) -> dict[str, Case]:
    """A layer that makes one of several tensors."""
    return {name: on(SERIES, SERIES[::-1] * 0.5, enter=as_list, **arguments)}


CORE = {
    "Dense": on(VECTORS, units=3, activation="relu", kernel_regularizer="l2"),
    "EinsumDense": on(SERIES, equation="abc,cd->abd", output_shape=(8, 4), bias_axes="d"),
    "Embedding": on(WORDS, input_dim=7, output_dim=3, learns=False),
    "ReversibleEmbedding": on(WORDS, input_dim=7, output_dim=3, learns=False),
    "Identity": on(VECTORS),
    "Lambda": on(VECTORS, function=lambda x: x * 2.0),
    "Masking": on(SERIES),
    "Activation": on(VECTORS, activation="tanh"),
    "ReLU": on(VECTORS, max_value=1.0, negative_slope=0.1),
    "ThresholdedReLU": on(VECTORS, theta=0.2),
    "Softmax": on(VECTORS),
    "LeakyReLU": on(VECTORS),
    "PReLU": on(SERIES, alpha_initializer="glorot_uniform", shared_axes=[1]),
    "ELU": on(VECTORS),
    "Flatten": on(IMAGES),
    "Permute": on(IMAGES, dims=(3, 1, 2)),
    "RepeatVector": on(VECTORS, n=3),
    "Reshape": on(IMAGES, target_shape=(9, 8)),
    "ActivityRegularization": on(VECTORS, l1=0.1, l2=0.2),
    "Dropout": on(VECTORS, rate=0.5),
    "AlphaDropout": on(VECTORS, rate=0.3),
    "GaussianDropout": on(VECTORS, rate=0.3),
    "GaussianNoise": on(VECTORS, stddev=0.3),
    **of_ranks("SpatialDropout", rate=0.4),
}
MERGING = {
    **merged("Add"), **merged("Average"), **merged("Concatenate"), **merged("Dot", axes=2),
    **merged("Maximum"), **merged("Minimum"), **merged("Multiply"), **merged("Subtract"),
}  # fmt: skip
SPACE = {
    **of_ranks("Conv", filters=4, kernel_size=3, padding="same", activation="relu"),
    **{
        f"Conv{rank}DTranspose": on(x, filters=3, kernel_size=3, strides=2, padding="same")
        for rank, x in BY_RANK.items()
    },
    **{
        f"DepthwiseConv{rank}D": on(BY_RANK[rank], kernel_size=3, depth_multiplier=2)
        for rank in (1, 2)
    },
    **{
        f"SeparableConv{rank}D": on(BY_RANK[rank], kernel_size=3, filters=4)
        for rank in (1, 2)
    },
    **of_ranks("MaxPooling"), **of_ranks("AveragePooling", pool_size=2),
    **of_ranks("GlobalMaxPooling"), **of_ranks("GlobalAveragePooling"),
    **of_ranks("AdaptiveMaxPooling", output_size=3),
    **of_ranks("AdaptiveAveragePooling", output_size=3),
    **of_ranks("Cropping", cropping=1), **of_ranks("UpSampling"),
    **of_ranks("ZeroPadding", padding=1),
}  # fmt: skip
NORMALIZING = {
    "BatchNormalization": on(IMAGES),
    "GroupNormalization": on(normal(4, 4, 6), groups=3),
    "LayerNormalization": on(SERIES),
    "RMSNormalization": on(SERIES),
    "UnitNormalization": on(SERIES),
    "SpectralNormalization": on(VECTORS, layer=made(layers.Dense, 3)),
}
LOOKING = {
    "Attention": on(SERIES, normal(5, 3), enter=as_list, use_scale=True, dropout=0.2),
    "AdditiveAttention": on(SERIES, normal(5, 3), enter=as_list, dropout=0.2),
    "MultiHeadAttention": on(SERIES, normal(5, 3), num_heads=2, key_dim=3, dropout=0.2),
    "GroupQueryAttention": on(
        SERIES, normal(5, 3), head_dim=3, num_query_heads=4, num_key_value_heads=2, dropout=0.2
    ),
}
IN_TIME = {
    "SimpleRNN": on(SERIES, units=4, recurrent_dropout=0.2),
    "GRU": on(SERIES, units=4, return_sequences=True, dropout=0.2),
    "LSTM": on(SERIES, units=4, return_state=True, dropout=0.2, recurrent_dropout=0.2),
    "SimpleRNNCell": on(VECTORS, normal(4), enter=with_states, units=4),
    "GRUCell": on(VECTORS, normal(4), enter=with_states, units=4),
    "LSTMCell": on(VECTORS, normal(4), normal(4), enter=with_states, units=4),
    "StackedRNNCells": on(
        VECTORS, normal(4), normal(2), enter=with_states,
        cells=[made(layers.GRUCell, 4), made(layers.SimpleRNNCell, 2)],
    ),
    "RNN": on(SERIES, cell=made(layers.LSTMCell, 4), go_backwards=True),
    "Bidirectional": on(SERIES, layer=made(layers.GRU, 3, return_sequences=True)),
    "TimeDistributed": on(SERIES, layer=made(layers.Dense, 2)),
    **{
        f"ConvLSTM{rank}D": on(x, filters=2, kernel_size=2, padding="same", dropout=0.2)
        for rank, x in FILMS.items()
    },
}  # fmt: skip
PREPARING = {
    "CategoryEncoding": on(WORDS, num_tokens=7, output_mode="count", learns=False),
    "Discretization": on(VECTORS, bin_boundaries=[-1.0, 0.0, 0.5], learns=False),
    "Normalization": on(VECTORS, mean=0.3, variance=2.0),
    "Rescaling": on(VECTORS, scale=2.0, offset=0.5),
    "MelSpectrogram": on(
        SOUNDS, mixes=True, fft_length=16, sequence_stride=8, sequence_length=16, num_mel_bins=5,
        min_freq=50.0,
    ),
    "STFTSpectrogram": on(
        normal(64, 1), frame_length=16, frame_step=8, fft_length=16, window=None
    ),
    "Pipeline": on(PHOTOS, layers=[made(layers.RandomFlip), made(layers.Rescaling, 0.1)],
                   learns=False),
}  # fmt: skip
OF_PHOTOS = {
    **photos("AugMix"), **photos("AutoContrast"), **photos("CenterCrop", height=5, width=4),
    **photos("ContrastLimitedAdaptiveHistogramEqualization", tile_grid_size=(2, 2)),
    **photos("CutMix"), **photos("Equalization"), **photos("MixUp"), **photos("RandAugment"),
    **photos("RandomBrightness", factor=0.4), **photos("RandomContrast", factor=0.4),
    **photos("RandomColorDegeneration", factor=0.6),
    **photos("RandomColorJitter", brightness_factor=0.3, contrast_factor=0.3,
             saturation_factor=0.3, hue_factor=0.2),
    **photos("RandomCrop", height=5, width=6), **photos("RandomElasticTransform"),
    **photos("RandomErasing"), **photos("RandomFlip"), **photos("RandomGaussianBlur"),
    **photos("RandomGrayscale"), **photos("RandomHue", factor=0.3),
    **photos("RandomInvert", factor=0.5), **photos("RandomPerspective"),
    **photos("RandomPosterization", factor=4), **photos("RandomRotation", factor=0.2),
    **photos("RandomSaturation", factor=0.4), **photos("RandomSharpness", factor=0.4),
    **photos("RandomShear", x_factor=(0.1, 0.3), y_factor=(0.1, 0.2)),
    **photos("RandomTranslation", height_factor=0.2, width_factor=0.2),
    **photos("RandomZoom", height_factor=0.2), **photos("Resizing", height=5, width=7),
    **photos("Solarization", addition_factor=0.2, threshold_factor=0.4),
}  # fmt: skip
# Further ways to make a layer, by its name and what is other.
VARIANTS = {
    "Dropout, one mask for all": on(SERIES, rate=0.5, noise_shape=(1, 8, 3)),
    "Dropout, one mask for each row": on(SERIES, rate=0.5, noise_shape=(None, 1, 3)),
    "Dense, in 16 bits": on(VECTORS, units=3, dtype="mixed_bfloat16"),
    "LocallyConnected1D": on(BY_RANK[1], filters=3, kernel_size=2),
    "LocallyConnected2D": on(IMAGES, filters=2, kernel_size=3, strides=2),
    "Conv2D, in groups": on(IMAGES, filters=4, kernel_size=3, groups=2, dilation_rate=2),
    "BatchNormalization, of vectors": on(VECTORS),
    "BatchNormalization, renormalized": on(VECTORS, renorm=True),
    "BatchNormalization, of channels first": on(IMAGES, axis=1, synchronized=True),
    "LayerNormalization, of two axes": on(IMAGES, axis=[1, 2]),
    "LSTM, unrolled": on(SERIES, units=4, unroll=True, return_sequences=True),
    "GRU, backwards": on(SERIES, units=4, go_backwards=True, reset_after=False),
    "SimpleRNN, with a state kept": on(SERIES, units=4, return_state=True),
    "Bidirectional, summed": on(SERIES, layer=made(layers.LSTM, 3), merge_mode="sum"),
    "TimeDistributed, of normalization": on(SERIES, layer=made(layers.BatchNormalization)),
    "TimeDistributed, of a convolution": on(
        normal(3, 5, 5, 2), layer=made(layers.Conv2D, 2, 3, activation="tanh")
    ),
    "MultiHeadAttention, of the past": on(
        SERIES, SERIES, num_heads=2, key_dim=3, options={"use_causal_mask": True}
    ),
    "Embedding, of rows": on(whole(7), input_dim=7, output_dim=3, learns=False),
    "CategoryEncoding, of one": on(whole(7, 1), num_tokens=7, output_mode="one_hot", learns=False),
    "Resizing, of a part": on(PHOTOS, height=4, width=7, crop_to_aspect_ratio=True, learns=False),
    "RandomCrop, larger": on(PHOTOS, height=9, width=9, learns=False),
    "RandomFlip, upside down": on(PHOTOS, mode="vertical", learns=False),
    "RandomErasing, of one colour": on(PHOTOS, fill_value=0.0, learns=False),
}
CASES: dict[str, Case] = {
    **CORE, **MERGING, **SPACE, **NORMALIZING, **LOOKING, **IN_TIME, **PREPARING, **OF_PHOTOS,
    **VARIANTS,
}  # fmt: skip


def name_of(case: str) -> str:
    """The public name of the layer of a case."""
    return case.partition(",")[0]


def class_of(case: str) -> Any:
    """The layer of a case."""
    return getattr(layers, name_of(case))


LEFT_OUT = {
    "InputLayer": "computes nothing",
    "AbstractRNNCell": "a base of users' cells",
    "Wrapper": "a base of other layers",
    "MaxNumBoundingBoxes": "takes dictionaries of bounding boxes alone",
    "FlaxLayer": "needs Flax",
    "JaxLayer": "needs JAX",
    "TFSMLayer": "needs a saved model: tests/unit/saved_model/test_keras_export.py",
    "TorchModuleWrapper": "needs PyTorch",
    "RandomHeight": "the size of its result is drawn, which no program of the engine can have",
    "RandomWidth": "the size of its result is drawn, which no program of the engine can have",
}
# What they do with words and numbers that are known: test_keras_text.py.
WORD_LAYERS = ("HashedCrossing", "Hashing", "IntegerLookup", "StringLookup", "TextVectorization")
