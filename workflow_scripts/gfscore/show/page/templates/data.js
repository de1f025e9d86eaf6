// The audit's numbers, and what the reader has chosen.

async function unzipped(id) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

function unpacked({ shape, f64 }) {
  const bytes = Uint8Array.from(atob(f64), (letter) => letter.charCodeAt(0));
  return { shape, values: new Float64Array(bytes.buffer) };
}

// One row of a packed array of two axes as a plain array, null for NaN.
const rowOf = ({ shape, values }, index) =>
  Array.from(values.subarray(index * shape[1], (index + 1) * shape[1]), (value) => (Number.isNaN(value) ? null : value));

const DEFAULTS = { model: null, tau: null, measure: null, metric: null, lambda: null, temperature: null, first: null, second: null, find: "" };
const state = { ...DEFAULTS };
const TEXTS = new Set(["measure", "metric", "find"]);
let DATA = null, writing = 0;

function readFragment() {
  Object.assign(state, DEFAULTS);
  for (const [key, text] of new URLSearchParams(location.hash.slice(1))) {
    if (Object.hasOwn(DEFAULTS, key)) state[key] = TEXTS.has(key) ? text : Number.isFinite(Number(text)) ? Number(text) : null;
  }
  if (!Object.hasOwn(DATA.ranking, state.measure ?? "")) state.measure = null;
  if (!Object.hasOwn(DATA.metrics, state.metric ?? "")) state.metric = null;
  for (const key of ["model", "first", "second"]) if (!DATA.models[state[key]]) state[key] = null;
}

// Some browsers refuse frequent changes of the address, so it follows a moment later.
function change(changes, redraw) {
  Object.assign(state, changes);
  clearTimeout(writing);
  writing = setTimeout(() => {
    const entries = Object.entries(state).filter(([key, value]) => value !== DEFAULTS[key] && value !== null);
    history.replaceState(null, "", "#" + new URLSearchParams(entries));
  }, 150);
  redraw();
}
