// What each control changes: selections, FP, which is linear in lambda, and numbers that Python has tabulated.

const byId = (id) => document.getElementById(id);

function drawFirst() {
  const chosen = state.model ?? DATA.chosen;
  const { scale, rows } = DATA.evidence;
  const strip = DATA.strip, judged = strip.scale.threshold, tau = state.tau ?? judged;
  paintAll();
  drawRows(byId("evidence").querySelector("table"), rows[chosen], { ...scale, threshold: DATA.same_scale ? tau : scale.threshold });
  byId("evidence-model").textContent = DATA.models[chosen].label;
  if (!byId("strip")) return;
  // Signs are verdicts of the rule, which say nothing of another threshold.
  const shown = tau === judged ? strip.rows : strip.rows.map((row) => ({ ...row, verdict: null }));
  drawRows(byId("strip").querySelector("table"), shown, { ...strip.scale, threshold: tau }, chosen);
  // As gate_rules.verdict_of: a bound that equals the threshold passes.
  const count = (test) => strip.rows.filter((row) => !isMissing(row.low) && !isMissing(row.high) && test(row)).length, more = strip.more_is_better;
  const above = count(({ low }) => (more ? low >= tau : low > tau)), below = count(({ high }) => (more ? high < tau : high <= tau));
  if (isMissing(tau)) { byId("tau-out").textContent = "move to set"; return; }
  byId("tau").value = tau;
  if (byId("strip-tau")) byId("strip-tau").textContent = setting(tau);
  const differs = tau === judged || isMissing(judged) ? "" : ` (the rule's is ${setting(judged)})`;
  byId("tau-out").textContent = `${setting(tau)}${differs}: ${above} surely above, ${below} surely below, ${strip.rows.length - above - below} open`;
  for (const place of document.querySelectorAll(".tau-value")) if (DATA.same_scale) place.textContent = setting(tau);
}

// FP is the mean of the classes less lambda times RDI.
function metricValues(measure, metric, lambda, step) {
  const known = DATA.ranking[measure].metrics;
  const at = (name) => (step === null ? known[name].value : DATA.models.map((_, model) => rowOf(DATA.temperatures.arrays[name], model)[step]));
  if (!DATA.metrics[metric].lambda) return at(metric);
  const mean = at("class_mean"), rdi = at("rdi");
  return mean.map((value, model) => (value === null || rdi[model] === null ? null : value - lambda * rdi[model]));
}

// A row as gfscore.show.page.tracks.Track has it; of an evidence interval, the value is known to lie between it and most.
function track(name, value, low, high, { most = null, highest = null } = {}) {
  const band = isMissing(value) || isMissing(most) ? null : [value, most], isRange = band !== null && value < most;
  const text = isRange ? interval(value, most, highest) : number(value);
  const bounds = isMissing(low) ? "" : `; interval ${interval(low, high, highest)}`;
  return { name: name.label, short: name.short, value, low, high, band, closed: true, point: isRange ? null : value, text, about: `${name.label}: ${text}${bounds}` };
}

function drawRanking() {
  const measure = state.measure ?? DATA.measure, metric = state.metric ?? DATA.metric, about = DATA.metrics[metric];
  const lambda = state.lambda ?? DATA.fp_lambda, known = DATA.ranking[measure], own = known.metrics[metric];
  const tempered = DATA.temperatures && DATA.temperatures.measure === measure;
  const one = tempered ? DATA.temperatures.temperatures.indexOf(1) : null, step = tempered && state.temperature !== null && DATA.temperatures.temperatures[state.temperature] !== undefined ? state.temperature : one;
  const plain = step === one, values = metricValues(measure, metric, lambda, plain ? null : step);
  const bounded = plain && own.low && !(about.lambda && lambda !== DATA.fp_lambda);
  const rows = DATA.models.map((model, index) => {
    const low = bounded ? own.low[index] : null, high = bounded ? own.high[index] : null;
    return { ...track(model, values[index], low, high, { most: own.most?.[index], highest: own.highest }), model: index };
  });
  const rank = (row) => (isMissing(row.value) ? Infinity : -about.direction * row.value);
  rows.sort((a, b) => rank(a) - rank(b) || a.model - b.model);
  const ends = rows.flatMap((row) => [row.value, row.low, row.high, ...(row.band ?? [])]).filter((value) => !isMissing(value));
  const scale = scaleOf(Math.min(own.scale.low, ...ends), Math.max(own.scale.high, ...ends));
  const table = byId("ranking").querySelector("table");
  table.classList.toggle("ranges", rows.some((row) => row.band && row.band[0] < row.band[1]));
  drawRows(table, rows, scale);
  drawAxis(table, scale);
  byId("ranking-title").textContent = `${about.title} by ${measure}, best first (${about.better})`;
  const swaps = about.lambda && plain ? (DATA.swaps[measure] ?? []) : [];
  const next = swaps.filter(([at]) => at > lambda).sort((a, b) => a[0] - b[0])[0];
  const turn = next ? ` At λ = ${number(next[0])} ${DATA.models[next[2]].label} passes ${DATA.models[next[1]].label}.` : about.lambda && plain ? " No larger λ changes the order." : "";
  const bounds = bounded ? " Intervals of each model at T = 1." : " No intervals: " + (plain ? "they are known at the audit's λ, or not at all." : "T was moved on these samples.");
  const unit = about.unitless ? "no unit" : known.unit;
  // Of an evidence interval both ends are known of some metrics, the lower one of all.
  const proven = own.most ? " Band: from what is proven to what attacks leave." : known.metrics.value.most ? " Of what is proven alone." : "";
  byId("ranking-note").textContent = `${known.title}, ${unit}.${bounds}${proven}${turn}`;
  byId("measure").value = measure;
  byId("metric").value = metric;
  byId("lambda").value = lambda;
  byId("lambda-out").textContent = setting(lambda);
  byId("lambda-control").hidden = !about.lambda;
  if (byId("temperature")) {
    byId("temperature-control").hidden = !tempered;
    if (tempered) { byId("temperature").value = step; byId("temperature-out").textContent = temperature(DATA.temperatures.temperatures[step]); }
  }
}

