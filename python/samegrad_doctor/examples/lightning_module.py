"""A LightningModule with the "ddp" strategy, and the check of its training step.

Run it with `python lightning_module.py`. It needs PyTorch and Lightning.
"""

import torch
from lightning.pytorch import LightningModule
from samegrad_doctor import diagnose
from samegrad_doctor.adapters import lightning_step
from torch.nn import functional


class Classifier(LightningModule):
    def __init__(self):
        super().__init__()
        self.network = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3)
        )

    def training_step(self, batch, batch_index):
        features, labels = batch
        loss = functional.cross_entropy(self.network(features), labels)
        self.log("loss", loss, sync_dist=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main():
    torch.manual_seed(0)
    batch = torch.randn(12, 8), torch.randint(3, (12,))
    print(diagnose(lightning_step(Classifier, report="loss"), batch))


if __name__ == "__main__":
    main()
