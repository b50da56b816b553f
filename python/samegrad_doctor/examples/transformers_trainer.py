"""The Trainer of transformers with gradient accumulation, and the check of its update.

Run it with `python transformers_trainer.py`. It needs PyTorch, transformers and Accelerate.
"""

import tempfile

import torch
from samegrad_doctor import diagnose
from samegrad_doctor.adapters import loop_step
from torch.nn import functional
from transformers import PrinterCallback, Trainer, TrainingArguments


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.network = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3)
        )

    def forward(self, features, labels):
        return {"loss": functional.cross_entropy(self.network(features), labels)}


class GivenBatches(Trainer):
    """A Trainer whose loader returns the micro-batches of this rank."""

    def __init__(self, micro_batches, **options):
        super().__init__(**options, train_dataset=[0])
        self.micro_batches = micro_batches

    def get_train_dataloader(self):
        batches = [{"features": x, "labels": y} for x, y in self.micro_batches]
        return torch.utils.data.DataLoader(batches, batch_size=None)


def train(model, micro_batches):
    """Update once."""
    arguments = TrainingArguments(
        tempfile.mkdtemp(),
        use_cpu=True,
        max_steps=1,
        max_grad_norm=0.0,
        gradient_accumulation_steps=len(micro_batches),
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
    )
    trainer = GivenBatches(micro_batches, model=model, args=arguments)
    trainer.remove_callback(PrinterCallback)
    trainer.train()


def build():
    return Classifier(), train


def main():
    torch.manual_seed(0)
    batch = torch.randn(12, 8), torch.randint(3, (12,))
    print(diagnose(loop_step(build), batch, micro_batches=(1, 2)))


if __name__ == "__main__":
    main()
