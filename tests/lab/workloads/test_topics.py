"""Topics as what a race is about: no count is missing, and held-out words become likelier."""

from __future__ import annotations

import numpy as np

from scripts.lab.workloads.race import Race, first_vector
from scripts.lab.workloads.topics import DOCUMENTS, LENGTH, SHAPE, Topics

RACE = Race("", "", "C0", 1, 0.0, 0.0, topics=True)


def test_what_was_dropped_is_part_of_the_next_update() -> None:
    workers = [Topics(rank, 3) for rank in range(3)]
    model = first_vector(RACE)
    applied = [True] * 3
    chance = np.random.default_rng(3)
    for last in [False] * 6 + [True]:
        for rank, worker in enumerate(workers):
            update = worker.update(model, applied[rank])
            applied[rank] = last or bool(chance.random() < 0.5)
            if applied[rank]:
                model = model + update
        assert model.min() >= 0
    assert model.sum() == 3 * DOCUMENTS * LENGTH
    assert not model[SHAPE[0] * SHAPE[1] :].any()


def test_held_out_words_become_likelier() -> None:
    worker = Topics(0, 1)
    model = first_vector(RACE)
    model = model + worker.update(model, True)
    before = worker.quality(model)
    for _ in range(30):
        model = model + worker.update(model, True)
    assert worker.quality(model) > before
