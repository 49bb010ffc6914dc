"""Wrappers that save memory of activations."""
