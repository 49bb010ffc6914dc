"""The parts of nested tensors by the names that PyTorch keeps them under."""
