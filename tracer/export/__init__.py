"""Traces for other tools' eyes."""
