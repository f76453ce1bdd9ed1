r"""From bytes to blocks of sparse examples, in constant memory: sources, parsers, features, blocks.

============  ========================================================================================================
format        features
============  ========================================================================================================
``vw``        ``Label [Importance] [Tag]|namespace:scale feature:value ...``, names are hashed with their namespaces
``svmlight``  ``label [qid:n] id:value ... # comment``, ids below 2**bits are kept; qid is ignored
``csv tsv``   with a header; the first value decides whether a column is numeric or categorical; empty is absent
``parquet``   and ``arrow``, and tables with the Arrow PyCapsule interface: numbers and booleans are values, strings
              categories, nulls absent
``jsonl``     and dicts: numbers and booleans are values, strings and lists of strings categories, objects namespaces
============  ========================================================================================================

A value of column ``price`` is the feature ``price``; a category of column ``city`` is the feature ``Rome`` of namespace
``city``, in VW text ``|city Rome | price:3``. :func:`slot` returns its slot.

Crosses (``interactions``) multiply features of two or three namespaces or columns, with names joined by ``*``:
``"city*price"``; letters match all names that begin with them, as in VW: ``"ab"``. :func:`cross_slot` returns the slot.

VW text has the meaning that VW gives it, except that names that are integers are hashed like all others, and that
malformed lines are errors: a line without a bar, a third number before the bar, a feature without a name, a value that
is not a number. Bytes up to 32 are whitespace. NaN, infinity and numbers out of the range of float32 are errors.

>>> import io
>>> reader = read(io.BytesIO(b"1 |city Rome | price:3\n1 |city Oslo | price:x\n"), on_error="skip", names=True)
>>> [block.values.tolist() for block in reader]
[[1.0, 3.0]]
>>> reader.problems.messages
["stream, line 2, column 22: got 'x', expected a number"]
>>> reader.names[slot("Rome", "city")]
'city^Rome'
"""

from forel.data.block import Block, Position, concatenate
from forel.data.features.hashing import cross_slot, slot
from forel.data.features.names import Names
from forel.data.options import ReadOptions
from forel.data.problems import Malformed, Problems
from forel.data.reader import Reader, read

__all__ = [
    "Block",
    "Malformed",
    "Names",
    "Position",
    "Problems",
    "ReadOptions",
    "Reader",
    "concatenate",
    "cross_slot",
    "read",
    "slot",
]  # fmt: skip
