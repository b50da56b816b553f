"""Modules of PyTorch whose weights the tests convert: single layers, ResNet-50 and BERT.

ResNet-50 has the names of torchvision, and BERT has those of BertModel in transformers.
"""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import torch
from convert_cases import BERT, RESNET, SHAPES
from torch import nn


def separable(convolution):
    return nn.Sequential(
        OrderedDict(
            depthwise=convolution(4, 8, 3, groups=4, bias=False), pointwise=convolution(8, 5, 1)
        )
    )


MODULES = {
    "dense": lambda: nn.Linear(4, 5),
    "dense without bias": lambda: nn.Linear(4, 5, bias=False),
    "einsum": lambda: nn.Linear(4, 5),
    "conv1d": lambda: nn.Conv1d(4, 6, 3, stride=2),
    "conv2d": lambda: nn.Conv2d(4, 6, (3, 2)),
    "conv2d in groups": lambda: nn.Conv2d(4, 6, 3, groups=2),
    "conv2d with dilation": lambda: nn.Conv2d(4, 6, 3, dilation=2),
    "conv3d": lambda: nn.Conv3d(4, 3, 2),
    "transposed conv1d": lambda: nn.ConvTranspose1d(4, 6, 3, stride=2),
    "transposed conv2d": lambda: nn.ConvTranspose2d(4, 6, (3, 2), stride=2),
    "transposed conv3d": lambda: nn.ConvTranspose3d(4, 3, 2),
    "depthwise conv1d": lambda: nn.Conv1d(4, 8, 3, groups=4),
    "depthwise conv2d": lambda: nn.Conv2d(4, 8, (3, 2), groups=4),
    "separable conv1d": lambda: separable(nn.Conv1d),
    "separable conv2d": lambda: separable(nn.Conv2d),
    "batch normalization": lambda: nn.BatchNorm2d(4),
    "layer normalization": lambda: nn.LayerNorm(4),
    "layer normalization of two axes": lambda: nn.LayerNorm((3, 4)),
    "group normalization": lambda: nn.GroupNorm(2, 4),
    "rms normalization": lambda: nn.RMSNorm(4, eps=1e-6),
    "prelu": lambda: nn.PReLU(4),
    "embedding": lambda: nn.Embedding(7, 3),
    "lstm": lambda: nn.LSTM(4, 5, batch_first=True),
    "lstm without bias": lambda: nn.LSTM(4, 5, batch_first=True, bias=False),
    "gru": lambda: nn.GRU(4, 5, batch_first=True),
    "rnn": lambda: nn.RNN(4, 5, batch_first=True),
    "lstm of two layers": lambda: nn.LSTM(4, 5, 2, batch_first=True),
    "lstm in both directions": lambda: nn.LSTM(4, 5, batch_first=True, bidirectional=True),
    "gru in both directions": lambda: nn.GRU(4, 5, batch_first=True, bidirectional=True),
    "attention": lambda: nn.MultiheadAttention(4, 2, batch_first=True),
}


def channels_first(name):
    """Tell whether the layer's channels are the second axis in PyTorch and the last in Keras."""
    return any(kind in name for kind in ("conv", "batch", "group", "prelu"))


def result(name, module, x):
    """Return a layer's output with the channels last, as Keras has it."""
    x = torch.from_numpy(x)
    with torch.no_grad():
        if name == "attention":
            return module(x, x, x)[0].numpy()
        if not channels_first(name):
            y = module(x)
            return (y[0] if isinstance(y, tuple) else y).numpy()
        return module(x.movedim(-1, 1)).movedim(1, -1).contiguous().numpy()


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = None
        if stride != 1 or channels != 4 * width:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
            )

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        y = torch.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        channels = width
        for stage, blocks in enumerate((3, 4, 6, 3)):
            members = []
            for block in range(blocks):
                stride = 2 if stage and not block else 1
                members.append(Bottleneck(channels, width << stage, stride))
                channels = 4 * width << stage
            setattr(self, f"layer{stage + 1}", nn.Sequential(*members))
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def named(**modules):
    """Return a module that holds others by name."""
    return nn.ModuleDict(modules)


class BertLayer(nn.Module):
    def __init__(self, hidden, heads, intermediate):
        super().__init__()
        self.heads = heads
        self.attention = named(
            self=named(**{part: nn.Linear(hidden, hidden) for part in ("query", "key", "value")}),
            output=named(dense=nn.Linear(hidden, hidden), LayerNorm=nn.LayerNorm(hidden, 1e-12)),
        )
        self.intermediate = named(dense=nn.Linear(hidden, intermediate))
        self.output = named(
            dense=nn.Linear(intermediate, hidden), LayerNorm=nn.LayerNorm(hidden, 1e-12)
        )

    def forward(self, x, mask):
        attention, output = self.attention["self"], self.attention["output"]
        split = lambda y: y.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # noqa: E731
        query, key, value = (split(attention[part](x)) for part in ("query", "key", "value"))
        scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
        scores = scores.masked_fill(~mask[:, None, None], torch.finfo(scores.dtype).min)
        y = (scores.softmax(-1) @ value).transpose(1, 2).flatten(2)
        x = output["LayerNorm"](x + output["dense"](y))
        y = nn.functional.gelu(self.intermediate["dense"](x))
        return self.output["LayerNorm"](x + self.output["dense"](y))


class Bert(nn.Module):
    def __init__(self, vocabulary, length, hidden, layers, heads, intermediate):
        super().__init__()
        self.embeddings = named(
            word_embeddings=nn.Embedding(vocabulary, hidden),
            position_embeddings=nn.Embedding(length, hidden),
            token_type_embeddings=nn.Embedding(2, hidden),
            LayerNorm=nn.LayerNorm(hidden, 1e-12),
        )
        blocks = [BertLayer(hidden, heads, intermediate) for _ in range(layers)]
        self.encoder = named(layer=nn.ModuleList(blocks))
        self.pooler = named(dense=nn.Linear(hidden, hidden))

    def forward(self, tokens, types, mask):
        of = self.embeddings
        x = of["word_embeddings"](tokens) + of["token_type_embeddings"](types)
        x = x + of["position_embeddings"](torch.arange(tokens.shape[1]))
        x = of["LayerNorm"](x)
        for layer in self.encoder["layer"]:
            x = layer(x, mask)
        return x, torch.tanh(self.pooler["dense"](x[:, 0]))


def resnet_outputs(module, images):
    with torch.no_grad():
        return module(torch.from_numpy(images).movedim(-1, 1)).numpy()


def bert_outputs(module, tokens, types, mask):
    with torch.no_grad():
        found = module(*(torch.from_numpy(x) for x in (tokens, types, mask)))
    return [y.numpy() for y in found]


def filled(module, seed):
    """Return the module in the mode of inference, with random weights and statistics."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for name, value in module.state_dict().items():
            if value.dtype.is_floating_point:
                low, high = (0.5, 1.5) if name.endswith("running_var") else (-0.5, 0.5)
                if value.dim() > 1:
                    low, high = (one * 2 / value[0].numel() ** 0.5 for one in (low, high))
                value.copy_(torch.from_numpy(rng.uniform(low, high, value.shape)))
            else:
                value.fill_(3)
    return module.eval()


def layer(name, seed):
    return filled(MODULES[name](), seed)


def resnet(seed=0):
    return filled(ResNet(**RESNET), seed)


def bert(seed=0):
    return filled(Bert(**BERT), seed)


assert MODULES.keys() == SHAPES.keys()
