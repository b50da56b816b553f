"""One critic and one generator loss of a WGAN-GP on TensorFlow and on PyTorch, in float64.

The models are small, but have what matters for second derivatives: strided and transposed SAME
convolutions with one channel, layer and batch normalization, LeakyReLU, GELU and ELU.

TensorFlow gets a critic without layer normalization: its `nn.moments` stops the gradient of the
mean, which is right for a first derivative only (seen with 2.21: 6 % off PyTorch and finite
differences in the gradient of the penalty). And without GELU, whose constant it rounds to float32;
slopes are powers of 2 for the same reason.
"""

from __future__ import annotations

from typing import Any

import numpy as np

EXAMPLES, NOISE, SIZE, PENALTY, SLOPE = 7, 5, 8, 10.0, 0.25
# The bias after the generator's first layer has no batch normalization behind it.
CRITIC_SHAPES = ((5, 5, 1, 3), (3,), (3, 3, 3, 4), (4,), (4,), (4,), (16, 1), (1,))
GENERATOR_SHAPES = ((5, 16), (16,), (16,), (5, 5, 3, 4), (3,), (5, 5, 1, 3), (1,))
EPSILON = 1e-3  # of the normalizations, as Keras has it


def arrays(framework: str) -> dict[str, Any]:
    """Data and weights of what is compared with a framework."""
    rng = np.random.default_rng(7)

    def weights(shapes: Any) -> list[np.ndarray]:
        return [rng.normal(size=shape) * 0.4 + (len(shape) == 1) * 0.7 for shape in shapes]

    critic = CRITIC_SHAPES if framework == "torch" else CRITIC_SHAPES[:4] + CRITIC_SHAPES[6:]
    return {
        "real": rng.uniform(-1, 1, (EXAMPLES, SIZE, SIZE, 1)),
        "noise": rng.normal(size=(EXAMPLES, NOISE)),
        "mix": rng.uniform(size=(EXAMPLES, 1, 1, 1)),
        "critic": weights(critic),
        "generator": weights(GENERATOR_SHAPES),
    }


def models(tf: Any, framework: str) -> tuple[Any, Any]:
    """Critic and generator of Keras, for the module `tf` that has it."""
    keras, layers = tf.keras, tf.keras.layers
    critic = keras.Sequential(
        [
            keras.Input((SIZE, SIZE, 1)),
            layers.Conv2D(3, 5, 2, "same"),
            layers.LeakyReLU(SLOPE),
            layers.Conv2D(4, 3, 2, "same"),
            *([layers.LayerNormalization()] if framework == "torch" else []),
            layers.Activation("gelu" if framework == "torch" else "elu"),
            layers.Flatten(),
            layers.Dense(1),
        ]
    )
    generator = keras.Sequential(
        [
            keras.Input((NOISE,)),
            layers.Dense(16, use_bias=False),
            layers.BatchNormalization(),
            layers.ELU(),
            layers.Reshape((2, 2, 4)),
            layers.Conv2DTranspose(3, 5, 2, "same"),
            layers.LeakyReLU(SLOPE),
            layers.Conv2DTranspose(1, 5, 2, "same", activation="tanh"),
        ]
    )
    return critic, generator


def by_tensorflow() -> list[np.ndarray]:
    """The gradients of the critic's loss, of the penalty alone, and of the generator's loss."""
    import tensorflow as tf

    tf.keras.config.set_floatx("float64")
    given = arrays("tensorflow")
    critic, generator = models(tf, "tensorflow")
    for model, name in ((critic, "critic"), (generator, "generator")):
        for variable, value in zip(model.trainable_variables, given[name], strict=True):
            variable.assign(value)
    real, noise, mix = (tf.constant(given[name]) for name in ("real", "noise", "mix"))
    fake = generator(noise, training=True)
    with tf.GradientTape(persistent=True) as tape:
        between = mix * real + (1 - mix) * fake
        with tf.GradientTape() as inner:
            inner.watch(between)
            scores = critic(between, training=True)
        gradient = inner.gradient(scores, between)
        norms = tf.sqrt(tf.reduce_sum(gradient**2, [1, 2, 3]))
        penalty = tf.reduce_mean((norms - 1) ** 2)
        gap = tf.reduce_mean(critic(real, training=True) - critic(fake, training=True))
        loss = PENALTY * penalty - gap
    with tf.GradientTape() as generator_tape:
        made = generator(noise, training=True)
        generator_loss = -tf.reduce_mean(critic(made, training=True))
    weights = critic.trainable_variables
    found = list(zip(tape.gradient(loss, weights), weights, strict=True))
    found += zip(tape.gradient(penalty, weights), weights, strict=True)
    weights = generator.trainable_variables
    found += zip(generator_tape.gradient(generator_loss, weights), weights, strict=True)
    return [np.zeros(one.shape) if g is None else g.numpy() for g, one in found]


