"""Passes for any dialect whose operators are functions."""
