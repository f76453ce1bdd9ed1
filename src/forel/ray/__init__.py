"""Training on a cluster, on Ray: ``pip install forel[ray]``."""

from forel.ray.ray_workers import RayWorkers

__all__ = ["RayWorkers"]
