"""What Mercury's figures are about: benches, systems, models."""

from __future__ import annotations

BENCH = "mercury_paper"
OURS, FIFO, WFBP = "mercury-mercury", "mercury-fifo", "mercury-wfbp"
SCHEDULER = "mercury-bytescheduler"
GBIT = 1e9 / 8
NODES = {"vgg16": (2, 3, 4), "resnet50": (2, 4), "bert_base": (2, 4)}
SHARING = {"stock": "stock", "WFBP": WFBP, "without preemption": FIFO, "Mercury": OURS}
