// Controls, and the first paint.

function options(select, entries) {
  select.replaceChildren(...entries.map(([value, text]) => element("option", { value }, text)));
}

// A slider and a number field for the same value: the field takes any number, the slider is quick.
function numeric(id, key, allowed) {
  const set = (event) => {
    const value = event.target.valueAsNumber;
    if (Number.isFinite(value) && allowed(value)) change({ [key]: value });
  };
  at(id).addEventListener("input", set);
  at(`${id}-number`).addEventListener("input", set);
  // What was refused does not stay in the box beside a page that shows another value.
  at(`${id}-number`).addEventListener("change", (event) => {
    event.target.value = (key === "tau" ? tau() : state[key]) ?? "";
  });
}

function showControls(changed) {
  at("measure").value = state.measure;
  at("metric").value = state.metric;
  at("order").value = state.order;
  if (at("find") !== document.activeElement) at("find").value = state.find;
  const { measure } = current(), [lowest, highest] = measure.range;
  Object.assign(at("tau"), { min: lowest, max: highest, step: (highest - lowest) / 500 });
  for (const [id, value] of [["lambda", state.lambda], ["tau", tau()]]) {
    at(id).value = value ?? lowest;
    at(id).setAttribute("aria-valuetext", value === null ? "not chosen" : setting(value));
    if (at(`${id}-number`) !== document.activeElement) at(`${id}-number`).value = value ?? "";
  }
  const steps = temperatures();
  at("temperature-control").hidden = steps.length < 2;
  Object.assign(at("t"), { min: 0, max: steps.length - 1, step: 1 });
  at("t").value = steps.indexOf(state.t);
  const name = Object.entries(SWEEP?.chosen ?? {}).filter(([, chosen]) => chosen === state.t).map(([objective]) => objective.replaceAll("_", " "));
  at("t-value").textContent = temperature(state.t) + (name.length ? ` (T* of ${name.join(", ")})` : "");
  at("t").setAttribute("aria-valuetext", `T = ${at("t-value").textContent}`);
  at("measure-note").textContent = measure.explanation;
}

function start() {
  options(at("measure"), DATA.measures.map((measure) => [measure.name, `${measure.name}: ${measure.title}`]));
  options(at("metric"), Object.entries(METRICS));
  for (const id of ["model-select", "a-select", "b-select"]) options(at(id), MODELS.map((model, index) => [index, model.label]));
  at("measure").addEventListener("change", (event) => change({ measure: event.target.value }));
  at("metric").addEventListener("change", (event) => change({ metric: event.target.value }));
  at("order").addEventListener("change", (event) => change({ order: event.target.value, from: 0 }));
  at("find").addEventListener("input", (event) => change({ find: event.target.value, from: 0 }));
  at("from").addEventListener("input", (event) => change({ from: event.target.valueAsNumber }));
  at("t").addEventListener("input", (event) => change({ t: temperatures()[event.target.valueAsNumber] }));
  at("t-one").addEventListener("click", () => change({ t: 1 }));
  for (const [id, key] of [["model-select", "model"], ["a-select", "a"], ["b-select", "b"]]) {
    at(id).addEventListener("change", (event) => change({ [key]: Number(event.target.value) }));
  }
  at("ranking-csv").addEventListener("click", () => save(`${DATA.audit}-ranking.csv`, csv(at("ranking-table").shown), "text/csv"));
  at("lambda").max = Math.max(1, 2 * DATA.fp_lambda);
  numeric("lambda", "lambda", (value) => value >= 0);
  numeric("tau", "tau", () => true);
  listeners.unshift(showControls);
  window.addEventListener("hashchange", () => { readFragment(); everything(); });
  readFragment();
  everything();
  document.documentElement.dataset.ready = "yes";
}

const everything = () => refresh([...Object.keys(DEFAULTS), "everything"]);

start();

// For the browser's console, and for tests: the page's arithmetic, what it knows, and the data behind a chart.
const shown = (id, name = "rows") => viewOf(at(id)).data(name);
const settled = (id) => { const chart = drawn.get(at(id)); return Boolean(chart?.view && !chart.stale && !chart.embedding); };
window.dashboard = { DATA, state, change, shown, settled, number, lowerBound, upperBound, pValue, places, penalisedBounds, spearman };