const MOST_OF_PAIR = 20;

function drawPair() {
  if (!byId("pairs")) return;
  const measure = DATA.measure, known = DATA.pairs[measure];
  const first = state.first ?? Number(byId("first-model").value), second = state.second ?? Number(byId("second-model").value);
  byId("first-model").value = first;
  byId("second-model").value = second;
  const place = known.pairs.findIndex(([a, b]) => (a === first && b === second) || (a === second && b === first));
  const title = byId("pairs-title"), table = byId("pairs").querySelector("table");
  if (place < 0) {
    title.textContent = first === second ? "Choose two models" : "This pair was not compared";
    table.tBodies[0].replaceChildren();
    return;
  }
  const turned = known.pairs[place][0] !== first;
  const oriented = ([value, low, high]) => (turned ? [value, low, high].map((end) => (end === null ? null : -end)) : [value, low, high]);
  const swapped = ([value, low, high]) => (turned ? [value, high, low] : [value, low, high]);
  const difference = rowOf(known.difference, place), low = rowOf(known.low, place), high = rowOf(known.high, place);
  const classes = DATA.classes.map((name, index) => ({ name, ends: swapped(oriented([difference[index], low[index], high[index]])) })).filter(({ ends }) => ends[0] !== null);
  classes.sort((a, b) => Math.abs(b.ends[0]) - Math.abs(a.ends[0]));
  const rows = classes.slice(0, MOST_OF_PAIR).map(({ name, ends }) => track(name, ...ends));
  const widest = Math.ceil(10 * Math.max(...rows.flatMap((row) => [row.low, row.high]).filter((end) => !isMissing(end)).map(Math.abs))) / 10 || 1;
  const scale = scaleOf(-widest, widest, 0);
  drawRows(table, rows, scale);
  drawAxis(table, scale);
  const whole = swapped(oriented(rowOf(known.overall, place)));
  title.textContent = `${DATA.models[first].label} minus ${DATA.models[second].label}: ${withInterval(...whole)} over all samples`;
}

// Numbers of the classes that a search finds.
function found() {
  const wanted = state.find.trim().toLowerCase();
  return wanted ? DATA.classes.flatMap((name, index) => (name.label.toLowerCase().includes(wanted) ? [index] : [])) : [];
}

// Values of the classes that a search finds, in every model.
function drawFound() {
  const host = byId("found"), wanted = state.find.trim();
  if (!host) return;
  byId("find").value = state.find;
  paintAll();
  const places = found();
  if (!wanted) { host.replaceChildren(); return; }
  const listed = places.slice(0, 8), models = DATA.models.slice(0, 12), measure = state.measure ?? DATA.measure;
  const head = element("tr", {}, element("th", { scope: "col" }, `${plural(places.length, "class")} by ${measure}`), ...models.map((model) => element("th", { scope: "col", class: "num", title: model.label }, model.short)));
  const lines = listed.map((index) => element("tr", {}, element("th", { scope: "row" }, DATA.classes[index].label),
    ...models.map((_, model) => element("td", { class: "num" }, number(rowOf(DATA.values[measure], model)[index])))));
  host.replaceChildren(element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Classes found" }, element("table", { class: "numbers" }, element("thead", {}, head), element("tbody", {}, ...lines))));
  const parts = [[listed, places, "class"], [models, DATA.models, "model"]].filter(([some, all]) => some.length < all.length);
  const words = parts.map(([some, all, noun]) => `the first ${count(some.length)} of ${plural(all.length, noun)}`);
  if (words.length) host.append(element("p", { class: "note" }, `Here: ${words.join(", ")}.`));
}

function listen() {
  byId("strip")?.addEventListener("click", (event) => {
    const key = event.target.dataset?.model;
    if (key === undefined) return;
    change({ model: Number(key) }, drawFirst);
    byId("strip").querySelector(`[data-model="${key}"]`).focus();
  });
  byId("tau")?.addEventListener("input", (event) => change({ tau: Number(event.target.value) }, drawFirst));
  byId("measure").addEventListener("change", (event) => change({ measure: event.target.value, temperature: null }, () => { drawRanking(); drawFound(); showMeasure(); }));
  byId("metric").addEventListener("change", (event) => change({ metric: event.target.value }, drawRanking));
  byId("lambda").addEventListener("input", (event) => change({ lambda: Number(event.target.value) }, drawRanking));
  byId("temperature")?.addEventListener("input", (event) => change({ temperature: Number(event.target.value) }, drawRanking));
  byId("first-model")?.addEventListener("change", (event) => change({ first: Number(event.target.value), second: Number(byId("second-model").value) }, drawPair));
  byId("second-model")?.addEventListener("change", (event) => change({ second: Number(event.target.value), first: Number(byId("first-model").value) }, drawPair));
  byId("find")?.addEventListener("input", (event) => change({ find: event.target.value }, drawFound));
}
