// Which model is better: FP at the chosen lambda, re-ranked as it moves, and where each model stood at lambda = 0.

const at = (id) => document.getElementById(id);
const VERDICT_WORDS = { PASS: "passes", FAIL: "fails", INCONCLUSIVE: "undecided" };

function ranked() {
  const { entries, measure } = current();
  const values = entries.map((entry) => penalised(entry.summary, state.lambda));
  const now = places(values), before = places(entries.map((entry) => penalised(entry.summary, 0)));
  const rows = entries.map((entry, index) => {
    const { low, high } = entry, bounds = entry.bounded ? penalisedBounds(low, high, state.lambda) : [null, null];
    return { ...entry, fp: values[index], fp_low: bounds[0], fp_high: bounds[1], place: now[index], before: before[index] };
  });
  rows.sort((first, second) => (first.place ?? Infinity) - (second.place ?? Infinity) || first.model.label.localeCompare(second.model.label));
  return { rows, measure };
}

function rankingSentence(rows) {
  const best = rows.filter((row) => row.place === rows[0].place), moved = rows.filter((row) => row.place !== row.before).length;
  const lead = best.length > 1 ? `${best.length} models share the first place` : `${best[0].model.label} ranks first`;
  const change = !state.lambda ? "with no penalty on disparity" : moved ? `and ${moved} of ${rows.length} models stand elsewhere than at λ = 0` : "and no model moves from its place at λ = 0";
  return rows.length === 1 ? `One model: ${rows[0].model.label}, FP ${number(rows[0].fp)} at λ = ${setting(state.lambda)}` : `${lead} by FP at λ = ${setting(state.lambda)}, ${change}`;
}

function moveText(row) {
  const steps = row.before - row.place;
  return setting(row.before) + (steps ? ` ${steps > 0 ? "▲" : "▼"}${setting(Math.abs(steps))}` : "");
}

function badge(verdict) {
  const text = verdict ? `${GLYPHS[verdict]} ${verdict}` : "–";
  return element("span", { class: "badge " + (verdict ?? "none").toLowerCase() }, text);
}

function rankingColumns(measure) {
  const { entries } = current();
  const highest = measure.range[1];
  const ofMetric = ({ name, title, about, better, direction, bounded }) => {
    const ends = (row) => (bounded ? [row.summary[`${name}_low`], row.summary[`${name}_high`]] : []);
    return {
      key: name, title, about: `${about}; ${better}`, numeric: true, best: direction > 0,
      csv: bounded ? [name, `${name}_low`, `${name}_high`] : [name],
      value: (row) => row.summary[name],
      values: (row) => [row.summary[name], ...ends(row)],
      node: (row) => valueNode(row.summary[name], ...(bounded ? ends(row) : [null, null]), measure.highest[name]),
    };
  };
  // The worst class is named beside its value.
  const withWorstClass = (column) => ({
    ...column,
    csv: [...column.csv, "worst_classes"],
    values: (row) => [...column.values(row), row.summary.worst.map((index) => CLASSES[index].name).join("|")],
    node: (row) => element("span", {}, column.node(row), element("small", { class: "bounds" }, ...breakable(worstNames(row)))),
  });
  const shown = DATA.metrics.filter((metric) => metric.ranking && !metric.lambda && metric.name !== "value");
  const share = (key, title, about) => ({ key, title, about, numeric: true, best: true, value: (row) => row.summary[key], text: (row) => number(row.summary[key]) });
  const columns = [
    { key: "model", title: "Model", value: (row) => row.model.label, node: modelNode },
    {
      key: "place", title: "Place", about: "Place by FP at the chosen lambda, and by the class mean alone; ties share the mean", numeric: true,
      csv: ["place", "place_at_lambda_0"], value: (row) => row.place, values: (row) => [row.place, row.before],
      node: (row) => element("span", { class: "value" }, setting(row.place), element("small", { class: "bounds" }, `λ = 0: ${moveText(row)}`)),
    },
    { key: "gate", title: gateTitle(measure), about: "Verdict of the audit's gate, all rules together", value: (row) => gateVerdict(row.index) ?? "", node: (row) => badge(gateVerdict(row.index)) },
    ...(tau() === null ? [] : [{ key: "at_tau", title: `WCR ≥ ${setting(tau())}`, about: "Verdict at the chosen tau, with the confidence of the model's intervals; under a rule of the gate, with the rule's", value: (row) => modelVerdict(row, state.measure, tau()) ?? "", node: (row) => badge(modelVerdict(row, state.measure, tau())) }]),
    {
      key: "fp", title: "FP", numeric: true, best: true, csv: ["fp", "fp_low", "fp_high"], about: `Class mean minus ${setting(state.lambda)} times RDI`,
      value: (row) => row.fp, values: (row) => [row.fp, row.fp_low, row.fp_high], node: (row) => valueNode(row.fp, row.fp_low, row.fp_high, highest),
    },
    ...shown.map((metric) => (metric.name === "wcr" ? withWorstClass(ofMetric(metric)) : ofMetric(metric))),
    ...falsifiedColumns(),
    share("accuracy", "Accuracy", "Clean accuracy on the same samples"),
    robustColumn(entries),
  ];
  const told = (column) => !column.key.match(/^(robust_accuracy|falsified)/) || entries.some((row) => !isMissing(column.value(row)));
  return columns.filter((column) => told(column) && (column.key !== "place" || SEVERAL));
}

