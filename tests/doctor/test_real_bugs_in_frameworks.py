"""Some of the real bugs in the frameworks that they were made in."""

from __future__ import annotations

import numpy as np
import pytest
from real_bugs.model import SEQUENCES, X, Y

from samegrad_doctor import diagnose
from samegrad_doctor.adapters import jax_step, torch_step

X32, Y32 = X.astype(np.float32), Y.astype(np.float32)
TOKENS = SEQUENCES[0].astype(np.float32)
LABELS = np.where(SEQUENCES[2], (SEQUENCES[1][..., 0] > 0).astype(np.int64), -100)


@pytest.fixture
def torch():
    module = pytest.importorskip("torch", reason="PyTorch is not installed")
    module.manual_seed(0)
    return module


@pytest.fixture
def jax():
    return pytest.importorskip("jax", reason="JAX is not installed")


def squared(torch):
    return lambda model, batch: torch.nn.functional.mse_loss(model(batch[0]), batch[1])


def test_batch_normalization_of_each_rank_is_named(torch) -> None:
    """pytorch/pytorch#2584."""
    model = torch.nn.Sequential(
        torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Tanh(), torch.nn.Linear(8, 2)
    )
    found = diagnose(torch_step(model, squared(torch)), (X32, Y32))
    assert found.cause.name == "batch statistics are not synchronised", str(found)


def test_dropout_with_one_seed_is_named(torch) -> None:
    """huggingface/transformers#31412."""
    model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Dropout(0.5),
                                torch.nn.Tanh(), torch.nn.Linear(16, 2))  # fmt: skip

    def loss(module, batch):
        torch.manual_seed(42)
        return squared(torch)(module, batch)

    found = diagnose(torch_step(model, loss), (X32, Y32))
    assert found.cause.name == "dropout or noise is equal on all replicas", str(found)


def test_ignored_labels_of_each_rank_are_named(torch) -> None:
    """huggingface/transformers#34242."""
    model = torch.nn.Linear(6, 2)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))

    def loss(module, batch):
        logits = module(batch[0]).flatten(0, 1)
        return torch.nn.functional.cross_entropy(logits, batch[1].flatten(), ignore_index=-100)

    counts = (LABELS >= 0).sum(axis=1)
    found = diagnose(torch_step(model, loss), (TOKENS, LABELS), weights=counts)
    assert found.cause.name == "mean of the replicas' means", str(found)


def test_a_loss_times_world_size_is_named(torch) -> None:
    """neuralmagic/sparseml#135: the same as a sum of means."""
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    step = torch_step(model, squared(torch), reduce="sum", reported=True)
    found = diagnose(step, (X32, Y32))
    assert found.cause.name == "mean per replica, then sum", str(found)
    assert "mean per replica, then sum" in found.reported_loss_issue


def test_clipping_on_each_rank_is_named(torch) -> None:
    """tensorflow/tensorflow#25806, as PyTorch would write it."""
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))

    def step(shares):
        ranks = []
        for x, y in shares:
            model.zero_grad()
            squared(torch)(model, (torch.as_tensor(x), torch.as_tensor(y))).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            ranks.append([p.grad.numpy().copy() for p in model.parameters()])
        return [np.mean(parts, axis=0) for parts in zip(*ranks, strict=True)]

    found = diagnose(step, (X32, Y32))
    assert found.cause.name == "gradients are clipped before the all-reduce", str(found)


def parameters():
    rng = np.random.default_rng(1)
    return {"w": rng.normal(size=(6, 8)).astype(np.float32),
            "v": rng.normal(size=(8, 2)).astype(np.float32)}  # fmt: skip


def test_a_pmean_of_masked_losses_is_named(jax) -> None:
    """huggingface/transformers#19494."""
    import jax.numpy as jnp

    def loss(p, batch):
        x, y, mask = batch
        each = jnp.square(jnp.tanh(x @ p["w"]) @ p["v"] - y).sum(axis=-1)
        return (each * mask).sum() / mask.sum()

    def pmean(grads):
        return jax.tree_util.tree_map(lambda *g: sum(g) / len(g), *grads)

    batch = tuple(leaf.astype(np.float32) for leaf in SEQUENCES)
    step = jax_step(jax.grad(loss), parameters(), pmean)
    found = diagnose(step, batch, weights=SEQUENCES[2].sum(axis=1))
    assert found.cause.name == "mean of the replicas' means", str(found)


def test_the_gradient_of_a_summed_loss_is_named(jax) -> None:
    """jax-ml/jax#3970: each device differentiates the psum of all losses, and psum adds them."""
    import jax.numpy as jnp

    def loss(p, shares):
        rows = sum(len(x) for x, _ in shares)
        return sum(jnp.square(jnp.tanh(x @ p["w"]) @ p["v"] - y).sum() for x, y in shares) / rows

    def step(shares):
        grads = [jax.grad(loss)(parameters(), shares) for _ in shares]
        return jax.tree_util.tree_leaves(jax.tree_util.tree_map(lambda *g: sum(g), *grads))

    found = diagnose(step, (X32, Y32))
    assert found.cause.name == "multiplied by the replicas", str(found)
