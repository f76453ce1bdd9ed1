"""Constants shared by scanners and their callers, without numba: counters, status codes, records."""

import numpy as np

PAD = 64  # bytes allocated after the text, because loads may read past its end

# Elements of ``counts``: the offset to continue from, and totals so far.
AT, ROWS, ENTRIES, LINES, HARD, NAMES = range(6)
SIZE = 6

# Status of a call. After an error, AT is its offset, and the example is skipped.
DONE, NO_NUMBER, NOT_FINITE, NO_BAR, AFTER_TAG, THIRD, NEGATIVE, NO_NAMESPACE, NO_NAME, NO_SPACE, SUM = range(11)
NO_ID, NO_COLON, NO_QUERY, NO_HEAD = range(11, 15)
# What was expected at the offset of an error.
EXPECTED = {
    NO_NUMBER: "a number",
    NO_HEAD: "a number, or '|' before the features",
    NOT_FINITE: "a number within the range of float32",
    NO_BAR: "'|' before the features",
    AFTER_TAG: "'|' after the tag",
    THIRD: "'|' after label and importance; a tag touches the bar or begins with '",
    NEGATIVE: "an importance of at least 0",
    NO_NAMESPACE: "a namespace before ':', or a space after '|'",
    NO_NAME: "the name of a feature before ':'",
    NO_SPACE: "the end of the number",
    SUM: "values of one slot whose sum is within the range of float32",
    NO_ID: "the id of a feature, a whole number of at most 15 digits",
    NO_COLON: "':' and a value after the id",
    NO_QUERY: "a whole number after qid:",
}

FINGERPRINT, USED, COLLIDED = np.uint32(0xFFFFFFFC), np.uint32(1), np.uint32(2)
UPPER = np.uint64(32)
COLUMNS = 6  # of a record: slot, hash, and the spans of namespace (begin to middle) and name (start to stop)

# The status of a cell as a number, and the width of a row that ends within quotes.
ABSENT, THERE, UNSURE = range(3)
OPEN = -1
QUOTED = 1 << 20  # maximum number of bytes from the start of a row to the end of a quote
