"""What tracing costs: LeNet-5 with 2 workers and 1 server, traced and not, by turns.

    python scripts/bench_capture.py [--rounds 7] [--steps 150] [--out FILE]

Both vans. Each turn is a job of its own; of each kind the median counts. Beside the wall clock the
processor time of the workers is compared, which a busy machine disturbs less.
"""

from __future__ import annotations

import argparse
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tracer.output import write_json

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"  # whose network the workers train
BATCH = 32
WARM_UP = 10


def work(steps: int) -> None:
    """A worker: says how long its steps took."""
    import mxnet as mx
    from mxnet import autograd, gluon
    from train_lenet import lenet

    mx.random.seed(1)
    store = mx.kv.create("dist_sync")
    net = lenet()
    net.initialize(mx.init.Xavier())
    images = mx.nd.random.uniform(shape=(BATCH, 1, 28, 28))
    labels = mx.nd.array([n % 10 for n in range(BATCH)])
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01}, kvstore=store)
    loss_function = gluon.loss.SoftmaxCrossEntropyLoss()
    for step in range(WARM_UP + steps):
        if step == WARM_UP:
            mx.nd.waitall()
            wall, cpu = time.perf_counter(), time.process_time()
        with autograd.record():
            loss = loss_function(net(images), labels)
        loss.backward()
        trainer.step(BATCH * store.num_workers)
    mx.nd.waitall()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"measured {wall / steps * 1e3:.4f} {cpu / steps * 1e3:.4f}", flush=True)


def job(van: str, steps: int, traces: Path | None) -> tuple[float, float]:
    """Milliseconds a step, of the clock and of the processor, mean of the workers."""
    command = [sys.executable, "-m", "tracer", "launch", "-n", "2", "-s", "1", "--van", van]
    with tempfile.TemporaryDirectory() as logs:
        command += ["--log-dir", logs, *(["--trace-dir", str(traces)] if traces else [])]
        command += ["--", "env", f"PYTHONPATH={EXAMPLES}"]
        command += [sys.executable, __file__, "--worker", "--steps", str(steps)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    found = re.findall(r"measured ([\d.]+) ([\d.]+)", done.stdout)
    if done.returncode or len(found) != 2:
        raise SystemExit(
            f"bench_capture: a job failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    wall, cpu = (statistics.mean(float(one[n]) for one in found) for n in range(2))
    return wall, cpu


def compare(van: str, rounds: int, steps: int) -> dict[str, float]:
    plain: list[tuple[float, float]] = []
    traced: list[tuple[float, float]] = []
    for turn in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            # Who goes first changes, so that a machine that slows down favours nobody.
            for is_traced in (turn % 2 == 0, turn % 2 == 1):
                target = Path(folder) / "traces" if is_traced else None
                (traced if is_traced else plain).append(job(van, steps, target))
        print(f"{van}: {turn + 1} of {rounds}", file=sys.stderr, flush=True)
    figures = {}
    for n, name in enumerate(("wall", "cpu")):
        before, after = (statistics.median(one[n] for one in kind) for kind in (plain, traced))
        figures[f"{name} ms a step, untraced"] = round(before, 3)
        figures[f"{name} ms a step, traced"] = round(after, 3)
        figures[f"{name} overhead %"] = round((after / before - 1) * 100, 2)
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure what tracing costs a training loop.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--out", type=Path, help="also write the figures here, as JSON")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.steps)
        return 0
    results: dict[str, object] = {"machine": platform.platform()}
    for van in ("zmq", "mercury"):
        figures = compare(van, options.rounds, options.steps)
        results[van] = figures
        print(f"{van}: " + ", ".join(f"{name} {value}" for name, value in figures.items()))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        write_json(options.out, results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
