"""From names to slots: hashing, kinds of columns, transformations and crosses."""
