from ..graph.recording import Value  # noqa: F401
