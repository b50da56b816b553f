"""ResNet-50 in PyTorch (see tf_resnet.py)."""

from __future__ import annotations

from typing import Any

from workloads import RESNET_CLASSES, RESNET_STAGES


def resnet50(torch: Any) -> Any:
    nn = torch.nn

    def convolution(size: int, inputs: int, outputs: int, stride: int = 1) -> list[Any]:
        convolved = nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)
        return [convolved, nn.BatchNorm2d(outputs)]

    class Bottleneck(nn.Module):  # type: ignore[misc]
        def __init__(self, inputs: int, width: int, stride: int, projects: bool) -> None:
            super().__init__()
            self.residual = nn.Sequential(
                *convolution(1, inputs, width),
                nn.ReLU(inplace=True),
                *convolution(3, width, width, stride),
                nn.ReLU(inplace=True),
                *convolution(1, width, 4 * width),
            )
            projection = convolution(1, inputs, 4 * width, stride) if projects else []
            self.shortcut = nn.Sequential(*projection)

        def forward(self, x: Any) -> Any:
            return torch.relu(self.residual(x) + self.shortcut(x))

    layers = [*convolution(7, 3, 64, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for width, count, stride in RESNET_STAGES:
        for i in range(count):
            layers.append(Bottleneck(channels, width, 1 if i else stride, i == 0))
            channels = 4 * width
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, RESNET_CLASSES)]
    return nn.Sequential(*layers, *head)
