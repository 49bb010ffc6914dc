"""Graph passes for the operators of a dialect, by PyTorch's names."""
