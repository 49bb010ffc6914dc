"""How fast is it, beside PyTorch? One question a file; `python -m benchmarks` answers."""
