"""Compiled scanners: from bytes to arrays, by numba, without the global interpreter lock.

``cache`` compiles; ``words`` loads eight bytes at once; ``numbers`` parses numbers; ``hashing`` hashes names; ``merge``
sums equal slots of a row; ``layout`` has constants; ``name_records`` records names; ``vw``, ``plain_namespaces`` and
``svmlight`` parse lines; ``csv_rows`` parses rows of CSV; ``text`` splits text into words; ``crosses``
multiplies features; ``ranges`` finds the least and largest values of columns. Nothing here checks its
arguments: ``forel.data.parsers`` ends the text with a line end and padding, and allocates arrays that are long enough.
"""
