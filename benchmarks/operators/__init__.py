"""Which operators are slower than PyTorch's? The cases stand in the files of this folder; `__main__.py` times them."""
