"""From samples to classes, disparity, comparison, agreement, groups and the verdict."""
