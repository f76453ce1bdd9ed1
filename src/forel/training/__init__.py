"""From blocks of examples to a model: passes, checkpoints, progressive measures, history, scoring."""
