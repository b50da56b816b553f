"""A training script with DistributedDataParallel, and the check of its step.

`torchrun --nproc-per-node 2 main_script.py` trains; `python main_script.py --check` checks the step
with processes of its own. It needs PyTorch.
"""

import sys

import torch
from samegrad_doctor import diagnose
from samegrad_doctor.adapters import ddp_step
from torch import distributed
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def make_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))


def make_dataset():
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(256, 8, generator=generator)
    return TensorDataset(features, torch.randint(3, (256,), generator=generator))


def compute_loss(model, batch):
    features, labels = batch
    return functional.cross_entropy(model(features), labels)


def build():
    """Return what the doctor's processes run: the model and its loss."""
    return make_model(), compute_loss


def main():
    if "--check" in sys.argv:
        print(diagnose(ddp_step(build), make_dataset()[:12]))
        return
    distributed.init_process_group("gloo")
    dataset = make_dataset()
    loader = DataLoader(dataset, batch_size=32, sampler=DistributedSampler(dataset))
    model = DistributedDataParallel(make_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in loader:
        optimizer.zero_grad()
        compute_loss(model, batch).backward()
        optimizer.step()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
