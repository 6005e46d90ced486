"""The native core of mercury-ps and its settings; `_core` is imported when it is needed."""

__version__ = "0.1.0"
