"""VW files of the two shapes that benchmarks time: the same labels, 39 features a row.

``own``: 39 namespaces of one letter with one word of five letters each, as ``forel dev generate`` writes them.
``mixed``: 13 numbers in one namespace, such as ``i3:0.5234``, and 26 words of one to five letters in namespaces of two
or three letters.
"""

import numpy as np

from forel.data.clicks import clicks, write_clicks

__all__ = ["SHAPES"]

NUMBERS, WORDS, DIGITS, NIBBLES = 13, 26, 4, 5
LINE = (
    "-1 |n" + "".join(f" i{k}:0.0000" for k in range(NUMBERS)) + "".join(f" |c{k} 00000" for k in range(WORDS)) + "\n"
)


def write_own(path, rows):
    """Write rows with one word in each namespace."""
    with path.open("wb") as file:
        write_clicks(file, rows)


def write_mixed(path, rows):
    """Write rows with numbers in one namespace and words in the others."""
    line = np.frombuffer(LINE.encode(), np.uint8)
    points = np.flatnonzero(line == ord("."))[:, None] + np.arange(1, DIGITS + 1)
    words = np.array([LINE.index(f"|c{k} ") + len(f"|c{k} ") for k in range(WORDS)])[:, None] + np.arange(NIBBLES)
    with path.open("wb") as file:
        for block in clicks(rows):
            text = np.tile(line, (block.labels.size, 1))
            text[block.labels, 0] = 0
            hashed = block.categories[:, :NUMBERS, None] * np.uint32(2654435769) >> np.uint32(16)
            text[:, points] = ord("0") + hashed // 10 ** np.arange(DIGITS)[::-1] % 10
            shifts = 4 * np.arange(NIBBLES, dtype=np.uint32)[::-1]
            left = block.categories[:, NUMBERS:, None] >> shifts  # the number up to each of its digits
            letters = (ord("a") + (left & 15)).astype(np.uint8)
            letters[(left == 0) & (shifts > 0)] = 0  # leading zeros
            text[:, words] = letters
            file.write(text[text != 0].tobytes())


SHAPES = {"own": write_own, "mixed": write_mixed}
