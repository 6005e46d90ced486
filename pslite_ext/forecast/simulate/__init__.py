"""Simulates training iterations packet by packet, where the model's formulas do not reach.

>>> from pslite_ext.forecast.model import Job, Layer
>>> job = Job((Layer("conv", 1e6, 0.01, 0.005), Layer("fc", 4e6, 0.002, 0.001)))
>>> cluster = Cluster.even(workers=4, servers=4, bandwidth=125e6)
>>> result = simulate(SimulatedJob(job, "mercury"), cluster)
>>> result.outcomes[0].iteration_s.shape
(1, 4)
"""

from pslite_ext.forecast.simulate.cluster import Cluster
from pslite_ext.forecast.simulate.simulated_job import SimulatedJob
from pslite_ext.forecast.simulate.simulation import LinkUse, Outcome, Simulation, simulate

__all__ = ["Cluster", "LinkUse", "Outcome", "SimulatedJob", "Simulation", "simulate"]
