"""Counts and signed numbers in the text that commands print."""

__all__ = ["counted", "signed"]


def counted(number: int, noun: str, rest: str = "") -> str:
    """Return a number with its noun, in the plural unless it is 1.

    >>> counted(1, "row"), counted(2000, "feature", " in all")
    ('1 row', '2,000 features in all')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}{rest}"


def signed(number: float) -> str:
    """Return a number with its sign and five decimals; zero has no sign.

    >>> signed(0.25), signed(-0.25), signed(-1e-9)
    ('+0.25000', '-0.25000', '0.00000')
    """
    text = f"{number:+.5f}"
    return text[1:] if not text.strip("+-0.") else text
