"""arenagen: a declarative code generator for GPU buffer arenas."""

__version__ = "0.1.0"