def _same(torch: Any, size: int, window: int) -> tuple[int, int]:
    """What SAME with steps of 2 adds before and after."""
    total = max((-(-size // 2) - 1) * 2 + window - size, 0)
    return total // 2, total - total // 2


def _torch_critic(torch: Any, x: Any, weights: list[Any]) -> Any:
    functional = torch.nn.functional
    kernel1, bias1, kernel2, bias2, scale, offset, dense, bias3 = weights

    def convolve(x: Any, kernel: Any, bias: Any) -> Any:
        before, after = _same(torch, x.shape[-1], kernel.shape[0])
        x = functional.pad(x, (before, after, before, after))
        return functional.conv2d(x, kernel.permute(3, 2, 0, 1), bias, stride=2)

    x = functional.leaky_relu(convolve(x.permute(0, 3, 1, 2), kernel1, bias1), SLOPE)
    x = convolve(x, kernel2, bias2).permute(0, 2, 3, 1)
    x = functional.layer_norm(x, (4,), scale, offset, EPSILON)
    return functional.gelu(x).flatten(1) @ dense + bias3


def _torch_generator(torch: Any, x: Any, weights: list[Any]) -> Any:
    functional = torch.nn.functional
    dense, scale, offset, kernel1, bias1, kernel2, bias2 = weights

    def convolve(x: Any, kernel: Any, bias: Any) -> Any:
        size = 2 * x.shape[-1]
        before, _ = _same(torch, size, kernel.shape[0])
        x = functional.conv_transpose2d(x, kernel.permute(3, 2, 0, 1), bias, stride=2)
        return x[..., before : before + size, before : before + size]

    x = functional.batch_norm(x @ dense, None, None, scale, offset, training=True, eps=EPSILON)
    x = functional.elu(x).reshape(-1, 2, 2, 4).permute(0, 3, 1, 2)
    x = functional.leaky_relu(convolve(x, kernel1, bias1), SLOPE)
    return torch.tanh(convolve(x, kernel2, bias2)).permute(0, 2, 3, 1)


def by_torch() -> list[np.ndarray]:
    """As `by_tensorflow`; kernels are moved to PyTorch's order and back."""
    import torch

    given = arrays("torch")
    real, noise, mix = (torch.tensor(given[name]) for name in ("real", "noise", "mix"))
    critic = [torch.tensor(value, requires_grad=True) for value in given["critic"]]
    generator = [torch.tensor(value, requires_grad=True) for value in given["generator"]]
    fake = _torch_generator(torch, noise, generator).detach()
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    scores = _torch_critic(torch, between, critic)
    (gradient,) = torch.autograd.grad(scores.sum(), between, create_graph=True)
    penalty = ((gradient.flatten(1).norm(dim=1) - 1) ** 2).mean()
    gap = (_torch_critic(torch, real, critic) - _torch_critic(torch, fake, critic)).mean()
    made = _torch_generator(torch, noise, generator)
    losses = (
        (PENALTY * penalty - gap, critic),
        (penalty, critic),
        (-_torch_critic(torch, made, critic).mean(), generator),
    )
    found = []
    for loss, weights in losses:
        gradients = torch.autograd.grad(loss, weights, retain_graph=True, allow_unused=True)
        for value, one in zip(gradients, weights, strict=True):
            found.append(np.zeros(one.shape) if value is None else value.detach().numpy())
    return found
