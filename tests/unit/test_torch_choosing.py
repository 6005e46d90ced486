"""wire="auto": what is chosen for links, workers and models of several kinds."""

from __future__ import annotations

import json
import random

import pytest

from pslite_ext.torch.choosing import NARROWER, PATIENCE, Choice

PART = dict(zip(NARROWER, (1.0, 0.5, 0.258)))


def run(
    choice: Choice, steps: int, compute_s: float, link_s: float, slow_s: float = 0.0
) -> list[str]:
    """The word of each iteration. `link_s`: of float32's bytes; `slow_s`: by which the slowest
    worker is late, whom the others wait for."""
    words = []
    for _ in range(steps):
        waited = max(0.0, PART[choice.word] * link_s - compute_s) + slow_s
        words.append(choice.word)
        choice.heard(compute_s + waited, waited)
    return words


@pytest.mark.parametrize(
    ("compute_s", "link_s", "word"),
    [(1.0, 0.5, "float32"), (1.0, 1.02, "float32"), (1.0, 1.9, "bf16"), (1.0, 3.5, "int8")],
)
def test_the_fewest_changes_that_end_the_waiting(
    compute_s: float, link_s: float, word: str
) -> None:
    words = run(Choice(), 60, compute_s, link_s)
    assert words[-1] == word
    assert words == sorted(words, key=NARROWER.index)


def test_even_int8_where_it_is_not_enough() -> None:
    assert run(Choice(), 60, 0.1, 20.0)[-1] == "int8"


def test_a_slow_worker_is_no_reason() -> None:
    words = run(Choice(), 2000, 1.0, 0.5, slow_s=0.5)
    assert words.count("float32") > 0.93 * len(words)
    assert "int8" not in words
    # Trials come ever later.
    begun = [i for i, pair in enumerate(zip(words, words[1:])) if pair == ("float32", "bf16")]
    gaps = [b - a for a, b in zip(begun, begun[1:])]
    assert len(gaps) >= 2
    assert all(PATIENCE < a < b for a, b in zip(gaps, gaps[1:]))


def test_what_is_needed_no_more_is_undone() -> None:
    choice = Choice()
    assert run(choice, 60, 1.0, 1.9)[-1] == "bf16"
    assert run(choice, 150, 1.0, 0.4)[-1] == "float32"
    assert run(choice, 60, 1.0, 1.9)[-1] == "bf16"


def test_it_does_not_swing_where_bf16_is_just_enough() -> None:
    words = run(Choice(), 3000, 1.0, 1.9)
    assert words.count("bf16") > 0.9 * len(words)


def test_who_hears_the_same_chooses_the_same() -> None:
    heard = random.Random(7)
    one, other = Choice(), Choice()
    for _ in range(5000):
        took = heard.uniform(0.1, 1.0)
        waited = took * heard.choice([0.0, 0.0, 0.02, 0.5, heard.random()])
        assert one.heard(took, waited) == other.heard(took, waited)
        assert one.word == other.word


def test_who_comes_later_chooses_as_the_others_do() -> None:
    draw = random.Random(5)
    for _ in range(50):
        first = Choice()
        for _ in range(draw.randrange(200)):
            first.heard(draw.uniform(0.5, 2), draw.choice((0.0, draw.uniform(0, 1))))
        later = Choice.of(json.loads(json.dumps(first.state())))
        for _ in range(200):
            heard = draw.uniform(0.5, 2), draw.choice((0.0, draw.uniform(0, 1)))
            assert later.heard(*heard) == first.heard(*heard)
            assert later.word == first.word
