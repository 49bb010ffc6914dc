"""Datasets over files: each reads a sample when it is asked for, none loads a whole file, and an error names the file
and the line.
"""

from .arrays import ArrayDataset
from .parquet import ParquetDataset
from .tables import CsvDataset, JsonLinesDataset, TextLinesDataset
from .tar import TarDataset

__all__ = ["ArrayDataset", "CsvDataset", "JsonLinesDataset", "ParquetDataset", "TarDataset", "TextLinesDataset"]
