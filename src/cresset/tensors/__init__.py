"""The Python side of tensors: methods, making them from data, facts about dtypes, symbols for sizes, and tensors
without memory of their own.
"""
