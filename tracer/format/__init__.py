"""Trace files: what they hold, read and written as text or binary; docs/trace-format.md."""
