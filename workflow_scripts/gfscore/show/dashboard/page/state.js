// What the reader has chosen; it stands in the address's fragment, so that a view can be shared.

const DEFAULTS = {
  measure: DATA.measures[0].name,
  t: 1,
  lambda: DATA.fp_lambda,
  tau: null,
  metric: "rdi",
  sort: "place",
  order: "mean",
  find: "",
  from: 0,
  model: null,
  a: null,
  b: null,
  attribute: null,
};
const state = { ...DEFAULTS };
const NUMBERS = new Set(["t", "lambda", "tau", "from", "model", "a", "b", "attribute"]);
const listeners = [];
let writing = 0;

const onChange = (listener) => listeners.push(listener);

// Measures that the page opens with: the attack-free score before all, as the report does.
for (const kind of ["certified", "great"]) {
  const first = DATA.measures.find((measure) => measure.kind === kind);
  if (first) DEFAULTS.measure = first.name;
}

// The reader's, else the gate's. A measure without a rule has none: no threshold would mean anything there.
const tau = () => state.tau ?? gateRule(state.measure)?.threshold ?? null;

function readFragment() {
  const found = new URLSearchParams(location.hash.slice(1));
  Object.assign(state, DEFAULTS);
  for (const [key, text] of found) {
    if (!(key in DEFAULTS)) continue;
    const value = NUMBERS.has(key) ? Number(text) : text;
    if (!NUMBERS.has(key) || Number.isFinite(value)) state[key] = value;
  }
  if (!(state.measure in MEASURES)) state.measure = DEFAULTS.measure;
  if (!(state.metric in METRICS)) state.metric = DEFAULTS.metric;
  if (state.lambda < 0) state.lambda = DEFAULTS.lambda;
  for (const key of ["model", "a", "b"]) if (!MODELS[state[key]]) state[key] = null;
  if (!DATA.groups?.attributes[state.attribute]) state.attribute = null;
  if (!temperatures().includes(state.t)) state.t = 1;
}

const temperatures = () => (SWEEP && SWEEP.measure === state.measure ? SWEEP.temperatures : [1]);

// Some browsers refuse frequent changes of the address, so it follows a moment later.
function writeFragment() {
  clearTimeout(writing);
  writing = setTimeout(() => {
    const entries = Object.entries(state).filter(([key, value]) => value !== DEFAULTS[key] && value !== null);
    history.replaceState(null, "", "#" + new URLSearchParams(entries));
  }, 150);
}

function change(changes) {
  if (changes.measure && changes.measure !== state.measure) Object.assign(state, { tau: null, t: 1 });
  Object.assign(state, changes);
  writeFragment();
  refresh(Object.keys(changes));
}

function refresh(changed) {
  for (const listener of listeners) listener(new Set(changed));
}

// Computed once per change, used by every view.
let known = {};
function current() {
  const key = `${state.measure} ${state.t}`;
  if (known.key !== key) known = { key, entries: valuesAt(state.measure, state.t), measure: MEASURES[state.measure] };
  return known;
}
