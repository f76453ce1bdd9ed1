"""What scanners and their callers agree on: where counts are kept, and what can be wrong; nothing here needs numba."""

import numpy as np

PAD = 64  # bytes that must follow the text, because a load may reach beyond it

# Places in ``counts``: where reading goes on, and how much there is so far.
AT, ROWS, ENTRIES, LINES, HARD, NAMES = range(6)
SIZE = 6

# How a call ends. After an error, AT is where it is, and the line's example is left out.
DONE, NO_NUMBER, NOT_FINITE, NO_BAR, AFTER_TAG, THIRD, NEGATIVE, NO_NAMESPACE, NO_NAME, NO_SPACE, SUM = range(11)
NO_ID, NO_COLON, ID_ZERO, NO_QUERY = range(11, 15)

FINGERPRINT, TOUCHED, MET = np.uint32(0xFFFFFFFC), np.uint32(1), np.uint32(2)
UPPER = np.uint64(32)
COLUMNS = 6  # of a record: slot, hash, and a name as the bytes begin to middle, a caret if any, the bytes start to stop

# What a cell is as a number, and what a row of cells has that ends within quotes.
ABSENT, THERE, UNSURE = range(3)
OPEN = -1
QUOTED = 1 << 20  # bytes from the beginning of a row that a quote may reach
