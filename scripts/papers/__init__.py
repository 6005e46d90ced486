"""docs/papers.md: what the papers show, beside what was measured here."""
