"""MLfabric under MXNet: a training step's pushes and pulls are one update and one get."""
