"""What the model and the simulator promise, measured; and the papers' figures beside ours.

    python -m scripts.bench_model [--json] [--quick | --far]

Needs nothing but NumPy. Exits with 1 if a promise is broken. Times are of the
processor, for the machine may be busy with something else.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from pslite_ext.forecast.model import POLICIES, Job, Layer, predict, required_bandwidth, sweep
from pslite_ext.forecast.model.papers import GBIT, MEASURED, ORDERS, predicted, wrong_orders
from pslite_ext.forecast.model.zoo import known_job
from pslite_ext.forecast.simulate import Cluster, SimulatedJob, simulate
from pslite_ext.forecast.simulate.our_links import mercury_cluster
from scripts.lab.benches.case import TCP_SHARE
from tracer.output import print_json
from tracer.table import Table

# Larger than any lab: nodes of each kind, their links in Gbit/s, and how late processes react that
# have a processor each.
FAR_NODES, FAR_GBIT = 64, (10, 25, 100)
FAR_LATENCY_S, FAR_REACTION_S = 20e-6, 30e-6

SWEEP_S, SIMULATION_S, MEMORY_GB = 5.0, 60.0, 4.0


def sweeps() -> list[dict[str, Any]]:
    """1000 layers at 1000 bandwidths, each policy."""
    random = np.random.default_rng(1)
    job = Job(
        tuple(
            Layer(f"layer{i}", *map(float, random.exponential((1e6, 1e-3, 5e-4))))
            for i in range(1000)
        )
    )
    rates = np.geomspace(0.05e9, 5e9, 1000)
    found = []
    for policy in POLICIES:
        begin = time.process_time()
        sweep(job, rates, [policy])
        found.append({"policy": policy, "seconds": time.process_time() - begin})
    return found


def simulations(most: int) -> list[dict[str, Any]]:
    """ResNet-50's 161 tensors, as many servers as workers, packets of 256 kB."""
    job = known_job("resnet50")
    found = []
    for workers in (64, 256, 1024):
        if workers > most:
            break
        begin = time.process_time()
        done = simulate(
            SimulatedJob(job), Cluster.even(workers, workers, 1.25e9, packet_bytes=256e3)
        )
        took = time.process_time() - begin
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        found.append(
            {
                "workers": workers,
                "servers": workers,
                "tensors": len(job),
                "events": done.events,
                "seconds": took,
                "us_per_event": took / done.events * 1e6,
                "memory_gb": memory,
            }
        )
    return found


def far() -> Iterator[dict[str, Any]]:
    """How near to the floor jobs come that nobody has run yet."""
    for model in ("vgg16", "resnet50", "bert_base"):
        job = known_job(model)
        for gbit in FAR_GBIT:
            for beside in (False, True):
                bandwidth = gbit * 1e9 / 8 * TCP_SHARE
                load = 2 * (FAR_NODES - 1) / FAR_NODES if beside else 1.0
                floor = predict(job, bandwidth / load, "mercury").iteration_s
                cluster = mercury_cluster(
                    FAR_NODES,
                    FAR_NODES,
                    bandwidth,
                    latency_s=FAR_LATENCY_S,
                    reaction_s=FAR_REACTION_S,
                    beside=beside,
                )
                took = float(simulate(SimulatedJob(job), cluster).outcomes[0].iteration_s.max())
                yield {
                    "model": model,
                    "gbit_per_s": gbit,
                    "servers": "beside" if beside else "own hosts",
                    "computation_s": job.compute_s,
                    "floor_s": floor,
                    "simulated_s": took,
                    "ratio": took / floor,
                }


def vgg() -> list[dict[str, Any]]:
    """The running example of Mercury's paper, at 10 Gbit/s."""
    job = known_job("vgg16")
    found = []
    for policy in POLICIES:
        line = predict(job, 1.25e9, policy)
        found.append(
            {
                "policy": policy,
                "iteration_s": line.iteration_s,
                "speed": line.speed,
                "required_gbit_per_s": required_bandwidth(job, policy) * 8 / 1e9,
            }
        )
    return found


def prophet() -> list[dict[str, Any]]:
    ours = predicted()
    return [
        {
            "gbit_per_s": rate,
            **{f"{policy}_paper": MEASURED[policy][row] for policy in ORDERS},
            **{f"{policy}_ours": ours[policy][row] for policy in ORDERS},
        }
        for row, rate in enumerate(GBIT)
    ]


def show(title: str, rows: list[dict[str, Any]]) -> None:
    print(Table.of_rows(title, rows).text() + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--quick", action="store_true", help="simulate 256 workers at most")
    where = f"{FAR_NODES} x {FAR_NODES} at {', '.join(map(str, FAR_GBIT))} Gbit/s, nothing else"
    length.add_argument("--far", action="store_true", help=f"{where}: half an hour")
    options = parser.parse_args()
    if options.far:
        rows = []
        for row in far():
            print(row, file=sys.stderr)
            rows.append(row)
        if options.json:
            print_json({"far": rows})
        else:
            show(f"{FAR_NODES} workers and {FAR_NODES} servers", rows)
        return 0
    found = {
        "sweeps": sweeps(),
        "simulations": simulations(256 if options.quick else 1024),
        "vgg16": vgg(),
        "prophet": prophet(),
    }
    broken = [
        f"a sweep under {row['policy']} took {row['seconds']:.1f} s"
        for row in found["sweeps"]
        if row["seconds"] > SWEEP_S
    ]
    for row in found["simulations"]:
        if row["seconds"] > SIMULATION_S or row["memory_gb"] > MEMORY_GB:
            broken.append(
                f"{row['workers']} workers took {row['seconds']:.0f} s, {row['memory_gb']:.1f} GB"
            )
    broken += wrong_orders(predicted())
    if options.json:
        print_json({**found, "broken": broken})
    else:
        show("1000 layers at 1000 bandwidths (promised: < 5 s)", found["sweeps"])
        show("One simulated iteration (promised: < 60 s, < 4 GB)", found["simulations"])
        show("VGG-16, 0.58 s of computation, 10 Gbit/s", found["vgg16"])
        show("ResNet-50, batch 64: samples a second, paper and ours", found["prophet"])
        print("\n".join(broken) or "all promises kept")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
