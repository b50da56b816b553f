"""The networks of models.py in PyTorch: convolutions channels last, as they are or compiled."""

from __future__ import annotations

import functools
import importlib
import operator
import os
from collections.abc import Callable
from typing import Any

from models import MODELS, Array, Model, Weights
from workloads import Arrays, Job, Program, peak_memory_mib

Step = Callable[[], Any]
EPSILON = {"norm": 1e-3, "adam": 1e-7}  # of Keras


class Builder:
    """Modules of PyTorch in a graph of torch.fx, with the kernels that Keras draws.

    Each node keeps its value for some examples, which gives the shapes.

    Args:
        torch: PyTorch.
        weights: The source of the kernels.
    """

    def __init__(self, torch: Any, weights: Weights) -> None:
        self.torch, self.weights = torch, weights
        self.fx = importlib.import_module("torch.fx")
        self.root, self.graph = torch.nn.Module(), self.fx.Graph()
        f = torch.nn.functional
        functions = {
            "relu": f.relu,
            "relu6": f.relu6,
            "gelu": f.gelu,
            "swish": f.silu,
            "sigmoid": torch.sigmoid,
            "tanh": torch.tanh,
            "exp": torch.exp,
            "add": operator.add,
            "multiply": operator.mul,
        }
        for name, function in functions.items():
            setattr(self, name, functools.partial(self.apply, function))

    def input(self, array: Array) -> Any:
        """Return a placeholder; images become channels last in memory."""
        node = self.graph.placeholder(f"input_{len(self.graph.nodes)}")
        node.meta["value"] = tensor_of(self.torch, array)
        return node

    def apply(self, function: Any, *inputs: Any) -> Any:
        """Add a call of a function, or of a new module."""
        if isinstance(function, self.torch.nn.Module):
            name = f"part_{len(self.graph.nodes)}"
            self.root.add_module(name, function)
            node = self.graph.call_module(name, inputs)
        else:
            node = self.graph.call_function(function, inputs)
        values = self.fx.node.map_arg(inputs, lambda each: each.meta["value"])
        with self.torch.no_grad():
            node.meta["value"] = function(*values)
        return node

    def module(self, outputs: Any) -> Any:
        """Return the network that ends in some nodes."""
        self.graph.output(outputs)
        for module in self.root.modules():
            if isinstance(module, self.torch.nn.BatchNorm2d):
                module.reset_running_stats()
        return self.fx.GraphModule(self.root, self.graph).to(memory_format=self.torch.channels_last)

    def draw(self, weight: Any, *shape: int, order: tuple[int, ...]) -> None:
        """Fill a weight with a kernel of Keras's shape, whose axes are put in another order."""
        kernel = self.torch.from_numpy(self.weights.draw(*shape)).permute(order)
        weight.data.copy_(kernel.reshape(weight.shape))

    def layer(self, module: Any, x: Any, *shape: int, order: tuple[int, ...]) -> Any:
        """Apply a module whose bias is zero."""
        self.draw(module.weight, *shape, order=order)
        if module.bias is not None:
            self.torch.nn.init.zeros_(module.bias)
        return self.apply(module, x)

    def conv(self, x: Any, filters: int, size: int, stride: int = 1, bias: bool = True) -> Any:
        return self.patches(x, filters, size, stride, size // 2, bias)

    def patches(
        self, x: Any, filters: int, size: int, stride: int = 0, pad: int = 0, bias: bool = True
    ) -> Any:
        channels = x.meta["value"].shape[1]
        module = self.torch.nn.Conv2d(channels, filters, size, stride or size, pad, bias=bias)
        return self.layer(module, x, size, size, channels, filters, order=(3, 2, 0, 1))

    def depthwise(self, x: Any, size: int, stride: int) -> Any:
        c = x.meta["value"].shape[1]
        module = self.torch.nn.Conv2d(c, c, size, stride, size // 2, groups=c, bias=False)
        return self.layer(module, x, size, size, c, 1, order=(2, 3, 0, 1))

    def transposed(self, x: Any, filters: int, size: int, stride: int) -> Any:
        channels, more = x.meta["value"].shape[1], size - stride
        pad = (more + 1) // 2
        module = self.torch.nn.ConvTranspose2d(channels, filters, size, stride, pad, 2 * pad - more)
        return self.layer(module, x, size, size, filters, channels, order=(3, 2, 0, 1))

    def dense(self, x: Any, units: int) -> Any:
        inputs = x.meta["value"].shape[-1]
        module = self.torch.nn.Linear(inputs, units)
        return self.layer(module, x, inputs, units, order=(1, 0))

    def norm(self, x: Any) -> Any:
        channels = x.meta["value"].shape[1]
        return self.apply(self.torch.nn.BatchNorm2d(channels, EPSILON["norm"], 0.01), x)

    def layer_norm(self, x: Any) -> Any:
        return self.apply(self.torch.nn.LayerNorm(x.meta["value"].shape[-1], EPSILON["norm"]), x)

    def leaky_relu(self, x: Any) -> Any:
        return self.apply(self.torch.nn.LeakyReLU(0.2), x)

    def embedding(self, x: Any, rows: int, width: int) -> Any:
        module = self.torch.nn.Embedding(rows, width)
        self.draw(module.weight, rows, width, order=(0, 1))
        return self.apply(module, x)

    def recurrent(
        self, x: Any, kind: str, units: int, sequences: bool = False, both: bool = False
    ) -> Any:
        """Add a recurrent layer; the gates of Keras's GRU come in the order z, r, h."""
        torch, inputs = self.torch, x.meta["value"].shape[-1]
        layer = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[kind]
        layer = layer(inputs, units, batch_first=True, bidirectional=both)
        gates = {"lstm": 4, "gru": 3}[kind]
        for suffix in ("", "_reverse") if both else ("",):
            for name, rows in (("ih", inputs), ("hh", units)):
                weight = getattr(layer, f"weight_{name}_l0{suffix}")
                self.draw(weight, rows, gates * units, order=(1, 0))
                if kind == "gru":
                    z, r, h = weight.data.clone().chunk(3)
                    weight.data.copy_(torch.cat([r, z, h]))
                bias = getattr(layer, f"bias_{name}_l0{suffix}")
                torch.nn.init.zeros_(bias)
                if kind == "lstm" and name == "ih":  # Keras begins with forget gates of one
                    torch.nn.init.ones_(bias[units : 2 * units])
        x = self.apply(operator.getitem, self.apply(layer, x), 0)
        if sequences:
            return x
        last = self.apply(operator.getitem, x, (slice(None), -1, slice(units)))
        if not both:
            return last
        first = self.apply(operator.getitem, x, (slice(None), 0, slice(units, None)))
        return self.concat([last, first])

    def attention(self, x: Any, heads: int, causal: bool) -> Any:
        torch, width = self.torch, x.meta["value"].shape[-1]
        module, size = _attention(torch)(width, heads, causal), width // heads
        for part in module.inner.weight.data.chunk(3):
            kernel = self.weights.draw(width, heads, size).reshape(width, width)
            part.copy_(torch.from_numpy(kernel).T)
        self.draw(module.outer.weight, heads, size, width, order=(2, 0, 1))
        for linear in (module.inner, module.outer):
            torch.nn.init.zeros_(linear.bias)
        return self.apply(module, x)

    def pool(self, x: Any, size: int, stride: int) -> Any:
        return self.apply(self.torch.nn.MaxPool2d(size, stride, size // 2 if size % 2 else 0), x)

    def average(self, x: Any) -> Any:
        return self.apply(self.torch.mean, x, (2, 3))

    def mean_token(self, x: Any) -> Any:
        return self.apply(self.torch.mean, x, 1)

    def flatten(self, x: Any) -> Any:
        return self.apply(self.torch.flatten, x, 1)

    def concat(self, parts: list[Any]) -> Any:
        return self.apply(self.torch.cat, parts, -1)

    def concat_channels(self, parts: list[Any]) -> Any:
        return self.apply(self.torch.cat, parts, 1)

    def stack(self, parts: list[Any]) -> Any:
        return self.apply(self.torch.stack, parts, 1)

    def products(self, x: Any) -> Any:
        return self.apply(self.torch.matmul, x, self.apply(self.torch.transpose, x, 1, 2))

    def scale(self, x: Any, factors: Any) -> Any:
        shape = (-1, factors.meta["value"].shape[1], 1, 1)
        return self.multiply(x, self.apply(self.torch.reshape, factors, shape))  # type: ignore[attr-defined]

    def image(self, x: Any, *shape: int) -> Any:
        x = self.apply(self.torch.reshape, x, (-1, *shape))
        return self.apply(self.torch.permute, x, (0, 3, 1, 2))

    def tokens(self, x: Any) -> Any:
        return self.apply(self.torch.flatten, self.channels_last(x), 1, 2)

    def channels_last(self, x: Any) -> Any:
        return self.apply(self.torch.permute, x, (0, 2, 3, 1))

    def half(self, x: Any) -> Any:
        return self.apply(operator.mul, x, 0.5)


def _attention(torch: Any) -> Any:
    nn = torch.nn

    class Attention(nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
        def __init__(self, width: int, heads: int, causal: bool) -> None:
            super().__init__()
            self.inner, self.outer = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.heads, self.causal = heads, causal

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            parts = self.inner(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            seen = nn.functional.scaled_dot_product_attention(*parts, is_causal=self.causal)
            return self.outer(seen.transpose(1, 2).reshape(batch, length, width))

    return Attention


def tensor_of(torch: Any, array: Array) -> Any:
    """Return a tensor; images become NCHW, with their channels last in memory."""
    made = torch.from_numpy(array)
    return made.permute(0, 3, 1, 2) if array.ndim == 4 else made


def build(job: Job, data: Arrays) -> Program:
    """Return the step of a model in PyTorch."""
    torch: Any = importlib.import_module("torch")
    base = peak_memory_mib()
    torch.set_num_threads(job.threads or os.cpu_count() or 1)
    model = MODELS[job.workload]
    networks = _networks(torch, model, data)
    parameters = sum(p.numel() for each in networks for p in each.parameters())
    batch = [tensor_of(torch, array) for array in data]
    if model.loss in ("classes", "binary"):
        batch[-1] = batch[-1].long()
    called = [torch.compile(each) if job.backend == "inductor" else each for each in networks]
    step = STEPS.get(model.loss, _train)(torch, model, called, batch)
    return Program(
        lambda _: step(), lambda x: float(x.item()), str(torch.__version__), parameters, base
    )


def _networks(torch: Any, model: Model, data: Arrays) -> list[Any]:
    weights, made = Weights(), []
    for i, network in enumerate(model.networks):
        given = data[model.read_by(i)]
        builder = Builder(torch, weights)
        module = builder.module(network(builder, *[builder.input(x[:2]) for x in given]))
        made.append(module)
    return made


def _loss(torch: Any, name: str, found: Any, batch: Any) -> Any:
    f = torch.nn.functional
    if name == "classes":
        if found.ndim == 3:
            return f.cross_entropy(found.flatten(0, 1), batch[-1].flatten())
        return f.cross_entropy(found, batch[-1])
    if name == "binary":
        return f.binary_cross_entropy_with_logits(found, batch[-1].float()[:, None])
    if name == "square":
        return found.square().mean()
    logits, mean, variance = found
    image = batch[0].permute(0, 2, 3, 1)
    pixels = f.binary_cross_entropy_with_logits(logits, image.sigmoid(), reduction="none")
    distance = -0.5 * (1.0 + variance - mean.square() - variance.exp())
    return (pixels.sum((1, 2, 3)) + distance.sum(1)).mean()


def _optimizer(torch: Any, network: Any) -> Any:
    return torch.optim.Adam(network.parameters(), 1e-4, eps=EPSILON["adam"], fused=True)


def _train(torch: Any, model: Model, networks: list[Any], batch: list[Any]) -> Step:
    (network,) = networks
    optimizer = _optimizer(torch, network)

    def step() -> Any:
        optimizer.zero_grad()
        loss = _loss(torch, model.loss, network(*batch[: model.arguments]), batch)
        loss.backward()
        optimizer.step()
        return loss

    return step


def _predict(torch: Any, model: Model, networks: list[Any], batch: list[Any]) -> Step:
    network = networks[0].eval()

    def step() -> Any:
        with torch.inference_mode():
            return network(*batch).mean()

    return step


def _adversarial(torch: Any, model: Model, networks: list[Any], batch: list[Any]) -> Step:
    """Both updates from one pass, as in keras_models.py."""
    (generator, critic), (noise, real) = networks, batch
    optimizers = [_optimizer(torch, network) for network in networks]
    binary = torch.nn.functional.binary_cross_entropy_with_logits

    def step() -> Any:
        fake, right = critic(generator(noise)), critic(real)
        ones, zeros = torch.ones_like(fake), torch.zeros_like(fake)
        ours, theirs = binary(fake, ones), binary(right, ones) + binary(fake, zeros)
        for network, loss, keep in ((generator, ours, True), (critic, theirs, False)):
            parameters = list(network.parameters())
            gradients = torch.autograd.grad(loss, parameters, retain_graph=keep)
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient
        for optimizer in optimizers:
            optimizer.step()
        return ours + theirs

    return step


STEPS = {"predict": _predict, "adversarial": _adversarial}
