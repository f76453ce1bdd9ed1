"""Compiled scanners: from bytes to arrays, by numba, without the interpreter's lock.

``numbers`` reads a number, ``hashing`` names a slot, ``merge`` sums what is twice in a row, ``vw`` and ``svmlight``
read lines. Nothing here checks its arguments: the text ends with a line end, and the arrays are long enough, because
``forel.formats.lines`` made them so.
"""
