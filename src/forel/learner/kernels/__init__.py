"""The compiled loops of the learner, as ordinary Python modules.

``loops`` has the loops over rows: gather the row's coordinates and weights, margin, loss and slope, steps, scatter.
``single_lane`` and ``many_lanes`` have the loops over coordinates and lanes, which call the functions of one coordinate
in ``updates``. Constants that depend on the settings are imported from ``reference``; ``kernel`` compiles the modules
for a ``KernelSpec``. ``intrinsics`` has operations that plain Python lacks, such as prefetch.
"""
