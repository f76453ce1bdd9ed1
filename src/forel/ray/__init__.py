"""Training on a cluster, on Ray: ``pip install forel[ray]``."""

from forel.ray.ray_keys import RayKeys
from forel.ray.ray_lanes import RayLanes
from forel.ray.ray_learners import RayLearners
from forel.ray.ray_shards import RayShards
from forel.ray.ray_workers import RayWorkers

__all__ = ["RayKeys", "RayLanes", "RayLearners", "RayShards", "RayWorkers"]
