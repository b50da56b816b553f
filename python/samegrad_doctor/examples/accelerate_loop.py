"""A loop with Accelerate: means of micro-batches, and the count of the whole window of all ranks.

Run it with `python accelerate_loop.py`. It needs PyTorch and Accelerate.
"""

import torch
from samegrad_doctor import diagnose
from samegrad_doctor.adapters import accelerate_step
from torch.nn import functional


def train_on_means(accelerator, model, optimizer, micro_batches):
    """Run the loop of Accelerate's guide."""
    for features, labels in micro_batches:
        with accelerator.accumulate(model):
            accelerator.backward(functional.cross_entropy(model(features), labels))
            optimizer.step()
            optimizer.zero_grad()


def train_on_the_count(accelerator, model, optimizer, micro_batches):
    """Divide by the examples of all ranks, and undo the divisions of Accelerate and DDP."""
    count = torch.tensor(float(sum(len(labels) for _, labels in micro_batches)))
    count = accelerator.reduce(count)
    scale = accelerator.num_processes * accelerator.gradient_accumulation_steps / count
    for features, labels in micro_batches:
        with accelerator.accumulate(model):
            loss = functional.cross_entropy(model(features), labels, reduction="sum")
            accelerator.backward(loss * scale)
            optimizer.step()
            optimizer.zero_grad()


def build_with(train):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
    return model, torch.optim.SGD(model.parameters(), lr=0.1), train


def build_means():
    return build_with(train_on_means)


def build_count():
    return build_with(train_on_the_count)


def main():
    torch.manual_seed(0)
    batch = torch.randn(12, 8), torch.randint(3, (12,))
    for build in (build_means, build_count):
        found = diagnose(accelerate_step(build), batch, micro_batches=(1, 2))
        print(f"{build.__name__}: {found}\n")


if __name__ == "__main__":
    main()
