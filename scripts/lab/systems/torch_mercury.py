"""A worker of pslite_ext.torch: torch_worker.py's loop, with `mercury.wrap` in DDP's place.

Servers and the scheduler run this as far as the first import.
"""

import pslite_ext.torch as mercury

# isort: split
from scripts.lab.systems import torch_worker
from scripts.lab.systems.rendezvous import place

if __name__ == "__main__":
    rank, workers, _ = place()
    torch_worker.measure(rank, workers, mercury.wrap)
