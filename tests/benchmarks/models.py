"""Sixteen models, described once for every framework.

A network is a function of a builder and its inputs. The builders of keras_models.py (samegrad,
TensorFlow, XLA) and torch_models.py have the same methods and draw equal weights, so that the first
losses agree. Images have their channels last, sequences their examples first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Network = Callable[..., Any]


@dataclass(frozen=True)
class Input:
    """Shape of an example; integers below `limit`, else normal values."""

    shape: tuple[int, ...]
    limit: int = 0

    def array(self, batch: int, rng: np.random.Generator) -> Array:
        """Return a batch of random examples."""
        if self.limit:
            return rng.integers(0, self.limit, (batch, *self.shape)).astype(np.int32)
        return rng.standard_normal((batch, *self.shape), np.float32)


@dataclass(frozen=True)
class Model:
    """A network, the data that it reads, and what a step does with it.

    Attributes:
        batch: Examples of a step.
        inputs: Arguments of the network, then the labels where the loss has some.
        networks: One, or the generator and the critic of a GAN.
        loss: `classes`, `binary`, `square`, `variational`, `adversarial`, or `predict` for none.
        eager: Whether the step runs outside of a compiled function.
        compiled: Whether torch.compile changes anything: it leaves recurrent layers as they are.
        title: The row of the table.
    """

    title: str
    batch: int
    inputs: tuple[Input, ...]
    networks: tuple[Network, ...]
    loss: str = "classes"
    eager: bool = False
    compiled: bool = True

    @property
    def peers(self) -> tuple[str, ...]:
        """Return the backends of peers.py that compute it besides samegrad."""
        if self.eager:
            return "tf", "torch"
        return ("tf", "xla", "torch", "inductor") if self.compiled else ("tf", "xla", "torch")

    @property
    def arguments(self) -> int:
        """Return how many of the inputs the network reads."""
        return len(self.inputs) - (self.loss in ("classes", "binary"))

    def read_by(self, network: int) -> slice:
        """Return which inputs a network reads; the two of a GAN read one each."""
        if len(self.networks) > 1:
            return slice(network, network + 1)
        return slice(self.arguments)

    def arrays(self, batch: int) -> tuple[Array, ...]:
        """Return one batch, the same for every framework."""
        rng = np.random.default_rng(0)
        return tuple(each.array(batch, rng) for each in self.inputs)


class Weights:
    """Random kernels, in the order in which builders ask for them."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(1)

    def draw(self, *shape: int) -> Array:
        """Return a kernel in Keras's layout, scaled by the number of inputs."""
        scale = np.float32(1 / np.sqrt(np.prod(shape[:-1])))
        return self._rng.standard_normal(shape, np.float32) * scale


def recurrent(kind: str, units: int) -> Network:
    """Return one recurrent layer, whose last output is classified."""
    return lambda b, x: b.dense(b.recurrent(x, kind, units), 10)


def bidirectional(b: Any, words: Any) -> Any:
    x = b.embedding(words, 20_000, 128)
    x = b.recurrent(x, "lstm", 64, sequences=True, both=True)
    return b.dense(b.recurrent(x, "lstm", 64, both=True), 2)


def characters(b: Any, text: Any) -> Any:
    x = b.recurrent(b.embedding(text, 65, 256), "gru", 512, sequences=True)
    return b.dense(x, 65)


TABLES, ROWS, WIDTH = 26, 100_000, 32


def dlrm(b: Any, numbers: Any, *words: Any) -> Any:
    """Deep learning recommendation model (Naumov et al., 2019) with products of all pairs."""
    for units in (512, 256, WIDTH):
        numbers = b.relu(b.dense(numbers, units))
    rows = b.stack([numbers, *(b.embedding(each, ROWS, WIDTH) for each in words)])
    x = b.concat([numbers, b.flatten(b.products(rows))])
    for units in (512, 256):
        x = b.relu(b.dense(x, units))
    return b.dense(x, 1)


