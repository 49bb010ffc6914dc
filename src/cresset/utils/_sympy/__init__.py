"""PyTorch's places for the numbers that symbolic sizes are bounded by."""
