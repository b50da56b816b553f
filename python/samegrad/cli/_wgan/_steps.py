"""The steps of a Wasserstein GAN over replicas: losses, penalty, updates.

Arjovsky et al., 2017, Wasserstein GAN (clipped weights); Gulrajani et al., 2017, Improved Training
of Wasserstein GANs (gradient penalty). Every loss is one number per example, divided by the true
number of examples of all replicas in one place, `nn.compute_average_loss`: so the penalty and the
critic's loss are scaled alike, for any number of replicas and a short last batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import samegrad as tf
from samegrad._tensor.tensor import Tensor
from samegrad.cli._wgan._models import NOISE, create_critic, create_generator

WHO = "wgan-gp"
Figures = dict[str, Tensor]


def gradient_norms(critic: Any, points: Any) -> Tensor:
    """Return the gradient norms of the critic at some points.

    Args:
        critic: From points to scores `[n, 1]`, each of its own point only.
        points: `[n, ...]`.

    Returns:
        `[n]`, the Euclidean norms of the gradients of the scores; their own gradient is 0 where
        they are 0.
    """
    with tf.GradientTape() as tape:
        tape.watch(points)
        scores = critic(points, training=True)
    gradients = tape.gradient(scores, points)
    return tf.norm(gradients, axis=list(range(1, len(gradients.shape))))


def critic_losses(critic: Any, real: Any, fake: Any, mix: Any, penalty_weight: Any) -> Figures:
    """The losses of single examples; their mean over the global batch is the critic's loss.

    Args:
        critic: From images to scores `[n, 1]`.
        real: Images of the data, `[n, ...]`.
        fake: Images of the generator, as many.
        mix: `[n, 1, ...]`, numbers from 0 to 1: the penalty is taken between real and fake ones.
        penalty_weight: λ, a number; 0: the norms are only looked at.

    Returns:
        `[n]` each: `wasserstein`, the estimate of the distance; `gradient_norm`; `penalty`, the
        squared distance of the norm from 1; `critic_loss`.
    """
    gap = tf.squeeze(critic(real, training=True) - critic(fake, training=True), 1)
    norms = gradient_norms(critic, fake + mix * (real - fake))
    penalties = (norms - 1.0) ** 2
    return {
        "wasserstein": gap,
        "gradient_norm": norms,
        "penalty": penalties,
        "critic_loss": penalty_weight * penalties - gap,
    }


class WganSteps:
    """Models, optimizers and steps under one strategy.

    Args:
        strategy: Its replicas share the work.
        width: Channels of the models.
        clip: Bound of the critic's weights, which replaces the penalty; None: the penalty.

    Attributes:
        penalty_weight: λ, a variable: assigned between steps, without another trace.
        clip: The bound, a variable.
        critic_step: One update of the critic, by a global batch of images; returns the figures.
        generator_step: One update of the generator, by as many images as the batch has; returns
            its loss.
    """

    def __init__(self, strategy: Any, width: int, clip: bool = False) -> None:
        self.strategy = strategy
        self._clips = clip
        with strategy.scope():
            self.critic, self.generator = create_critic(width), create_generator(width)
            self.critic_optimizer, self.generator_optimizer = _optimizer(clip), _optimizer(clip)
            self.critic_optimizer.build(self.critic.trainable_variables)
            self.generator_optimizer.build(self.generator.trainable_variables)
            self.penalty_weight = tf.Variable(0.0, trainable=False, name="penalty_weight")
            self.clip = tf.Variable(0.0, trainable=False, name="clip")
        self.critic_step = self._summed(self._critic_step)
        self.generator_step = self._summed(self._generator_step)
        self._images = tf.function(lambda noise: self.generator(noise, training=False))

    def images(self, noise: Any) -> Any:
        """Images `[n, 28, 28, 1]` from -1 to 1 of noise `[n, NOISE]`, as NumPy arrays."""
        return self._images(noise).numpy()

    def _summed(self, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @tf.function
        def distributed_step(batch: Any) -> Any:
            shares = self.strategy.run(step, args=(batch,))
            return self.strategy.reduce(tf.distribute.ReduceOp.SUM, shares, axis=None)

        return distributed_step

    def _critic_step(self, real: Any) -> Figures:
        count = tf.shape(real)[0]
        # Drawn for the rows of all replicas: these are the numbers of one device.
        fake = self.generator(tf.random.normal((count, NOISE)), training=True)
        mix = tf.random.uniform((count, 1, 1, 1))
        with tf.GradientTape() as tape:
            each = critic_losses(self.critic, real, fake, mix, self.penalty_weight)
            loss = tf.nn.compute_average_loss(each["critic_loss"])
        _update(self.critic_optimizer, tape, loss, self.critic)
        if self._clips:
            for variable in self.critic.trainable_variables:
                bound = self.clip._as_tensor()
                variable.assign(tf.clip_by_value(variable, -bound, bound))
        others = ("wasserstein", "gradient_norm", "penalty")
        figures = {name: tf.nn.compute_average_loss(each[name]) for name in others}
        return {**figures, "critic_loss": loss}

    def _generator_step(self, real: Any) -> Tensor:
        with tf.GradientTape() as tape:
            noise = tf.random.normal((tf.shape(real)[0], NOISE))
            scores = self.critic(self.generator(noise, training=True), training=True)
            loss = tf.nn.compute_average_loss(-tf.squeeze(scores, 1))
        _update(self.generator_optimizer, tape, loss, self.generator)
        return loss


def _optimizer(clip: bool) -> Any:
    """Return the optimizer of the two papers: without momentum for clipped weights."""
    if clip:
        return tf.keras.optimizers.RMSprop()
    return tf.keras.optimizers.Adam(beta_1=0.5, beta_2=0.9)


def _update(optimizer: Any, tape: Any, loss: Tensor, model: Any) -> None:
    variables = model.trainable_variables
    gradients = tape.gradient(loss, variables)
    optimizer.apply_gradients(zip(gradients, variables, strict=True))
