"""What a job computes and sends, and how it tells what it measured.

Runs in any Python that has MXNet 1.9; of ours it needs `pslite_ext.forecast.model` alone."""
