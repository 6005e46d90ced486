"""Bayesian optimisation, for Pythons that have the library `bayesian-optimization`.

Reads the bounds of some numbers, a line of JSON. Then it writes a point between them, reads how
many seconds something takes there, writes the next point, and so on until its input ends. The
first points are spread evenly, by chance; then a Gaussian process expects what is worth a try.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator

from bayes_opt import BayesianOptimization
from bayes_opt.acquisition import ExpectedImprovement
from scipy.stats import qmc

SPREAD = 5  # points before anything is expected
SEED = 4
# Of the logarithm of the seconds: what is less than a hundredth better is not looked for.
BETTER = 0.01


def points(bounds: list[tuple[float, float]], told: Iterator[float]) -> Iterator[dict[str, float]]:
    """Each is asked for after the seconds at the one before it are in `told`."""
    names = [str(i) for i in range(len(bounds))]
    search = BayesianOptimization(
        None,
        dict(zip(names, bounds)),
        acquisition_function=ExpectedImprovement(xi=BETTER),
        random_state=SEED,
        allow_duplicate_points=True,
        verbose=0,
    )
    lows, highs = zip(*bounds)
    spread = qmc.LatinHypercube(len(bounds), seed=SEED).random(SPREAD)
    first = [dict(zip(names, point)) for point in qmc.scale(spread, lows, highs).tolist()]
    while True:
        point = first.pop(0) if first else search.suggest()
        yield {name: float(point[name]) for name in names}
        try:
            seconds = next(told)
        except StopIteration:
            return
        search.register(point, -math.log(seconds))


def main() -> None:
    lines = map(json.loads, sys.stdin)
    bounds = next(lines)
    for point in points(bounds, lines):
        print(json.dumps(list(point.values())), flush=True)


if __name__ == "__main__":
    main()
