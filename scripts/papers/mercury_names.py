"""What Mercury's figures are about: benches, systems, models."""

from __future__ import annotations

from scripts.lab.benches.mercury_paper import MODELS, TUNED, nodes

BENCH = "mercury_paper"
OURS, FIFO, WFBP = "mercury-mercury", "mercury-fifo", "mercury-wfbp"
SCHEDULER = "mercury-bytescheduler"
SCHEDULERS = (SCHEDULER, f"{SCHEDULER} {TUNED}")
GBIT = 1e9 / 8
NODES = {model: nodes(model, "usual") for model in MODELS}
SHARING = {"stock": "stock", "WFBP": WFBP, "without preemption": FIFO, "Mercury": OURS}