def resnet50(b: Any, x: Any) -> Any:
    x = b.pool(b.relu(b.norm(b.conv(x, 64, 7, 2, bias=False))), 3, 2)
    for width, count, first in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            stride, old = 1 if i else first, x
            for filters, size, steps in ((width, 1, 1), (width, 3, stride)):
                x = b.relu(b.norm(b.conv(x, filters, size, steps, bias=False)))
            x = b.norm(b.conv(x, 4 * width, 1, bias=False))
            old = old if i else b.norm(b.conv(old, 4 * width, 1, stride, bias=False))
            x = b.relu(b.add(x, old))
    return b.dense(b.average(x), 1000)


def resnet20(b: Any, x: Any) -> Any:
    x = b.relu(b.norm(b.conv(x, 16, 3, bias=False)))
    for width, first in ((16, 1), (32, 2), (64, 2)):
        for i in range(3):
            stride, old = 1 if i else first, x
            x = b.relu(b.norm(b.conv(x, width, 3, stride, bias=False)))
            x = b.norm(b.conv(x, width, 3, bias=False))
            old = old if stride == 1 else b.norm(b.conv(old, width, 1, stride, bias=False))
            x = b.relu(b.add(x, old))
    return b.dense(b.average(x), 10)


def inverted(b: Any, x: Any, blocks: Any, last: int, activate: Network, squeeze: bool) -> Any:
    """Return the inverted residuals of MobileNetV2, with those of EfficientNet's squeezes."""
    x, channels = activate(b.norm(b.conv(x, 32, 3, 2, bias=False))), 32
    for expand, filters, count, first, size in blocks:
        for i in range(count):
            old, stride = x, 1 if i else first
            if expand > 1:
                x = activate(b.norm(b.conv(x, expand * channels, 1, bias=False)))
            x = activate(b.norm(b.depthwise(x, size, stride)))
            if squeeze:
                few = activate(b.dense(b.average(x), max(1, channels // 4)))
                x = b.scale(x, b.sigmoid(b.dense(few, expand * channels)))
            x = b.norm(b.conv(x, filters, 1, bias=False))
            x = b.add(x, old) if i else x
            channels = filters
    x = activate(b.norm(b.conv(x, last, 1, bias=False)))
    return b.dense(b.average(x), 100)


def mobilenet_v2(b: Any, x: Any) -> Any:
    blocks = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3),
              (6, 96, 3, 1, 3), (6, 160, 3, 2, 3), (6, 320, 1, 1, 3))  # fmt: skip
    return inverted(b, x, blocks, 1280, b.relu6, squeeze=False)


def efficientnet(b: Any, x: Any) -> Any:
    """EfficientNet-B0 (Tan and Le, 2019) without its random depth and dropout."""
    blocks = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
              (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3))  # fmt: skip
    return inverted(b, x, blocks, 1280, b.swish, squeeze=True)


def perceptron(b: Any, x: Any) -> Any:
    for _ in range(2):
        x = b.relu(b.dense(x, 64))
    return b.dense(x, 10)


def block(b: Any, x: Any, width: int, heads: int, causal: bool) -> Any:
    """Return a block of a Transformer, normalized before its parts."""
    x = b.add(x, b.attention(b.layer_norm(x), heads, causal))
    return b.add(x, b.dense(b.gelu(b.dense(b.layer_norm(x), 4 * width)), width))


def gpt(b: Any, words: Any, places: Any) -> Any:
    x = b.add(b.embedding(words, 1024, 384), b.embedding(places, 256, 384))
    for _ in range(6):
        x = block(b, x, 384, 6, causal=True)
    return b.dense(b.layer_norm(x), 1024)


def vit(b: Any, x: Any, places: Any) -> Any:
    x = b.add(b.tokens(b.patches(x, 192, 16)), b.embedding(places, 196, 192))
    for _ in range(12):
        x = block(b, x, 192, 3, causal=False)
    return b.dense(b.mean_token(b.layer_norm(x)), 100)


def unet(b: Any, x: Any) -> Any:
    """U-Net (Ronneberger et al., 2015) of three levels, whose convolutions keep the size."""

    def twice(x: Any, filters: int) -> Any:
        return b.relu(b.conv(b.relu(b.conv(x, filters, 3)), filters, 3))

    kept = []
    for filters in (32, 64, 128):
        x = twice(x, filters)
        kept.append(x)
        x = b.pool(x, 2, 2)
    x = twice(x, 256)
    for filters in (128, 64, 32):
        x = b.concat_channels([kept.pop(), b.transposed(x, filters, 2, 2)])
        x = twice(x, filters)
    return b.conv(x, 3, 1)


