"""ResNet-50 against the tf.distribute API, for TensorFlow and for samegrad.

He et al., "Deep Residual Learning for Image Recognition" (2015), with the stride in the 3x3
convolution of a block, as torchvision and keras.applications have it. Normalization is over the
global batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from workloads import RESNET_CLASSES, RESNET_STAGES, Job

Step = Callable[[Any], Any]
Layer = Callable[..., Any]


class Network:
    """The variables of a network, made one after the other, and its layers."""

    def __init__(self, tf: Any, job: Job) -> None:
        self.tf, self.job = tf, job
        self.variables: list[Any] = []
        self.random = np.random.default_rng(0)

    def weights(self, *shape: int) -> Any:
        deviation = np.sqrt(2 / np.prod(shape[:-1]))
        return self.variable(self.random.normal(scale=deviation, size=shape))

    def variable(self, value: Any) -> Any:
        variable = self.tf.Variable(np.asarray(value, np.float32))
        self.variables.append(variable)
        return variable

    def convolution(self, size: int, inputs: int, outputs: int, stride: int = 1) -> Layer:
        """Returns convolution, batch normalization and, unless told otherwise, relu."""
        filters = self.weights(size, size, inputs, outputs)
        scale, offset = self.variable(np.ones(outputs)), self.variable(np.zeros(outputs))

        def apply(x: Any, relu: bool = True) -> Any:
            x = self.normalize(self.tf.nn.conv2d(x, filters, stride, "SAME"), scale, offset)
            return self.tf.nn.relu(x) if relu else x

        return apply

    def normalize(self, x: Any, scale: Any, offset: Any) -> Any:
        tf = self.tf
        if self.job.backend == "tf":  # TensorFlow's own kernel; one replica, so it is global
            return tf.compat.v1.nn.fused_batch_norm(x, scale, offset, epsilon=1e-5)[0]
        total = tf.distribute.get_replica_context().all_reduce
        count = float(self.job.global_batch * x.shape[1] * x.shape[2])
        mean = total("SUM", tf.reduce_sum(x, [0, 1, 2])) / count
        centred = x - mean
        variance = total("SUM", tf.reduce_sum(centred * centred, [0, 1, 2])) / count
        return centred * (tf.math.rsqrt(variance + 1e-5) * scale) + offset

    def bottleneck(self, inputs: int, width: int, stride: int, projects: bool) -> Layer:
        reduce = self.convolution(1, inputs, width)
        spatial = self.convolution(3, width, width, stride)
        expand = self.convolution(1, width, 4 * width)
        project = self.convolution(1, inputs, 4 * width, stride) if projects else None

        def apply(x: Any) -> Any:
            residual = expand(spatial(reduce(x)), relu=False)
            return self.tf.nn.relu(residual + (project(x, relu=False) if project else x))

        return apply

    def resnet50(self) -> Layer:
        tf, stem, blocks, channels = self.tf, self.convolution(7, 3, 64, 2), [], 64
        for width, count, stride in RESNET_STAGES:
            for i in range(count):
                blocks.append(self.bottleneck(channels, width, 1 if i else stride, i == 0))
                channels = 4 * width
        weights = self.weights(channels, RESNET_CLASSES)
        bias = self.variable(np.zeros(RESNET_CLASSES))

        def apply(x: Any) -> Any:
            x = tf.nn.max_pool2d(stem(x), 3, 2, "SAME")
            for block in blocks:
                x = block(x)
            return tf.matmul(tf.reduce_mean(x, [1, 2]), weights) + bias

        return apply


def resnet50(tf: Any, job: Job) -> Step:
    """Forward, backward and SGD."""
    network = Network(tf, job)
    model = network.resnet50()
    optimizer = tf.keras.optimizers.SGD(1e-3)

    def step(batch: Any) -> Any:
        images, labels = batch
        with tf.GradientTape() as tape:
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images))
            loss = tf.nn.compute_average_loss(each, global_batch_size=job.global_batch)
        variables = network.variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return step
