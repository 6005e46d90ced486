"""What is measured: a module for each bench; `catalogue` has them all."""
