"""Constants shared by scanners and their callers, without numba: counters, status codes, records."""

import numpy as np

PAD = 64  # bytes allocated after the text, because loads may read past its end

# Elements of ``counts``: the offset to continue from, and totals so far.
AT, ROWS, ENTRIES, LINES, HARD, NAMES = range(6)
SIZE = 6

# Status of a call. After an error, AT is its offset, and the example is skipped.
DONE, NO_NUMBER, NOT_FINITE, NO_BAR, AFTER_TAG, THIRD, NEGATIVE, NO_NAMESPACE, NO_NAME, NO_SPACE, SUM = range(11)
NO_ID, NO_COLON, ID_ZERO, NO_QUERY = range(11, 15)

FINGERPRINT, USED, COLLIDED = np.uint32(0xFFFFFFFC), np.uint32(1), np.uint32(2)
UPPER = np.uint64(32)
COLUMNS = 6  # of a record: slot, hash, and the spans of namespace (begin to middle) and name (start to stop)

# The status of a cell as a number, and the width of a row that ends within quotes.
ABSENT, THERE, UNSURE = range(3)
OPEN = -1
QUOTED = 1 << 20  # maximum number of bytes from the start of a row to the end of a quote
