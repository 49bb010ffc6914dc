"""Ways to make graphs that PyTorch calls experimental."""
