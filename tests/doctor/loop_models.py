"""Programs of Lightning, Accelerate and transformers that processes import. Needs PyTorch."""

from __future__ import annotations

import contextlib
import time

import torch
from ddp_models import Network, losses, summed
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

with contextlib.suppress(ImportError):
    from lightning.pytorch import LightningModule

    class Module(LightningModule):
        def __init__(self, right: bool, sync: bool = True) -> None:
            super().__init__()
            self.network, self.right, self.sync = Network(), right, sync

        def training_step(self, batch, _):
            own = losses(self.network, batch)
            loss = own.mean()
            if self.right:  # DistributedDataParallel averages the ranks
                loss = own.sum() * self.trainer.world_size / summed(len(own))
            self.log("loss", loss, sync_dist=self.sync, on_step=True)
            return loss

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.01)


def lightning_mean():
    return Module(right=False)


def lightning_right():
    return Module(right=True)


def train(accelerator, model, optimizer, batches):
    """The loop of Accelerate's manual: means of micro-batches."""
    for batch in batches:
        with accelerator.accumulate(model):
            accelerator.backward(losses(model, batch).mean())
            optimizer.step()
            optimizer.zero_grad()


def train_right(accelerator, model, optimizer, batches):
    """By the count of the whole window; what `backward` and the ranks' mean divide is undone."""
    count = accelerator.reduce(torch.tensor(float(sum(len(batch[0]) for batch in batches))))
    times = accelerator.num_processes * accelerator.gradient_accumulation_steps
    for batch in batches:
        with accelerator.accumulate(model):
            accelerator.backward(losses(model, batch).sum() * times / count)
            optimizer.step()
            optimizer.zero_grad()


def train_clipped(accelerator, model, optimizer, batches):
    """A limit that every micro-batch meets by itself."""
    for batch in batches:
        with accelerator.accumulate(model):
            accelerator.backward(losses(model, batch).mean())
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.05)
            optimizer.step()
            optimizer.zero_grad()


def with_adam(loop):
    model = Network()
    return model, torch.optim.Adam(model.parameters()), loop


def accelerate_mean():
    return with_adam(train)


def accelerate_right():
    return with_adam(train_right)


def accelerate_clipped():
    return with_adam(train_clipped)


def own_loop(updates: int = 1):
    """A loop that wraps, clips and steps by itself."""
    model = Network()

    def run(network, batches):
        parallel = DistributedDataParallel(network)
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
        count = summed(sum(len(batch[0]) for batch in batches))
        for place, batch in enumerate(batches):
            last = place == len(batches) - 1
            with contextlib.nullcontext() if last else parallel.no_sync():
                loss = losses(parallel, batch).sum() * distributed.get_world_size() / count
                loss.backward()
        for _ in range(updates):
            optimizer.step()

    return model, run


def no_update():
    return own_loop(0)


def two_updates():
    return own_loop(2)


class Pairs(torch.nn.Module):
    """A module as transformers' Trainer takes it."""

    def __init__(self) -> None:
        super().__init__()
        self.network = Network()

    def forward(self, x, y, num_items_in_batch=None):
        return {"loss": losses(self.network, (x, y)).mean()}


def transformers_mean():
    """transformers' Trainer on batches that are distributed already."""
    import tempfile

    from transformers import Trainer, TrainingArguments

    def run(model, batches):
        class Given(Trainer):
            def get_train_dataloader(self):
                pairs = [{"x": batch[0], "y": batch[1]} for batch in batches]
                return torch.utils.data.DataLoader(pairs, batch_size=None)

        options = TrainingArguments(
            tempfile.mkdtemp(), use_cpu=True, max_steps=1, report_to=[], save_strategy="no",
            gradient_accumulation_steps=len(batches), disable_tqdm=True, logging_strategy="no",
            max_grad_norm=0.0,
        )  # fmt: skip
        Given(model, options, train_dataset=[0]).train()

    return Pairs(), run


def fails():
    raise ValueError("this module cannot be built")


def waits():
    time.sleep(60)
