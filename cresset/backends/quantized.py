"""Engines of quantized operators. None is in this build; the setting keeps its value."""

engine = "none"
supported_engines = ["none"]
