"""Lightning over mercury: a small network learns to tell how many ones a row of bits has.

torchrun --nproc-per-node 2 examples/torch_lightning.py
"""

# First: a server or scheduler that runs this script gets no further, and needs no PyTorch.
import pslite_ext.torch  # noqa: F401 (it brings the backend)

# isort: split
import argparse
import hashlib
import os

import pytorch_lightning as lightning
import torch
from pytorch_lightning.strategies import DDPStrategy
from torch import nn

BITS, ROWS = 8, 512


class Counter(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(BITS, 64), nn.ReLU(), nn.Linear(64, BITS + 1))

    def training_step(self, batch: list[torch.Tensor], _number: int) -> torch.Tensor:
        bits, ones = batch
        loss = nn.functional.cross_entropy(self.layers(bits), ones)
        self.log("loss", loss, sync_dist=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=1e-2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=32, help="of each worker")
    parser.add_argument("--backend", default="mercury", help="gloo, to compare")
    options = parser.parse_args()

    torch.manual_seed(1)
    bits = torch.randint(2, (ROWS, BITS))
    data = torch.utils.data.TensorDataset(bits.float(), bits.sum(1))
    model = Counter()
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=int(os.environ["LOCAL_WORLD_SIZE"]),
        num_nodes=int(os.environ["GROUP_WORLD_SIZE"]),
        strategy=DDPStrategy(process_group_backend=options.backend),  # all that mercury needs
        max_epochs=options.epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, torch.utils.data.DataLoader(data, options.batch_size))
    print(f"loss {trainer.callback_metrics['loss']:.4f}")
    weights = nn.utils.parameters_to_vector(model.parameters()).detach().numpy()
    print("weights", hashlib.sha256(weights.tobytes()).hexdigest()[:16], flush=True)


if __name__ == "__main__":
    main()
