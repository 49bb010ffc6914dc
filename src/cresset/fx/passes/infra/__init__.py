"""Graph passes as objects, by PyTorch's names."""
