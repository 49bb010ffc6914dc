"""XNNPACK, which this build does not have."""

enabled = False
