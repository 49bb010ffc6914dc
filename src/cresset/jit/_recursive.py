"""The store of the types of compiled modules, by the name that programs use to empty it."""


class ConcreteTypeStore:
    """The types of the modules that were compiled. Making a new store forgets them, so that their memory is free."""

    def __init__(self):
        from .scripting import unit

        unit.forget()

    @property
    def type_store(self):
        """{class: its types}."""
        from .scripting import unit

        found = {}
        for type_ in unit.module_types.values():
            found.setdefault(type_.python_class, []).append(type_)
        return found


def __getattr__(name):
    if name == "concrete_type_store":  # made when it is asked for, without forgetting
        made = globals()[name] = ConcreteTypeStore.__new__(ConcreteTypeStore)
        return made
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
