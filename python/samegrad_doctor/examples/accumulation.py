"""Gradient accumulation in PyTorch: means of micro-batches, and the count of the whole window.

Run it with `python accumulation.py`. It needs PyTorch.
"""

import torch
from samegrad_doctor import diagnose
from samegrad_doctor.adapters import torch_step
from torch.nn import functional

PADDING = -100


def token_losses(model, batch):
    tokens, labels = batch
    logits = model(tokens).flatten(0, 1)
    return functional.cross_entropy(
        logits, labels.flatten(), ignore_index=PADDING, reduction="sum"
    ), (labels != PADDING).sum()


def mean_of_means(model, micro_batches):
    """Divide each micro-batch by its own tokens: short ones count too much."""
    for micro_batch in micro_batches:
        loss, tokens = token_losses(model, micro_batch)
        (loss / tokens / len(micro_batches)).backward()


def one_mean(model, micro_batches):
    """Count the tokens of the whole window first."""
    count = sum((labels != PADDING).sum() for _, labels in micro_batches)
    for micro_batch in micro_batches:
        loss, _ = token_losses(model, micro_batch)
        (loss / count).backward()


def window(run):
    """Give `run` a list, also where there is one micro-batch."""
    return lambda model, share: run(model, share if isinstance(share, list) else [share])


def main():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
    lengths = torch.tensor([3, 7, 1, 5, 2, 6, 4, 1, 7, 3, 5, 2])
    labels = torch.randint(4, (12, 7))
    labels[torch.arange(7) >= lengths[:, None]] = PADDING
    batch = torch.randn(12, 7, 8), labels
    for run in (mean_of_means, one_mean):
        step = torch_step(model, window(run), whole_shard=True)
        found = diagnose(
            step, batch, weights=lengths.tolist(), replicas=(1,), micro_batches=(1, 2, 3)
        )
        print(f"{run.__name__}: {found}\n")


if __name__ == "__main__":
    main()
