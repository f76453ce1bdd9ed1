"""From text, tables and dicts to blocks: a parser for each format."""
