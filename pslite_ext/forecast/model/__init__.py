"""Predicts a training iteration from layer times, tensor sizes and the bandwidth.

>>> job = Job((Layer("conv", 1e6, 0.01, 0.005), Layer("fc", 4e6, 0.002, 0.001)))
>>> predict(job, 125e6, "mercury").speed > predict(job, 125e6, "wfbp").speed
True
"""

from pslite_ext.forecast.model.job import Job, Layer, ModelError
from pslite_ext.forecast.model.options import Options
from pslite_ext.forecast.model.predict import POLICIES, model_name, predict
from pslite_ext.forecast.model.sweep import Sweep, required_bandwidth, sweep
from pslite_ext.forecast.model.timeline import Timeline

__all__ = [
    "POLICIES",
    "Job",
    "Layer",
    "ModelError",
    "Options",
    "Sweep",
    "Timeline",
    "model_name",
    "predict",
    "required_bandwidth",
    "sweep",
]
