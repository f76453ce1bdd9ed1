"""The page of results, written from claims."""

import pathlib
from collections.abc import Sequence

from forel.theory.plot import save_both
from reproduce.claim import Claim

__all__ = ["markdown", "write"]

HEAD = """# The literature, reproduced

Claims from papers, measured again. `make reproduce` writes this page from [public data sets](data.md) in the folder
`FOREL_DATA`. Each claim is a function in `reproduce/`, and the tests check each at a smaller size.
"""


def markdown(claims: Sequence[Claim]) -> str:
    """Return the page."""
    lines = [HEAD, *_table([["claim", "holds"], *([f"[{c.title}](#{_anchor(c)})", _verdict(c)] for c in claims)]), ""]
    for claim in claims:
        lines += [
            f"## {claim.title}",
            "",
            f"**Claim.** {claim.statement}  ",
            f"**Source.** {claim.source}.  ",
            f"**Measured.** {claim.measured}  ",
            f"**Holds:** {_verdict(claim)}.",
            "",
            *_table(claim.table),
            "",
            *(
                f"[![{claim.alt_text}](reproduced/{claim.key}{dark}.svg#only-{theme})](reproduced/{claim.key}{dark}.svg)"
                for dark, theme in (("", "light"), ("_dark", "dark"))
            ),
            "",
        ]
    return "\n".join(lines)


def _verdict(claim: Claim) -> str:
    return "yes" if claim.holds else "**no**"


def _anchor(claim: Claim) -> str:
    words = "".join(c for c in claim.title.lower() if c.isalnum() or c in " -")
    return words.replace(" ", "-")


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return [head, "|---|" + "---:|" * (len(rows[0]) - 1), *body]


def write(claims: Sequence[Claim], folder: pathlib.Path) -> pathlib.Path:
    """Write the page and its figures."""
    (folder / "reproduced").mkdir(parents=True, exist_ok=True)
    for claim in claims:
        save_both(claim.draw, folder / "reproduced" / f"{claim.key}.svg")
    page = folder / "reproduced.md"
    page.write_text(markdown(claims), encoding="utf-8")
    return page
