"""Figures of Mercury's paper that are a model's there, too."""

from __future__ import annotations

import functools

from pslite_ext.forecast.model import predict, required_bandwidth
from pslite_ext.forecast.model.zoo import known_job
from scripts.lab.benches.mercury_paper import MODELS
from scripts.lab.report.results import number
from scripts.papers.item import NOT_HERE, Item
from scripts.papers.mercury_names import (
    GBIT,
)

# Table II: millions of parameters, as the paper counts them.
PARAMETERS = {
    "vgg16": 135,
    "vgg16_32x32": 35,
    "vgg19": 140,
    "alexnet": 57,
    "resnet50": 24,
    "bert_base": 109,
}
TARGETS = {model: 0.9 if model == "bert_base" else 0.99 for model in MODELS}  # of Fig. 12


@functools.cache  # the page and its picture
def required(model: str) -> tuple[float, float, float]:
    """Gbit/s for the target under Mercury, without preemption and under WFBP."""
    job = known_job(model)
    mercury, fifo, wfbp = (
        required_bandwidth(job, policy, TARGETS[model]) / GBIT
        for policy in ("mercury", "fifo", "wfbp")
    )
    return mercury, fifo, wfbp


def model_items() -> list[Item]:
    needed = {model: required(model) for model in MODELS}
    listed = "; ".join(
        f"{model} {', '.join(number(rate) for rate in rates)}" for model, rates in needed.items()
    )
    saved = max(1 - rates[0] / rates[2] for rates in needed.values())
    speeds = []
    for model in ("vgg16", "bert_base"):
        job = known_job(model)
        at = {p: predict(job, 10 * GBIT, p).speed for p in ("wfbp", "fifo", "mercury")}
        speeds.append(f"{model}: " + ", ".join(f"{p} {number(v)}" for p, v in at.items()))
    layers = []
    for model in ("vgg16", "bert_base"):
        job = known_job(model)
        one_way = float(job.bytes.sum()) / (20 * GBIT)
        forward = sum(layer.fp_s for layer in job.layers)
        layers.append(
            f"{model}: backward {number(job.compute_s - forward)} s, forward {number(forward)} s, "
            f"communication {number(one_way)} s each way"
        )
    parameters = {
        model: float(known_job(model).bytes.sum()) / 4e6 / paper
        for model, paper in PARAMETERS.items()
    }
    return [
        Item(
            "Fig. 10",
            "times of layers, VGG-16 and BERT-Base, RTX 3090, 20 Gbit/s (an image)",
            f"{NOT_HERE}: no such GPU; profiles count operations for a 1080 Ti's 5.12 TFLOP/s",
            "`mercury sim predict vgg16 --bandwidth 20Gbps`",
            model="; ".join(layers),
        ),
        Item(
            "Fig. 11",
            "speed (t_oracle / t_iter) by bandwidth: WFBP, without preemption, Mercury",
            "picture above",
            "`mercury sim sweep vgg16 --from 1Gbps --to 100Gbps`",
            model="at 10 Gbit/s, " + "; ".join(speeds),
        ),
        Item(
            "Fig. 12",
            "bandwidth for 0.99 of full speed (BERT 0.90); Mercury needs up to about half of "
            "WFBP's less",
            "a model's figure in the paper, too",
            "`mercury sim required-bandwidth`",
            model=f"Gbit/s for Mercury, without preemption, WFBP: {listed}; up to "
            f"{number(100 * saved)} % less",
            ratio=number(saved / 0.5),
            remarks="of a 1080 Ti; a GPU of twice its speed needs twice as much, by all three",
        ),
        Item(
            "Table II",
            "six models: " + ", ".join(f"{x} {n} M parameters" for x, n in PARAMETERS.items()),
            "the same six and five more, tensor by tensor",
            "pslite_ext/forecast/model/architectures.py",
            ratio=", ".join(f"{model} {number(part)}" for model, part in parameters.items()),
            remarks="AlexNet here is the one with 61 M parameters",
        ),
    ]