// Robust accuracy, by the attack that the heading names, or each row where models differ in it.
function robustColumn(entries) {
  const words = ({ robust_accuracy_source: source }) => (source === "published" ? "as published" : source ?? "");
  const sources = [...new Set(entries.map((row) => words(row.summary)).filter(Boolean))], one = sources.length === 1;
  return {
    key: "robust_accuracy", title: "Robust", under: one ? sources[0] : null, numeric: true, best: true,
    about: `Share classified correctly under attack, not measured in this audit: ${one ? sources[0] : "where it is from stands in each row"}`,
    csv: ["robust_accuracy", "robust_accuracy_source"],
    value: (row) => row.summary.robust_accuracy, values: (row) => [row.summary.robust_accuracy, row.summary.robust_accuracy_source],
    node: (row) => element("span", { class: "value" }, number(row.summary.robust_accuracy), ...(one ? [] : [element("small", { class: "bounds" }, words(row.summary))])),
  };
}

// Says which measures the gate judges, unless it is the one that is shown.
function gateTitle(measure) {
  const judged = [...new Set(DATA.gate.map((rule) => rule.measure))];
  return judged.every((name) => name === measure.name) ? "Gate" : `Gate (${judged.join(", ")})`;
}

// One column per measure of distances, named where there are several.
function falsifiedColumns() {
  const known = (state.t === 1 && DATA.falsification?.[state.measure]) || {}, several = Object.keys(known).length > 1;
  return Object.entries(known).map(([distances, rows]) => {
    const key = several ? `falsified_${distances}` : "falsified", found = (row) => ["rate", "low", "high"].map((name) => rows[row.index]?.[name]);
    return {
      key, title: several ? `Falsified (${distances})` : "Falsified", numeric: true,
      about: `Share of correctly classified samples whose score exceeds the distance of an adversarial example found by ${distances}: a lower bound on violations`,
      csv: [key, `${key}_low`, `${key}_high`], value: (row) => found(row)[0], values: found, node: (row) => valueNode(...found(row), 1),
    };
  });
}

function worstNames(row) {
  const names = row.summary.worst.map((index) => classPhrase(CLASSES[index].label));
  return names.length > 2 ? `${names.length} classes tied` : names.join(", ");
}

function valueNode(value, low, high, highest) {
  const bounds = isMissing(low) || isMissing(high) ? [] : [element("small", { class: "bounds" }, interval(low, high, highest))];
  return element("span", { class: "value" }, number(value), ...bounds);
}

