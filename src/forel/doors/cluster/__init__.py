"""Training on a cluster, on Ray: ``pip install forel[ray]``."""

from forel.doors.cluster.ray_workers import RayWorkers

__all__ = ["RayWorkers"]
