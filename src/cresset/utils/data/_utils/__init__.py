"""PyTorch's places for collation and worker information."""
