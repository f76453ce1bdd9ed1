"""Hooks of mkdocs: pages of the API reference, figures, links to sources, formulas."""

import re
from typing import Any

from mkdocs.structure.files import File, Files

from website import figures, reference
from website.formulas import mathml

_SOURCE = re.compile(r"\]\(\.\./src/(forel[\w/]*)\.py\)")


def on_config(config: Any) -> Any:
    """Add the API reference to the navigation."""
    config.nav.append({"Reference": reference.nav()})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the API reference and the figures drawn by pages."""
    files.append(File.generated(config, "reference/api.md", content=reference.front()))
    for name in reference.modules():
        files.append(File.generated(config, f"reference/{name}.md", content=reference.page(name)))
    for file in list(files.documentation_pages()):
        if file.generated_by is None:
            folder = file.src_uri.rpartition("/")[0]
            for name, content in figures.drawn(file.content_string).items():
                files.append(File.generated(config, f"{folder}/figures/{name}".lstrip("/"), content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Show figures for both themes, highlight doctests, and redirect links from source files to the API reference."""
    markdown = figures.shown(markdown).replace("```python\n>>>", "```pycon\n>>>")
    return _SOURCE.sub(_linked, markdown)


def _linked(found: re.Match[str]) -> str:
    return f"](reference/{found[1].replace('/', '.').removesuffix('.__init__')}.md)"


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Convert LaTeX to MathML."""
    return mathml(html)
