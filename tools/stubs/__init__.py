"""Prints the type stubs of the package: see __main__.py."""
