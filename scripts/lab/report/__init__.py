"""What becomes of measurements: results files, tables, charts, docs/benchmarks.md."""