// A name may break behind its separators, and anywhere only in a piece that is too long.
function breakable(name) {
  const pieces = name.split(/(?<=[_/.\- ])/);
  return pieces.flatMap((piece) => (piece.length > 18 ? [element("span", { class: "long" }, piece)] : [piece, element("wbr")]));
}

function modelNode(row) {
  const open = () => { change({ model: row.index }); at("model").scrollIntoView(); };
  return element("span", {}, element("button", { type: "button", class: "link", onclick: open, title: "See this model in depth" }, ...breakable(row.model.label)),
    ...(row.model.about ? [element("small", { class: "bounds" }, ...breakable(row.model.about))] : []));
}

function showRanking() {
  const { rows, measure } = ranked(), [lowest, highest] = measure.range;
  at("ranking-takeaway").textContent = rankingSentence(rows);
  const points = rows.flatMap((row) => [
    { model: row.model.label, what: "class mean", value: row.summary.class_mean, lower: row.summary.class_mean_low ?? row.summary.class_mean, upper: row.summary.class_mean_high ?? row.summary.class_mean, text: withInterval(row.summary.class_mean, row.summary.class_mean_low, row.summary.class_mean_high, highest) },
    { model: row.model.label, what: "FP", value: row.fp, lower: row.fp_low ?? row.fp, upper: row.fp_high ?? row.fp, text: withInterval(row.fp, row.fp_low, row.fp_high, highest) },
  ]);
  const ends = points.flatMap((point) => [point.lower, point.upper]).filter((value) => !isMissing(value));
  const low = Math.min(...ends), high = Math.max(...ends, low + 1e-6), margin = 0.03 * (high - low);
  draw(at("ranking-chart"), "ranking", {
    data: { rows: points },
    signals: { low: low - margin, high: high + margin },
    bands: rows.length,
    words: { "@value": axisTitle(measure) },
  });
  if (SEVERAL) showSwaps();
  table(at("ranking-table"), {
    columns: rankingColumns(measure),
    rows,
    caption: at("ranking-heading").textContent,
    sorted: { key: state.sort, change: (sort) => change({ sort }) },
    chosen: (row) => SEVERAL && row.index === chosenModel(),
  });
  at("ranking-note").textContent = intervalNote(measure);
}

function showSwaps() {
  const swaps = DATA.swaps[state.measure].filter(() => state.t === 1);
  const most = Number(at("lambda").max);
  const shown = swaps.filter(([lambda]) => lambda <= most).map(([lambda, before, after]) => ({ lambda, words: `${MODELS[after].label} passes ${MODELS[before].label}` }));
  draw(at("swaps-chart"), "swaps", { data: { rows: shown }, signals: { most } });
  tableBehind(at("swaps-data"), () => ({
    rows: swaps.map(([lambda, before, after]) => ({ lambda, above: MODELS[after].label, below: MODELS[before].label })),
    columns: [
      { key: "lambda", title: "λ", numeric: true, value: (row) => row.lambda, text: (row) => number(row.lambda) },
      { key: "above", title: "from here on above", value: (row) => row.above, text: (row) => row.above },
      { key: "below", title: "is", value: (row) => row.below, text: (row) => row.below },
    ],
  }));
  at("swaps-note").textContent = state.t !== 1 ? "Exact swaps are computed at T = 1." : shown.length ? `Each tick marks an exact λ at which two models change places (${shown.length}).` : "No two models change places in this range of λ.";
}

const isNarrow = () => window.innerWidth < 480;
const axisTitle = (measure) => (isNarrow() ? [measure.name, measure.unit, "higher is better"] : [measure.title, `(${measure.unit}; higher is better)`]);

function intervalNote(measure) {
  if (state.t !== 1) return `At T = ${temperature(state.t)} values carry no interval and no verdict: a temperature that is looked for on these samples has none that holds.`;
  return `Small figures and lines: intervals (${measure.interval}), joint over the classes of a model with ${percent(measure.confidence)} confidence; lower ends are rounded down, upper ends up.`;
}

