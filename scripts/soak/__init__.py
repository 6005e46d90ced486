"""The soak: jobs of real processes that are disturbed at random, for hours, and judged."""
