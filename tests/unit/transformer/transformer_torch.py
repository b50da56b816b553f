"""The same Transformers made of PyTorch's own modules, in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import transformer_cases as cases
from torch import nn
from torch.func import functional_call

Results = dict[str, np.ndarray]
_D = cases.WIDTH


def _attention_weights(name: str, to: str, w: dict[str, Any]) -> dict[str, Any]:
    """Those of nn.MultiheadAttention."""
    parts = ("query", "key", "value")
    kernels = [w[f"{name}/{part}/kernel"].reshape(_D, _D).T for part in parts]
    biases = [w[f"{name}/{part}/bias"].reshape(_D) for part in parts]
    return {
        f"{to}.in_proj_weight": torch.cat(kernels),
        f"{to}.in_proj_bias": torch.cat(biases),
        f"{to}.out_proj.weight": w[f"{name}/attention_output/kernel"].reshape(_D, _D).T,
        f"{to}.out_proj.bias": w[f"{name}/attention_output/bias"],
    }


def _block_weights(w: dict[str, Any]) -> dict[str, Any]:
    """Those of nn.TransformerEncoderLayer or nn.TransformerDecoderLayer."""
    found = _attention_weights("own", "self_attn", w)
    norms = ["own_norm", "feed_norm"]
    if "cross/query/kernel" in w:
        found |= _attention_weights("cross", "multihead_attn", w)
        norms.insert(1, "cross_norm")
    for number, ours in enumerate(norms, 1):
        found[f"norm{number}.weight"] = w[f"{ours}/gamma"]
        found[f"norm{number}.bias"] = w[f"{ours}/beta"]
    for number, ours in ((1, "rise"), (2, "fall")):
        found[f"linear{number}.weight"] = w[f"{ours}/kernel"].T
        found[f"linear{number}.bias"] = w[f"{ours}/bias"]
    return found


def _run_block(
    w: dict[str, Any], before: bool, x: Any, memory: Any = None, padding: Any = None
) -> Any:
    kind = nn.TransformerEncoderLayer if memory is None else nn.TransformerDecoderLayer
    module = kind(
        _D, cases.HEADS, cases.HIDDEN, 0.0, layer_norm_eps=cases.EPSILON, batch_first=True,
        norm_first=before, dtype=torch.float64,
    )  # fmt: skip
    if memory is None:
        options = {"src_key_padding_mask": padding}
        return functional_call(module, _block_weights(w), (x,), options)
    mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], dtype=torch.float64)
    options = {"tgt_mask": mask, "memory_key_padding_mask": padding}
    return functional_call(module, _block_weights(w), (x, memory), options)


def _attend(w: dict[str, Any], x: Any, padding: Any = None, mask: Any = None) -> Any:
    module = nn.MultiheadAttention(_D, cases.HEADS, batch_first=True, dtype=torch.float64)
    given = {name[5:]: value for name, value in _attention_weights("own", "self", w).items()}
    options = {"key_padding_mask": padding, "attn_mask": mask, "need_weights": False}
    return functional_call(module, given, (x, x, x), options)[0]


def _run_part(part: str, w: dict[str, Any], source: Any, target: Any) -> Any:
    padding = torch.tensor(cases.SOURCE == 0)
    if part == "attention with padding":
        return _attend(w, source, padding)
    if part == "causal attention":
        length = target.shape[1]
        return _attend(w, target, mask=torch.ones(length, length).triu(1).bool())
    if part == "normalization":
        return nn.functional.layer_norm(
            source, (_D,), w["own_norm/gamma"], w["own_norm/beta"], cases.EPSILON
        )
    if part == "feed-forward":
        hidden = torch.relu(source @ w["rise/kernel"] + w["rise/bias"])
        return hidden @ w["fall/kernel"] + w["fall/bias"]
    before = part.endswith("pre")
    if part.startswith("encoder"):
        return _run_block(w, before, source, padding=padding)
    return _run_block(w, before, target, source, padding)


def _leaves(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: torch.tensor(a, requires_grad=True) for name, a in arrays.items()}


def part_results(part: str) -> Results:
    """The output of a part, and the gradients of its sum with weights by all that goes in."""
    given = dict(zip(("source", "target"), cases.inputs(), strict=True))
    leaves = _leaves(cases.weights_of(cases.part_shapes(part)) | given)
    output = _run_part(part, leaves, leaves["source"], leaves["target"])
    (output * torch.tensor(cases.numbers(tuple(output.shape), 200))).sum().backward()
    found = {name: leaf.grad.numpy() for name, leaf in leaves.items() if leaf.grad is not None}
    return {"output": output.detach().numpy(), **found}


def _waves(length: int) -> Any:
    places = torch.arange(length, dtype=torch.float64)[:, None]
    rates = torch.exp(torch.arange(0, _D, 2, dtype=torch.float64) * (-math.log(10000.0) / _D))
    waves = torch.zeros(length, _D, dtype=torch.float64)
    waves[:, 0::2], waves[:, 1::2] = torch.sin(places * rates), torch.cos(places * rates)
    return waves


def _embed(table: Any, tokens: np.ndarray) -> Any:
    found = nn.functional.embedding(torch.tensor(tokens), table) * math.sqrt(_D)
    return found + _waves(tokens.shape[1])


def _block_of(w: dict[str, Any], name: str) -> dict[str, Any]:
    return {key.removeprefix(name): value for key, value in w.items() if key.startswith(name)}


def _logits(w: dict[str, Any], before: bool, shared: bool, source: Any, target: Any) -> Any:
    tables = ["table"] * 2 if shared else ["source_table", "target_table"]
    padding = torch.tensor(source == 0)
    memory = _embed(w[f"{tables[0]}/embeddings"], source)
    for i in range(cases.LAYERS):
        memory = _run_block(_block_of(w, f"encoder_{i}/"), before, memory, padding=padding)
    x = _embed(w[f"{tables[1]}/embeddings"], target)

    def normed(name: str, x: Any) -> Any:
        gamma, beta = w[f"{name}/gamma"], w[f"{name}/beta"]
        return nn.functional.layer_norm(x, (_D,), gamma, beta, cases.EPSILON)

    if before:
        memory = normed("encoder_norm", memory)
    for i in range(cases.LAYERS):
        x = _run_block(_block_of(w, f"decoder_{i}/"), before, x, memory, padding)
    if before:
        x = normed("decoder_norm", x)
    if shared:
        return x @ w["table/embeddings"].T
    return x @ w["logits/kernel"] + w["logits/bias"]


def model_results(name: str) -> Results:
    """Logits, the mean loss of the real tokens, and its gradients by all weights."""
    before, shared = cases.MODELS[name]
    leaves = _leaves(cases.weights_of(cases.model_shapes(before, shared)))
    logits = _logits(leaves, before, shared, cases.SOURCE, cases.TARGET[:, :-1])
    labels = torch.tensor(cases.TARGET[:, 1:])
    confidence, low = 1 - cases.SMOOTHING, cases.SMOOTHING / (cases.TOKENS - 1)
    targets = torch.full(logits.shape, low, dtype=torch.float64)
    targets.scatter_(2, labels[..., None], confidence)
    each = nn.functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(0, 1), reduction="none"
    )
    least = confidence * math.log(confidence) + cases.SMOOTHING * math.log(low + 1e-20)
    loss = (each + least)[labels.flatten() != 0].mean()
    loss.backward()
    gradients = {name: leaf.grad.numpy() for name, leaf in leaves.items()}
    return {"logits": logits.detach().numpy(), "loss": loss.detach().numpy(), **gradients}


def all_results() -> Results:
    """Of all parts and models, under `name: weight`."""
    parts = {part: part_results(part) for part in cases.PARTS}
    models = {f"model {name}": model_results(name) for name in cases.MODELS}
    return {
        f"{case}: {name}": value
        for case, results in (parts | models).items()
        for name, value in results.items()
    }
