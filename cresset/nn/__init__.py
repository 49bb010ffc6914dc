"""Layers, their functions and their starting values: PyTorch's torch.nn."""
