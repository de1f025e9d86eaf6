// The arithmetic that the page repeats when a control moves; each function is gfscore's of the same meaning.

const TIE_TOLERANCE = 1e-9;

// Place of each value, 1 for the largest; neighbours within TIE_TOLERANCE share the mean place; null stays null.
function places(values) {
  const order = values.map((_, index) => index).filter((index) => !isMissing(values[index]));
  order.sort((first, second) => values[second] - values[first]);
  const result = values.map(() => null);
  for (let start = 0; start < order.length; ) {
    let end = start + 1;
    while (end < order.length && values[order[end - 1]] - values[order[end]] <= TIE_TOLERANCE) end += 1;
    for (let at = start; at < end; at += 1) result[order[at]] = (start + 1 + end) / 2;
    start = end;
  }
  return result;
}

const sum = (values) => values.reduce((total, value) => total + value, 0);
const mean = (values) => sum(values) / values.length;

// Classes of the smallest value, with ties; null where a class has no samples.
function worstOf(values) {
  const present = values.map((_, index) => index).filter((index) => !isMissing(values[index]));
  const least = Math.min(...present.map((index) => values[index]));
  return present.filter((index) => values[index] <= least + TIE_TOLERANCE);
}

const penalised = (summary, lambda) => (summary ? summary.class_mean - lambda * summary.rdi : null);

// Smallest and largest FP over a box of class values (gfscore.audit.metrics.fp).
function penalisedBounds(low, high, lambda) {
  const k = low.length, lowMean = mean(low), ascending = [...low].sort((first, second) => first - second);
  let smallest = Infinity;
  for (let index = 0; index < k; index += 1) {
    const other = low[index] === ascending[0] ? ascending[1] : ascending[0];
    smallest = Math.min(
      smallest,
      lowMean + (high[index] - low[index]) / k - lambda * (high[index] - other),
      lowMean - lambda * (low[index] - other),
    );
  }
  const floor = ascending[k - 1], ends = [...high].sort((first, second) => first - second);
  let largest = -Infinity, below = 0, passed = 0;
  // For a largest value u the best point raises every class to min(U, u); `below` sums the ends under u.
  for (const top of [floor, ...ends.filter((end) => end >= floor)]) {
    while (passed < k && ends[passed] <= top) { below += ends[passed]; passed += 1; }
    const average = (below + (k - passed) * top) / k;
    largest = Math.max(largest, average - lambda * (top - Math.min(ends[0], top)));
  }
  return [smallest, largest];
}

// PASS, FAIL or INCONCLUSIVE for "at least tau" (gfscore.audit.verdicts.gate_rules.verdict_of); null without bounds or tau.
function verdictOf(low, high, tau) {
  if (isMissing(low) || isMissing(high) || isMissing(tau)) return null;
  if (low >= tau) return "PASS";
  return high < tau ? "FAIL" : "INCONCLUSIVE";
}

function spearman(first, second) {
  const both = first.map((_, index) => index).filter((index) => !isMissing(first[index]) && !isMissing(second[index]));
  const x = places(both.map((index) => first[index])), y = places(both.map((index) => second[index]));
  if (both.length < 2) return null;
  const centre = (both.length + 1) / 2;
  const product = sum(x.map((value, index) => (value - centre) * (y[index] - centre)));
  const norm = Math.sqrt(sum(x.map((value) => (value - centre) ** 2)) * sum(y.map((value) => (value - centre) ** 2)));
  return norm > 0 ? product / norm : null;
}
