"""Scores and disparities written out with loops, as they are defined, sharing no code with the package.

Slow and numerically naive on purpose: only for logits of moderate size.
"""

import math

B = math.sqrt(math.pi / 2)


def sigmoid(row):
    return [1 / (1 + math.exp(-z)) for z in row]


def softmax(row):
    top = max(row)
    powers = [math.exp(z - top) for z in row]
    return [power / sum(powers) for power in powers]


def divided(row, temperature):
    return [z / temperature for z in row]


OUTPUT_LAYERS = {
    "sigmoid": lambda row, t: sigmoid(divided(row, t)),
    "softmax": lambda row, t: softmax(divided(row, t)),
    "sigmoid-of-softmax": lambda row, t: sigmoid(divided(softmax(row), t)),
    "softmax-of-sigmoid": lambda row, t: softmax(divided(sigmoid(row), t)),
}


def score(row, label, activation, temperature):
    outputs = OUTPUT_LAYERS[activation](row, temperature)
    rival = max(output for j, output in enumerate(outputs) if j != label)
    return B * max(outputs[label] - rival, 0.0)


def scores(logits, labels, activation, temperature):
    return [
        score([float(z) for z in row], int(y), activation, temperature) for row, y in zip(logits, labels, strict=True)
    ]


def members(values, labels, k):
    return [value for value, label in zip(values, labels, strict=True) if label == k]


def mean(values):
    return math.fsum(values) / len(values)


def class_means(values, labels, classes):
    groups = [members(values, labels, k) for k in range(classes)]
    return [mean(group) if group else None for group in groups]


def class_variances(values, labels, classes):
    result = []
    for k in range(classes):
        group = members(values, labels, k)
        if len(group) < 2:
            result.append(None)
            continue
        center = mean(group)
        result.append(math.fsum((value - center) ** 2 for value in group) / (len(group) - 1))
    return result


def rdi(x):
    return max(x) - min(x)


def nrgc(x):
    total = 0.0
    for a in x:
        for b in x:
            total += abs(a - b)
    return total / (2 * len(x) ** 2 * mean(x))


def fp(x, lam):
    return mean(x) - lam * rdi(x)


def average_ranks(x):
    """1 for the smallest; equal values share the mean of their places."""
    return [1 + sum(b < a for b in x) + (sum(b == a for b in x) - 1) / 2 for a in x]


def pearson(x, y):
    mx, my = mean(x), mean(y)
    sxy = math.fsum((a - mx) * (b - my) for a, b in zip(x, y, strict=True))
    sxx = math.fsum((a - mx) ** 2 for a in x)
    syy = math.fsum((b - my) ** 2 for b in y)
    return sxy / math.sqrt(sxx * syy) if sxx > 0 and syy > 0 else None


def spearman(x, y):
    return pearson(average_ranks(x), average_ranks(y))


def hoeffding(n, classes, alpha, width):
    return width * math.sqrt(math.log(2 * classes / alpha) / (2 * n))


def empirical_bernstein(n, variance, classes, alpha, width):
    # Maurer and Pontil: one side of one class at level delta; here delta = alpha / (2 K).
    delta = alpha / (2 * classes)
    return math.sqrt(2 * variance * math.log(2 / delta) / n) + 7 * width * math.log(2 / delta) / (3 * (n - 1))


def wealth(group, m, target):
    """Largest wealth, in logarithms, of betting that the mean of values in [0, 1] exceeds m, over the values seen."""
    most, log_wealth, total, squares = -math.inf, 0.0, 0.5, 0.25
    for t, x in enumerate(group, start=1):
        variance = squares / t
        fraction = min(math.sqrt(2 * target / (len(group) * variance)), 0.75 / m)
        log_wealth += math.log(1 + fraction * (x - m))
        most = max(most, log_wealth)
        total += x
        squares += (x - total / (t + 1)) ** 2
    return most


def betting_lower(group, alpha):
    """Smallest mean that betting does not refute, by trying from above in ever smaller steps."""
    target, low, step = math.log(1 / alpha), 0.0, 0.5
    while step > 1e-11:
        if wealth(group, low + step, target) >= target:
            low += step
        step /= 2
    return min(low, mean(group))


def betting(group, classes, alpha):
    side = alpha / (2 * classes)
    return betting_lower(group, side), 1 - betting_lower([1 - x for x in group], side)


def class_interval(group, method, classes, alpha, value_range):
    lowest, highest = value_range
    if not group or (method == "empirical_bernstein" and len(group) < 2):
        return lowest, highest
    width = highest - lowest
    if method == "betting":
        low, high = betting([(x - lowest) / width for x in group], classes, alpha)
        return lowest + width * low, lowest + width * high
    if method == "hoeffding":
        half = hoeffding(len(group), classes, alpha, width)
    else:
        center = mean(group)
        variance = math.fsum((value - center) ** 2 for value in group) / (len(group) - 1)
        half = empirical_bernstein(len(group), variance, classes, alpha, width)
    return max(lowest, mean(group) - half), min(highest, mean(group) + half)


def log_loss(logits, labels, temperature):
    losses = []
    for row, y in zip(logits, labels, strict=True):
        probabilities = softmax([float(z) / temperature for z in row])
        losses.append(-math.log(probabilities[int(y)]))
    return mean(losses)


def class_calibration_error(logits, labels, k, temperature, bins):
    """Sum over bins of (share of samples in the bin) * |mean probability of k - share of label k|."""
    filled = [[] for _ in range(bins)]
    for row, y in zip(logits, labels, strict=True):
        p = softmax([float(z) / temperature for z in row])[k]
        filled[min(int(p * bins), bins - 1)].append((p, float(y == k)))
    error = 0.0
    for bin_ in filled:
        if bin_:
            gap = abs(mean([p for p, _ in bin_]) - mean([hit for _, hit in bin_]))
            error += len(bin_) / len(labels) * gap
    return error
