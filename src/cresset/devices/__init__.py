"""Devices that this build never has. `torch.mps`, `torch.xpu` and `torch.mtia` are modules of the root, since programs
import them from there.
"""
