"""Logits at the ends of what numbers can be."""

import ml_dtypes
import numpy as np

RNG = np.random.default_rng(0)
N, K = 60, 5
LABELS = np.arange(N) % K
PLAIN = RNG.normal(size=(N, K)) + 2 * np.eye(K)[LABELS]

EXTREME = {
    "constant": np.full((N, K), 0.25),
    "all zero": np.zeros((N, K)),
    "huge": 1e30 * PLAIN,
    "huge and tiny": PLAIN * 10.0 ** RNG.uniform(-300, 300, (N, 1)),
    "near overflow": PLAIN * (0.9 * np.finfo(float).max / np.abs(PLAIN).max()),
    "huge in float32": (PLAIN * (0.9 * np.finfo(np.float32).max / np.abs(PLAIN).max())).astype(np.float32),
    "subnormal": PLAIN * 1e-310,
    "subnormal in float32": (PLAIN * 1e-40).astype(np.float32),
    "one value among zeros": np.where(np.eye(K)[LABELS] > 0, 5e-324, 0.0),
    "large common part": PLAIN + 1e15,
    "float16": PLAIN.astype(np.float16),
    "largest float16": np.where(np.eye(K)[LABELS] > 0, 65504, -65504).astype(np.float16),
    "bfloat16": PLAIN.astype(ml_dtypes.bfloat16),
    "largest bfloat16": np.where(np.eye(K)[LABELS] > 0, 3e38, -3e38).astype(ml_dtypes.bfloat16),
    "int8": np.clip(40 * PLAIN, -127, 127).astype(np.int8),
    "largest int64": np.where(np.eye(K)[LABELS] > 0, 2**63 - 1, -(2**63)),
}
