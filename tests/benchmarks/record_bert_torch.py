"""Records a BERT-size block of PyTorch in float64: `python record_bert_torch.py FILE.npz`.

Run it where PyTorch is installed; test_bert_block.py compares with the recorded file. The model of
the benchmark is first compared with PyTorch's own layer.
"""

from __future__ import annotations

import sys
from typing import Any

import bert_cases as cases
import numpy as np
import torch
from torch_bert import EPSILON, block_model

_NAMES = ("query", "key", "value")


def state_of(w: dict[str, np.ndarray]) -> dict[str, Any]:
    """The weights under PyTorch's names and in its shapes."""
    width = cases.BERT.width
    kernels = [w[f"attend/{name}/kernel"].reshape(width, width).T for name in _NAMES]
    biases = [w[f"attend/{name}/bias"].reshape(width) for name in _NAMES]
    found = {"project.weight": np.concatenate(kernels), "project.bias": np.concatenate(biases)}
    found["out.weight"] = w["attend/output/kernel"].reshape(width, width).T
    found["out.bias"] = w["attend/output/bias"]
    for name in ("rise", "fall", "tags"):
        found[f"{name}.weight"], found[f"{name}.bias"] = w[f"{name}/kernel"].T, w[f"{name}/bias"]
    for name in ("norm1", "norm2"):
        found[f"{name}.weight"], found[f"{name}.bias"] = w[f"{name}/gamma"], w[f"{name}/beta"]
    return {name: torch.tensor(np.ascontiguousarray(value)) for name, value in found.items()}


def gradients_of(model: Any) -> dict[str, np.ndarray]:
    """The gradients under the names of `weights`, in Keras's shapes."""
    grads = {name: p.grad.numpy() for name, p in model.named_parameters()}
    found = {}
    shapes = {name: value.shape for name, value in cases.weights().items()}
    for place, name in enumerate(_NAMES):
        rows = slice(place * cases.BERT.width, (place + 1) * cases.BERT.width)
        found[f"attend/{name}/kernel"] = grads["project.weight"][rows].T
        found[f"attend/{name}/bias"] = grads["project.bias"][rows]
    names = {"attend/output": "out", **{name: name for name in ("rise", "fall", "tags")}}
    for ours, theirs in names.items():
        found[f"{ours}/kernel"] = grads[f"{theirs}.weight"].T
        found[f"{ours}/bias"] = grads[f"{theirs}.bias"]
    for name in ("norm1", "norm2"):
        found[f"{name}/gamma"], found[f"{name}/beta"] = (
            grads[f"{name}.weight"], grads[f"{name}.bias"],
        )  # fmt: skip
    return {name: found[name].reshape(shape) for name, shape in shapes.items()}


def check(model: Any, x: Any, real: Any, logits: Any) -> None:
    """The model of the benchmark is PyTorch's own layer, its inner dropout aside."""
    state, sizes = model.state_dict(), cases.SIZES
    layer = torch.nn.TransformerEncoderLayer(
        sizes.width, sizes.heads, sizes.hidden, 0.0, "gelu", EPSILON, True, dtype=torch.float64
    )
    names = {"self_attn.in_proj_": "project.", "self_attn.out_proj.": "out.", "linear1.": "rise."}
    names |= {"linear2.": "fall.", "norm1.": "norm1.", "norm2.": "norm2."}
    kinds = ("weight", "bias")
    layer.load_state_dict({a + kind: state[b + kind] for a, b in names.items() for kind in kinds})
    own = model.tags(layer(x, src_key_padding_mask=~real))
    torch.testing.assert_close(own[real], logits[real], rtol=1e-11, atol=1e-12)


def results() -> dict[str, np.ndarray]:
    """Logits, losses and gradients (see bert_cases.results)."""
    model = block_model(torch, cases.SIZES).double()
    model.load_state_dict(state_of(cases.weights()))
    x, labels = map(torch.tensor, cases.sentences())
    optimizer = torch.optim.SGD(model.parameters(), cases.RATE)
    losses, kept = [], []
    for _ in range(cases.STEPS):
        optimizer.zero_grad()
        logits = model(x, labels != 0)
        targets = labels.long().reshape(-1) - 1
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets, ignore_index=-1)
        loss.backward()
        if not losses:
            check(model, x, labels != 0, logits)
            kept = [logits.detach().numpy(), gradients_of(model)]
        losses.append(loss.item())
        optimizer.step()
    return cases.results(kept[0], losses, kept[1])


if __name__ == "__main__":
    np.savez_compressed(sys.argv[1], **results())
