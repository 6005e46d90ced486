"""A process's part in its job, whatever it trains with."""
