"""Record weights and outputs of PyTorch's modules, which the tests convert.

Run with PyTorch and the package safetensors: `python record_torch_weights.py`.
"""

from __future__ import annotations

from pathlib import Path

import convert_torch_models as models
import torch
from convert_cases import SHAPES, given_input, images, sentences
from safetensors.torch import save_file

HERE = Path(__file__).parent


def main():
    torch.manual_seed(0)
    layers, outputs = {}, {}
    for seed, name in enumerate(SHAPES):
        module = models.layer(name, seed)
        layers |= {f"{name}.{key}": value for key, value in module.state_dict().items()}
        outputs[name] = torch.from_numpy(models.result(name, module, given_input(name)))
    save_file(layers, HERE / "torch_layers.safetensors")
    resnet, bert = models.resnet(), models.bert()
    save_file(resnet.state_dict(), HERE / "torch_resnet50.safetensors")
    save_file(bert.state_dict(), HERE / "torch_bert.safetensors")
    outputs["resnet50"] = torch.from_numpy(models.resnet_outputs(resnet, images()))
    hidden, pooled = models.bert_outputs(bert, *sentences())
    outputs |= {"bert": torch.from_numpy(hidden), "bert pooled": torch.from_numpy(pooled)}
    save_file({k: v.contiguous() for k, v in outputs.items()}, HERE / "torch_outputs.safetensors")


if __name__ == "__main__":
    main()
