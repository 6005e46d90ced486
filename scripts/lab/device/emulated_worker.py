"""torch_worker.py's emulated model, whose gradients go through an emulated device's copies.

LAB_COPIES is the bytes a second of each way, LAB_CHUNK how many of them are copied at a time.
"""

import os
from unittest.mock import patch

import pslite_ext.torch as mercury

# isort: split
from pslite_ext.torch import staging
from scripts.lab.device.emulated import EmulatedCopies
from scripts.lab.systems import torch_worker
from scripts.lab.systems.rendezvous import place

if __name__ == "__main__":
    rank, workers, _ = place()
    staging.CHUNK_BYTES = int(os.environ.get("LAB_CHUNK", staging.CHUNK_BYTES))
    staged = staging.Staged(EmulatedCopies(float(os.environ["LAB_COPIES"])))
    with patch("pslite_ext.torch.training.sender_from", lambda _device: staged):
        torch_worker.measure(rank, workers, mercury.wrap)
