"""From bytes to blocks of sparse examples, fast: VW text, svmlight, CSV, JSON lines, Parquet, Arrow, dicts."""

from forel.formats.block import Block, concatenate
from forel.formats.hashing import slot
from forel.formats.names import Names
from forel.formats.problems import Malformed, Problems
from forel.formats.reading import Reader, open_blocks

__all__ = ["Block", "Malformed", "Names", "Problems", "Reader", "concatenate", "open_blocks", "slot"]
