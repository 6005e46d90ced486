"""The models' tensors: the tables of `tracer.model`, for a Python that has no tracer installed."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from tracer.model.architectures import ARCHITECTURES

__all__ = ["ARCHITECTURES"]
