"""What people see: tensors as text and in notebooks, models as tables and pictures, and what a module says to a name it
does not have.
"""
