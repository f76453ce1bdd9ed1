r"""From bytes to blocks of sparse examples, fast and in constant memory.

============  ========================================================================================================
format        what becomes a feature
============  ========================================================================================================
``vw``        ``Label [Importance] [Tag]|namespace:scale feature:value ...``, each name hashed after its namespace
``svmlight``  ``label [qid:n] id:value ... # comment``, ids kept where they fit; qid is read over
``csv tsv``   with a header: a column whose first value is a number is a value, any other a category; empty is absent
``parquet``   and ``arrow``, and tables with the Arrow PyCapsule interface: numbers and booleans are values, strings
              categories, nulls absent
``jsonl``     and dicts: numbers and booleans are values, strings and lists of strings categories, objects namespaces
============  ========================================================================================================

A value of column ``price`` is the feature ``price``; a category of column ``city`` is the feature ``Rome`` of namespace
``city``, as VW writes it: ``|city Rome | price:3``. :func:`slot` says which slot that is.

Crosses (``interactions``) multiply features of two or three namespaces, or columns, which ``*`` joins by name:
``"city*price"``; letters stand for all that begin with them, as in VW: ``"ab"``. :func:`cross_slot` says their slots.

VW text means what it means to VW, but names that are whole numbers are hashed like all others, and what VW lets pass
is an error: a line without a bar, a third number before the bar, a feature without a name, a value that is no number.
Bytes up to 32 separate words. NaN and infinity are errors everywhere, also where only float32 cannot hold a number.

>>> import io
>>> reader = read(io.BytesIO(b"1 |city Rome | price:3\n1 |city Oslo | price:x\n"), on_error="skip", names=True)
>>> [block.values.tolist() for block in reader]
[[1.0, 3.0]]
>>> reader.problems.messages
["stream, line 2, column 22: got 'x', expected a number"]
>>> reader.names[slot("Rome", "city")]
'city^Rome'
"""

from forel.data.block import Block, concatenate
from forel.data.features.hashing import cross_slot, slot
from forel.data.features.names import Names
from forel.data.options import ReadOptions
from forel.data.position import Position
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
