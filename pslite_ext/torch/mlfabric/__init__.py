"""PyTorch under MLfabric: each step of an optimizer is an update of the whole model."""
