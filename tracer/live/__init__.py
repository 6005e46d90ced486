"""A job's trace while it is being written: what is new in its files, and what that says."""
