"""Class values, disparity, calibration, comparison and agreement of models, groups, and the verdict of an audit."""
