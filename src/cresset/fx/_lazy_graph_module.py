"""Graph modules whose source is written when they are first called or read: for passes that change a graph many
times."""

import contextlib

from .graph_module import GraphModule

__all__ = ["_LazyGraphModule", "_get_graph_module_cls", "_make_graph_module", "_use_lazy_graph_module"]

_chosen = {"lazy": False, "skip": False}


class _LazyGraphModule(GraphModule):
    """A GraphModule that writes its source late."""

    @classmethod
    def from_graphmodule(cls, gm):
        """The module itself if it is lazy already, otherwise a lazy one of the same graph."""
        return gm if isinstance(gm, _LazyGraphModule) else _LazyGraphModule(gm, gm.graph)

    @staticmethod
    def force_recompile(gm):
        """Write the source of a lazy module now; of other modules it is written already."""
        if isinstance(gm, _LazyGraphModule):
            gm.real_recompile()

    def recompile(self):
        if not hasattr(self, "_graph"):
            return
        self.__dict__["_is_late"] = True
        type(self).forward = _first_forward

    def real_recompile(self):
        """Write the source if it is not written yet."""
        if self._needs_recompile():
            self.__dict__["_is_late"] = False
            GraphModule.recompile(self)

    def _needs_recompile(self):
        return self.__dict__.get("_is_late", False)

    @property
    def code(self):
        self.real_recompile()
        return self._code

    def __str__(self):
        self.real_recompile()
        return super().__str__()


def _first_forward(self, *args, **kwargs):
    self.real_recompile()
    return type(self).forward(self, *args, **kwargs)


@contextlib.contextmanager
def _use_lazy_graph_module(should_use):
    """Inside, `_make_graph_module` makes lazy modules, or does not."""
    before, _chosen["lazy"] = _chosen["lazy"], bool(should_use) and not _chosen["skip"]
    try:
        yield
    finally:
        _chosen["lazy"] = before


@contextlib.contextmanager
def _force_skip_lazy_graph_module():
    """Inside, no module is made lazy."""
    before = dict(_chosen)
    _chosen.update(lazy=False, skip=True)
    try:
        yield
    finally:
        _chosen.update(before)


def _get_graph_module_cls():
    """The class that `_make_graph_module` takes."""
    return _LazyGraphModule if _chosen["lazy"] else GraphModule


def _make_graph_module(*args, graph_module_cls=None, **kwargs):
    """A graph module of a class; by default a lazy one where `_use_lazy_graph_module` says so."""
    return (_get_graph_module_cls() if graph_module_cls is None else graph_module_cls)(*args, **kwargs)
