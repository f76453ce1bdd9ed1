"""The compiled loops of the learner, as ordinary Python modules.

``loops`` reads like the algorithm: gather the row's coordinates and weights, margin, loss and slope, steps, scatter.
``single_lane`` and ``many_lanes`` do that for coordinates, by the functions of one coordinate in ``rates``, ``updates``
and ``skipped_rounds``. What depends on settings is imported from ``reference``; ``kernel`` compiles these modules for a
``KernelSpec``. ``intrinsics`` has what only compiled code can do.
"""
