"""Constants shared by the scanner of JSON lines and its caller; this module does not import numba."""

import numpy as np

# Elements of ``counts``: offsets in text and scratch memory to continue from, and totals so far.
AT, ROWS, ENTRIES, LINES, SCRATCH, ATTEMPTS, KEYS, EVENTS, PENDING, WORD_START, WORD_STOP, LITERAL = range(12)
SIZE = 12

# Status of a call: the end of the text, a line for Python's parser, a table that is too small, or a label that is a
# word, which the caller interprets: it is between these offsets, and LITERAL if it is no string.
DONE, FALLBACK, MORE_KEYS, MORE_NAMES, NEW_WORD = range(5)

# Columns of the table of keys of the outermost objects; a start of 0 marks an unused row.
HASH, START, LENGTH, ROLE, STAMP, KINDS, ID = range(7)
KEY_COLUMNS = 8  # a cache line

# The role of a key, as flags.
USED = np.uint64(1)  # it is a feature
LABEL = np.uint64(2)  # its numbers are labels
IMPORTANCE = np.uint64(4)
CODED = np.uint64(8)  # its numbers are categories
NUMERIC = np.uint64(16)  # its strings may be numbers, which the caller decides
LOGARITHM = np.uint64(32)  # the caller transforms its numbers
WORD = np.uint64(64)  # its words stand for labels, and so do its numbers unless these are labels
RECORDED = np.uint64(128)  # the kinds of its values are recorded
NAMED = np.uint64(256)  # an option names it
NUMBER, CATEGORY, SEEN = np.uint64(1), np.uint64(2), np.uint64(4)  # kinds of values, and that a named key has some

WORDS = b"TrueFalse"  # categories of booleans, at the end of scratch memory
RESERVED = 16  # bytes for them
DEPTH = 8  # levels of nested objects
