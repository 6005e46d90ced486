"""Topics of documents, by latent Dirichlet allocation and collapsed Gibbs sampling, under MLfabric.

    mercury launch -n 4 -s 1 --replicas 1 -- python examples/lda.py
    python examples/lda.py --alone

The model is how often each word is assigned to each topic. Each worker has a part of the documents:
it gets the counts, assigns a new topic to each of its words, and pushes by how much its own counts
have changed. An update that was dropped is part of the next one, so that in the end the counts are
those of all documents, whatever became of updates and servers on the way.

The documents are made up of known topics. So one can say how well new ones could be foretold at
best: half of each is read, and the other half foretold.
"""

from __future__ import annotations

import argparse
from collections import deque
from typing import Any

import numpy as np

from pslite_ext import fabric

OF_TOPICS = 0.1  # Dirichlet's parameter of a document's topics
OF_WORDS = 0.05  # and of a topic's words
REMEMBERED = 100  # updates: more than a replica ever lacks


class Corpus:
    def __init__(self, topics: int, words: int, documents: int, length: int) -> None:
        self.random = np.random.default_rng(7)
        self.topics = self.random.dirichlet(np.full(words, OF_WORDS), topics)
        self.documents = self._draw(documents, length)
        self.held_out = self._draw(100, 2 * length)

    def _draw(self, documents: int, length: int) -> list[Any]:
        shares = self.random.dirichlet(np.full(len(self.topics), OF_TOPICS), documents)
        return [self.random.choice(self.topics.shape[1], length, p=s @ self.topics) for s in shares]

    def foretold(self, topics: Any) -> float:
        """The mean log-likelihood of a held-out word."""
        likelihoods = []
        for document in self.held_out:
            read, rest = np.split(document, 2)
            shares = np.full(len(topics), 1 / len(topics))
            for _ in range(50):
                belongs = shares[:, None] * topics[:, read]
                shares = (belongs / belongs.sum(0)).sum(1) + OF_TOPICS
                shares /= shares.sum()
            likelihoods.append(np.log(shares @ topics[:, rest]).mean())
        return float(np.mean(likelihoods))

    def say(self, counts: Any) -> None:
        topics = counts + OF_WORDS
        topics /= topics.sum(1, keepdims=True)
        single = counts.sum(0, keepdims=True) + OF_WORDS
        print(
            f"{counts.sum():.0f} words in topics, none less than {counts.min():.0f} times; "
            f"log-likelihood of a held-out word: {self.foretold(topics):.3f} "
            f"(by the true topics {self.foretold(self.topics):.3f}, "
            f"by words alone {self.foretold(single / single.sum()):.3f})"
        )


class Sampler:
    """Some documents, with a topic for each of their words."""

    def __init__(self, documents: list[Any], shape: tuple[int, int], seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.documents = documents
        self.chosen = [self.random.integers(shape[0], size=len(d)) for d in documents]
        self.counts = np.zeros(shape, np.float32)
        for document, chosen in zip(documents, self.chosen):
            np.add.at(self.counts, (chosen, document), 1)

    def sweep(self, others: Any) -> None:
        """Each word's topic anew. `others`: the counts of all other documents."""
        counts = self.counts + others
        sizes = counts.sum(1)
        prior = OF_WORDS * counts.shape[1]
        for document, chosen in zip(self.documents, self.chosen):
            shares = np.bincount(chosen, minlength=len(sizes)) + OF_TOPICS
            dice = self.random.random(len(document))
            for i, word in enumerate(document):
                old = chosen[i]
                shares[old] -= 1
                counts[old, word] -= 1
                sizes[old] -= 1
                odds = (shares * (counts[:, word] + OF_WORDS) / (sizes + prior)).cumsum()
                new = chosen[i] = odds.searchsorted(dice[i] * odds[-1])
                shares[new] += 1
                counts[new, word] += 1
                sizes[new] += 1
        self.counts = counts - others


class Pushed:
    """What of a worker's counts is in the model, by its updates and their fates."""

    def __init__(self, worker: fabric.Worker) -> None:
        self.worker = worker
        self.counts = np.zeros(worker.shape, np.float32)
        self._updates: deque[list[Any]] = deque(maxlen=REMEMBERED)

    def push(self, counts: Any) -> None:
        change = counts - self.counts
        where = np.nonzero(change)
        self._updates.append([self.worker.push(change), where, change[where], False])

    def look(self) -> None:
        """One that was committed may be lost later, with its server."""
        self.worker.settle()
        for update in self._updates:
            number, where, change, was_there = update
            update[3] = is_there = self.worker.fate(number) == "committed"
            if is_there != was_there:
                self.counts[where] += change if is_there else -change


def train(worker: fabric.Worker, sampler: Sampler, sweeps: int) -> None:
    pushed = Pushed(worker)
    pushed.push(sampler.counts)
    for sweep in range(sweeps):
        if worker.rank == 0 and sweep % 10 == 0:
            print(f"sweep {sweep}")
        model = worker.get()
        pushed.look()
        sampler.sweep(np.maximum(model - pushed.counts, 0))
        pushed.push(sampler.counts)
    pushed.look()
    while (pushed.counts != sampler.counts).any():  # the last ones were dropped, or are lost
        worker.get()  # else they would be too old again
        pushed.push(sampler.counts)
        pushed.look()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--alone", action="store_true", help="one process, without MLfabric")
    parser.add_argument("--topics", type=int, default=10)
    parser.add_argument("--words", type=int, default=500)
    parser.add_argument("--documents", type=int, default=400)
    parser.add_argument("--length", type=int, default=80, help="of a document")
    parser.add_argument("--sweeps", type=int, default=60)
    given = parser.parse_args()
    corpus = Corpus(given.topics, given.words, given.documents, given.length)
    shape = (given.topics, given.words)
    if given.alone:
        sampler = Sampler(corpus.documents, shape, seed=0)
        for _ in range(given.sweeps):
            sampler.sweep(np.zeros(shape, np.float32))
        return corpus.say(sampler.counts)
    worker = fabric.register(np.zeros(shape, np.float32), at_end=corpus.say)
    own = corpus.documents[worker.rank :: worker.num_workers]
    train(worker, Sampler(own, shape, seed=worker.rank), given.sweeps)
    print(worker.stats())
    return None


if __name__ == "__main__":
    main()
