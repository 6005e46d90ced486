"""Topics of documents by Gibbs sampling (examples/lda.py) as what a race is about.

The counts of words in topics fill the first part of the vector that is exchanged; the rest is there
so that it is as long as the digits' model. A worker has documents of its own. What was dropped of
its counts is part of its next update.
"""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[3]
SHAPE = (10, 500)  # topics and words
DOCUMENTS, LENGTH = 10, 50  # of each worker, and words in each
HELD_OUT = 15  # documents that are foretold, often


class Topics:
    def __init__(self, rank: int, workers: int) -> None:
        lda = runpy.run_path(str(ROOT / "examples" / "lda.py"))
        self._of_words = lda["OF_WORDS"]
        self._corpus = lda["Corpus"](*SHAPE, DOCUMENTS * workers, LENGTH)
        self._corpus.held_out = self._corpus.held_out[:HELD_OUT]
        own = self._corpus.documents[rank::workers]
        self._sampler = lda["Sampler"](own, SHAPE, seed=rank)
        self._inside = np.zeros(SHAPE, np.float32)  # what of its counts is in the model
        self._pushed = self._inside

    def update(self, model: Any, applied: bool) -> Any:
        if applied:
            self._inside = self._pushed
        self._sampler.sweep(np.maximum(_counts(model) - self._inside, 0))
        self._pushed = self._sampler.counts
        update = np.zeros_like(model)
        _counts(update)[:] = self._pushed - self._inside
        return update

    def quality(self, model: Any) -> float:
        """The mean log-likelihood of a held-out word."""
        topics = _counts(model) + self._of_words
        return float(self._corpus.foretold(topics / topics.sum(1, keepdims=True)))


def _counts(vector: Any) -> Any:
    """As a view."""
    return vector[: SHAPE[0] * SHAPE[1]].reshape(SHAPE)