function showScatter() {
  const { entries, measure } = current(), metric = state.metric, [, highest] = measure.range;
  const sentences = DATA.sentences[state.measure];
  at("disparity-note").textContent = state.t === 1 ? sentences.disparity + "." : "";
  if (!SEVERAL) return;
  const rows = entries.map(({ summary, model, index }) => ({
    model: model.label, chosen: index === chosenModel(),
    x: summary.value, x_low: summary.value_low ?? summary.value, x_high: summary.value_high ?? summary.value,
    y: summary[metric], y_low: summary[`${metric}_low`] ?? summary[metric], y_high: summary[`${metric}_high`] ?? summary[metric],
    x_text: withInterval(summary.value, summary.value_alone_low, summary.value_alone_high, highest),
    y_text: withInterval(summary[metric], summary[`${metric}_low`], summary[`${metric}_high`]),
  })).filter((row) => !isMissing(row.y));
  const extent = (key) => [Math.min(...rows.map((row) => row[`${key}_low`])), Math.max(...rows.map((row) => row[`${key}_high`]))];
  nameApart(rows, { x: extent("x"), y: extent("y") });
  const rho = spearman(rows.map((row) => row.x), rows.map((row) => row.y)), name = METRICS[metric].replace(/ \(.*/, ""), models = plural(rows.length, "model");
  const plain = rows.length < DATA.few_models ? `${models}: too few to show a relation between mean and ${name}` : `Spearman ${signed(rho)} between mean and ${name} over ${models}`;
  at("scatter-takeaway").textContent = metric === "rdi" && state.t === 1 ? sentences.relation : plain;
  at("scatter-note").textContent = state.t === 1 && sentences.conflict ? sentences.conflict : "";
  draw(at("scatter-chart"), "scatter", { data: { rows }, words: { "@value": [`mean ${measure.name}`, `(${measure.unit}; higher is better)`], "@metric": METRICS[metric] } });
  tableBehind(at("scatter-data"), () => ({
    rows,
    columns: [
      { key: "model", title: "model", value: (row) => row.model, text: (row) => row.model },
      { key: "x", title: "mean", numeric: true, value: (row) => row.x, text: (row) => row.x_text },
      { key: "y", title: metric, numeric: true, value: (row) => row.y, text: (row) => row.y_text },
    ],
  }));
}

// Name the points of a chart as long as the names do not run into each other; the chosen model's always stands. Names
// stand right of their points, and where a narrow page would cut them off left of them. Ends of the axes by the key of
// what they show, the horizontal one first.
function nameApart(rows, ends) {
  const [[x, [start, end]], [y, [low, high]]] = Object.entries(ends), named = [];
  const reach = (isNarrow() ? 0.3 : 0.1) * (end - start);
  for (const row of [...rows].sort((first, second) => (second.chosen ?? 0) - (first.chosen ?? 0))) {
    row.left = isNarrow() && end - row[x] < reach;
    const apart = named.every((other) => Math.abs(other[x] - row[x]) > (other.left === row.left ? reach : 2 * reach) || Math.abs(other[y] - row[y]) > 0.055 * (high - low));
    row.name = apart ? SHORT[row.model] : "";
    if (apart) named.push(row);
  }
}

// The model that the page looks at: chosen by the reader, else the first of the ranking at lambda of the audit.
function chosenModel() {
  if (state.model !== null) return state.model;
  const { entries } = current();
  const values = entries.map((entry) => penalised(entry.summary, DATA.fp_lambda));
  return entries[values.indexOf(Math.max(...values))]?.index ?? 0;
}

onChange((changed) => {
  if (["measure", "t", "lambda", "tau", "sort", "model"].some((key) => changed.has(key))) showRanking();
  if (["measure", "t", "metric", "model"].some((key) => changed.has(key))) showScatter();
});
