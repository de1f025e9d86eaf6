// The audit's numbers, and what they are at the chosen measure and temperature.

const DATA = JSON.parse(document.getElementById("data").textContent);
const CHARTS = JSON.parse(document.getElementById("charts").textContent);
const MANY_CLASSES = 40, CLASSES_LISTED = 30;
const GLYPHS = { PASS: "✓", FAIL: "×", INCONCLUSIVE: "?" };

function unpacked({ shape, f64 }) {
  const bytes = Uint8Array.from(atob(f64), (character) => character.charCodeAt(0));
  return { shape, values: new Float64Array(bytes.buffer) };
}

// One row of a packed array (rows, columns) as a plain array, null for NaN.
function rowOf(array, ...position) {
  const inner = array.shape.slice(position.length).reduce((size, length) => size * length, 1);
  let start = 0;
  position.forEach((index, axis) => { start = start * array.shape[axis] + index; });
  return Array.from(array.values.subarray(start * inner, (start + 1) * inner), (value) => (Number.isNaN(value) ? null : value));
}

const everyPacked = (object) => Object.fromEntries(Object.entries(object).map(([key, array]) => [key, unpacked(array)]));
const SCORES = Object.fromEntries(Object.entries(DATA.scores).map(([measure, arrays]) => [measure, everyPacked(arrays)]));
const SWEEP = DATA.sweep && { ...DATA.sweep, values: unpacked(DATA.sweep.values), metrics: everyPacked(DATA.sweep.metrics) };
const MODELS = DATA.models, CLASSES = DATA.classes;
// Of a single model there is no ranking, and no other to compare it with.
const SEVERAL = MODELS.length > 1;
// What charts write for a model or a class; tables and explanations have the whole label.
const SHORT = Object.fromEntries([...MODELS, ...CLASSES].map(({ label, short }) => [label, short]));
const MEASURES = Object.fromEntries(DATA.measures.map((measure) => [measure.name, measure]));
// Metrics to hold against the mean, by name. FP follows lambda and has a chart of its own.
const METRICS = Object.fromEntries(DATA.metrics.filter((metric) => !metric.level && !metric.lambda).map((metric) => [metric.name, `${metric.title} (${metric.better})`]));

// Class values and summary of every model at a measure and temperature; bounds only at T = 1, since a temperature that
// was looked for on these samples has none that hold.
function valuesAt(measure, t) {
  const scores = SCORES[measure], atOne = t === 1 || !SWEEP || SWEEP.measure !== measure;
  const step = atOne ? null : SWEEP.temperatures.indexOf(t);
  return MODELS.map((model, index) => {
    const n = rowOf(scores.n, index), known = DATA.summary[measure][index];
    const values = atOne ? rowOf(scores.value, index) : rowOf(SWEEP.values, index, step);
    const none = CLASSES.map(() => null);
    return {
      index,
      model,
      n,
      values,
      low: atOne ? rowOf(scores.low, index) : none,
      high: atOne ? rowOf(scores.high, index) : none,
      accuracy: rowOf(scores.accuracy, index),
      summary: atOne || !known ? known : { accuracy: known.accuracy, robust_accuracy: known.robust_accuracy, robust_accuracy_source: known.robust_accuracy_source, ...summaryAt(index, step, values) },
      bounded: atOne,
    };
  }).filter((entry) => entry.summary);
}

// The metrics of one model at a temperature of the slider, and its worst classes.
function summaryAt(index, step, values) {
  const metrics = Object.entries(SWEEP.metrics).map(([name, array]) => [name, rowOf(array, index)[step]]);
  return { ...Object.fromEntries(metrics), worst: worstOf(values), suspects: [] };
}

// The gate's rule on the worst class of a measure, if it has one: its bounds hold for all models together.
const gateRule = (measure) =>
  DATA.gate.find((rule) => rule.measure === measure && rule.statistic === "wcr" && rule.direction === "at_least");

// The gate judges scores at T = 1.
function gateVerdict(index) {
  if (state.t !== 1) return null;
  const verdicts = DATA.gate.map((rule) => rule.models[index]).filter(Boolean).map((model) => model.verdict);
  if (!verdicts.length) return null;
  if (verdicts.includes("FAIL")) return "FAIL";
  return verdicts.every((verdict) => verdict === "PASS") ? "PASS" : "INCONCLUSIVE";
}

function modelVerdict(entry, measure, tau) {
  if (!entry.bounded) return null;
  const judged = gateRule(measure)?.models[entry.index];
  return judged ? verdictOf(judged.low, judged.high, tau) : verdictOf(entry.summary.wcr_low, entry.summary.wcr_high, tau);
}
