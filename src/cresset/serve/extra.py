"""The packages that serving needs beside cresset: not imported before it is used, and named when they are missing."""

import importlib


def require():
    """Import the packages that the code names, or say how to get them."""
    for name in ("starlette", "uvicorn", "httptools", "orjson"):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            raise ModuleNotFoundError(
                f'serve: {name} is not installed; pip install "cresset[serve]" brings it', name=name
            ) from None
