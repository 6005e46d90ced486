"""Checkpoints: written beside training, whole or not at all, and found again by all workers."""