def variational(b: Any, image: Any, noise: Any) -> Any:
    x = b.relu(b.conv(b.relu(b.conv(image, 32, 3, 2)), 64, 3, 2))
    x = b.relu(b.dense(b.flatten(b.channels_last(x)), 16))
    mean, variance = b.dense(x, 2), b.dense(x, 2)  # the logarithm of the variance
    x = b.add(mean, b.multiply(noise, b.exp(b.half(variance))))
    x = b.image(b.relu(b.dense(x, 7 * 7 * 64)), 7, 7, 64)
    x = b.relu(b.transposed(b.relu(b.transposed(x, 64, 3, 2)), 32, 3, 2))
    return b.channels_last(b.transposed(x, 1, 3, 1)), mean, variance


def generator(b: Any, noise: Any) -> Any:
    """The generator of DCGAN (Radford et al., 2016) for images of 64 x 64."""
    x = b.relu(b.norm(b.image(b.dense(noise, 4 * 4 * 256), 4, 4, 256)))
    for filters in (128, 64, 32):
        x = b.relu(b.norm(b.transposed(x, filters, 5, 2)))
    return b.tanh(b.transposed(x, 3, 5, 2))


def critic(b: Any, x: Any) -> Any:
    for filters in (32, 64, 128, 256):
        x = b.leaky_relu(b.conv(x, filters, 5, 2))
    return b.dense(b.flatten(b.channels_last(x)), 1)


def _images(size: int, channels: int = 3) -> Input:
    return Input((size, size, channels))


def _places(count: int) -> Input:
    return Input((count,), count)


CLASS = {count: Input((), count) for count in (2, 10, 100)}
SEQUENCE = Input((64, 256))

MODELS = {
    "lstm": Model("LSTM", 64, (SEQUENCE, CLASS[10]), (recurrent("lstm", 256),), compiled=False),
    "bilstm": Model(
        "two bidirectional LSTMs",
        32,
        (Input((200,), 20_000), CLASS[2]),
        (bidirectional,),
        compiled=False,
    ),
    "gru": Model("GRU", 64, (Input((100,), 65), Input((100,), 65)), (characters,), compiled=False),
    "dlrm": Model(
        "DLRM, 26 tables",
        2048,
        (Input((13,)), *[Input((), ROWS)] * TABLES, Input((), 2)),
        (dlrm,),
        "binary",
    ),
    "resnet50": Model("ResNet-50 at 64 x 64", 32, (_images(64), Input((), 1000)), (resnet50,)),
    "resnet50_predict": Model("ResNet-50, predict", 1, (_images(224),), (resnet50,), "predict"),
    "mlp_eager": Model(
        "perceptron, eager", 32, (Input((64,)), CLASS[10]), (perceptron,), eager=True
    ),
    "attention": Model(
        "causal attention of 4,096",
        1,
        (Input((4096, 512)),),
        (lambda b, x: b.attention(x, 8, True),),
        "square",
    ),
    "dcgan": Model("DCGAN", 32, (Input((100,)), _images(64)), (generator, critic), "adversarial"),
    "unet": Model("U-Net", 4, (_images(128), Input((128, 128), 3)), (unet,)),
    "gpt": Model("GPT", 4, (Input((256,), 1024), _places(256), Input((256,), 1024)), (gpt,)),
    "vit": Model("ViT", 8, (_images(224), _places(196), CLASS[100]), (vit,)),
    "resnet20": Model("ResNet-20", 64, (_images(32), CLASS[10]), (resnet20,)),
    "mobilenet_v2": Model("MobileNetV2", 16, (_images(96), CLASS[100]), (mobilenet_v2,)),
    "vae": Model("VAE", 128, (_images(28, 1), Input((2,))), (variational,), "variational"),
    "efficientnet": Model("EfficientNet-B0", 16, (_images(96), CLASS[100]), (efficientnet,)),
}
