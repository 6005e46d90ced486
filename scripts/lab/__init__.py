"""Workloads, test bed and benchmarks."""
