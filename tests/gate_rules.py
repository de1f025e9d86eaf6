"""Rules of gates."""


def gate_rule(measure, *, statistic="wcr", **changes):
    """Rule of a gate as config.yaml writes it, for one look; `changes` hold the threshold."""
    rule = {"measure": measure, "statistic": statistic, "confidence": 0.95}
    return rule | {"looks": {"planned": 1, "this": 1}, "on_inconclusive": "stop"} | changes
