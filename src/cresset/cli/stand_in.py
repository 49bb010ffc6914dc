"""`install()`: this process finds cresset where it looks for PyTorch, while modules and classes keep cresset's names.

For programs that look into cresset from outside, such as a run of PyTorch's own tests; `cresset run` renames, too.
"""

from .. import standing_in


def install():
    """Let `import torch` and every `torch.x.y` find cresset."""
    standing_in.install(renaming=False)
