"""worker.py's loop, with `mercury.wrap` in DDP's place; servers run this as far as the import."""

import pslite_ext.torch as mercury

# isort: split
from scripts.lab.device import worker
from scripts.lab.systems.rendezvous import place

if __name__ == "__main__":
    worker.train(place()[0], mercury.wrap)
