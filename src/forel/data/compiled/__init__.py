"""Compiled scanners: from bytes to arrays, by numba, without the interpreter's lock.

``cache`` compiles, ``words`` loads eight bytes at once, ``numbers`` reads a number, ``hashing`` hashes a name,
``merge`` sums what is twice in a row, ``layout`` is what parsers share, ``recorded`` keeps names, ``vw`` and
``svmlight`` read lines, ``csv_rows`` reads rows of CSV. Nothing here checks its arguments: the text ends with a line
end and some room, and the arrays are long enough, because ``forel.data.parsers.lines`` and ``csv_rows`` made them so.
"""
