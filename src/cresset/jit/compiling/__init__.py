"""The compiler of torch.jit: Python source, by its syntax tree, to a Graph.

An Emitter walks one function's tree and writes its graph. What a name or expression means is a graph Value, or one of
the sugared values of `sugar.py` (a Python object, a method that is not called yet, a thing to loop over). Calls of
operators are matched with schemas (`matching.py`), calls of functions and methods are compiled in turn.
"""
