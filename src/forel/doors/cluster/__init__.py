"""Training on a cluster, on Ray: ``pip install forel[ray]``."""

from forel.doors.cluster.ray_keys import RayKeys
from forel.doors.cluster.ray_lanes import RayLanes
from forel.doors.cluster.ray_learners import RayLearners
from forel.doors.cluster.ray_shards import RayShards
from forel.doors.cluster.ray_workers import RayWorkers

__all__ = ["RayKeys", "RayLanes", "RayLearners", "RayShards", "RayWorkers"]
