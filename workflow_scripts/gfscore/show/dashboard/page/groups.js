// Groups of samples, and moves along latent dimensions, of the chosen model.

const GROUPS = DATA.groups, PROJECTION = DATA.projection;
const FAIRNESS = {
  dp: ["DP", "demographic parity difference"],
  eopp: ["EOpp", "equal opportunity difference"],
  eodd: ["EOdd", "equalized odds difference"],
  aodd: ["AOdd", "average odds difference"],
};
const FEW = ["enough samples", "few samples"];
const attributeName = (place) => GROUPS.attributes[place].name;
const ofAttribute = (rows) => (state.attribute === null ? rows : rows.filter((row) => row.at === state.attribute));
const room = () => (isNarrow() ? 150 : 260);

function showGroups() {
  if (!GROUPS) return;
  at("attribute").value = state.attribute ?? "";
  showGroupValues();
  showFairness();
}

// A measure without groups leaves the place to the audit's first one, and the caption names it.
const known_in = (tables) => (state.measure in tables ? state.measure : Object.keys(tables)[0]);

function showGroupValues() {
  const name = known_in(GROUPS.values), measure = MEASURES[name], found = GROUPS.values[name], model = chosenModel();
  const gaps = ofAttribute(found.gaps).filter((row) => row.model === model).sort((first, second) => second.gap - first.gap);
  const values = new Map(gaps.map((gap) => [gap.at, found.rows.filter((row) => row.model === model && row.at === gap.at && !isMissing(row.value))]));
  const listed = attributesThatFit(gaps, (gap) => values.get(gap.at).length);
  const rows = listed.flatMap((gap) => [...values.get(gap.at)].sort((first, second) => first.value - second.value).map((row) => groupRow(row, measure)));
  at("groups-takeaway").textContent = groupSentence(gaps, name, model, measure);
  const left = ofAttribute(GROUPS.attributes.map((attribute, place) => ({ ...attribute, at: place }))).filter((attribute) => attribute.left_out);
  at("groups-note").textContent = [
    ...found.sentences.map((sentence) => `${sentence}.`),
    `Intervals hold jointly over the groups of an attribute with ${percent(GROUPS.confidence)} confidence${state.t === 1 ? "" : "; values at T = 1"}.`,
    left.length ? `Without a value, and left out: ${left.map((attribute) => `${count(attribute.left_out)} of ${attribute.name}`).join(", ")}.` : "",
    listed.length < gaps.length ? `The ${listed.length} attributes of ${gaps.length} with the largest differences; the table holds all.` : "",
  ].join(" ");
  drawRows("groups-chart", rows, axisTitle(measure));
  showCells(name, measure, listed.map((gap) => gap.at));
  tableBehind(at("groups-data"), () => groupTable(found, measure));
}

function attributesThatFit(gaps, size) {
  let taken = 0;
  return gaps.filter((gap, place) => { taken += size(gap); return place === 0 || taken <= MANY_CLASSES; });
}

function groupRow(row, measure) {
  const own = `${state.attribute === null ? `${attributeName(row.at)}: ` : ""}${row.group}`;
  const text = `${withInterval(row.value, row.low, row.high, measure.range[1])}, n = ${count(row.n)}`;
  return { label: isNarrow() ? own : `${own} (n = ${count(row.n)})`, value: row.value, lower: row.low, upper: row.high, text, size: FEW[Number(row.small)] };
}

function groupSentence(gaps, name, model, measure) {
  const who = MODELS[model].label, sure = gaps.filter((gap) => gap.gap_low > 0).length;
  if (!gaps.length) return `${who} has no two groups to compare under ${name}`;
  const widest = gaps.find((gap) => !gap.small && gap.gap >= TIE_TOLERANCE) ?? gaps[0], few = widest.small ? " (one of them has few samples)" : "", by = attributeName(widest.at);
  if (widest.gap < TIE_TOLERANCE) return `${who} treats all groups alike under ${name}`;
  const size = `by ${withInterval(widest.gap, widest.gap_low, widest.gap_high, measure.range[1] - measure.range[0])} under ${name}`;
  const further = gaps[0].gap > widest.gap + TIE_TOLERANCE ? `; where one of two groups has few samples, they differ more (${attributeName(gaps[0].at)})` : "";
  const surely = gaps.length === 1 ? (sure ? ", beyond the intervals" : ", which is within the intervals") : `; groups surely differ by ${count(sure)} of ${plural(gaps.length, "attribute")}`;
  return `${who}: ${by} ${widest.lowest} lies below ${by} ${widest.highest}${few} ${size}${surely}${further}`;
}

function groupTable(found, measure) {
  const gaps = new Map(found.gaps.map((gap) => [`${gap.model} ${gap.at}`, gap])), gapOf = (row) => gaps.get(`${row.model} ${row.at}`) ?? {};
  return {
    rows: ofAttribute(found.rows),
    columns: [
      ...modelAndAttribute(),
      { key: "group", title: "group", value: (row) => row.group, text: (row) => row.group },
      bounded("value", (row) => [row.value, row.low, row.high], measure.range[1]),
      { key: "n", title: "samples", numeric: true, value: (row) => row.n, text: (row) => count(row.n) + (row.small ? " (few)" : "") },
      bounded("gap", (row) => [gapOf(row).gap, gapOf(row).gap_low, gapOf(row).gap_high], measure.range[1] - measure.range[0], "largest difference of the attribute"),
      ...balancedColumns("n", "value"),
    ],
  };
}

const modelAndAttribute = () => [
  { key: "model", title: "model", value: (row) => MODELS[row.model].label, text: (row) => MODELS[row.model].label },
  { key: "attribute", title: "attribute", value: (row) => attributeName(row.at), text: (row) => attributeName(row.at) },
];
const plainColumn = (key, title, text = number) => ({ key, title, numeric: true, value: (row) => row[key], text: (row) => text(row[key]) });
const bounded = (key, take, highest, title = key) => ({
  key, title, numeric: true, csv: [key, `${key}_low`, `${key}_high`], value: (row) => take(row)[0], values: take, node: (row) => valueNode(...take(row), highest),
});
const balancedColumns = (...kinds) => (GROUPS.balanced ? kinds.map((kind) => plainColumn(`balanced_${kind}`, `${kind === "n" ? "samples" : "value"}, balanced`, kind === "n" ? count : number)) : []);

// Differences between groups of what is predicted, mean over classes; 0 when all groups are treated alike.
function showFairness() {
  const name = known_in(GROUPS.metrics), found = GROUPS.metrics[name], model = chosenModel();
  at("fairness").hidden = !found;
  if (!found) return;
  const own = ofAttribute(found.rows).filter((row) => row.model === model && !isMissing(row.value));
  const order = [...new Set([...own].sort((first, second) => second.value - first.value).map((row) => row.at))];
  const listed = order.slice(0, MANY_CLASSES / 4), rows = listed.flatMap((place) => own.filter((row) => row.at === place).map((row) => ({
    label: (state.attribute === null ? `${attributeName(place)}: ` : "") + FAIRNESS[row.metric][0], value: row.value, lower: row.wilson_low, upper: row.wilson_high,
    text: `${FAIRNESS[row.metric][1]} ${withInterval(row.value, row.wilson_low, row.wilson_high, 1)}, approximate`, size: FEW[Number(row.small)],
  })));
  const ordered = [...own].sort((first, second) => second.value - first.value), largest = ordered.find((row) => !row.small) ?? ordered[0];
  const about = found.positive ? `with ${classPhrase(found.positive)} as the positive class` : "mean over classes";
  at("fairness-takeaway").textContent = !largest ? `No fairness metric of ${MODELS[model].label} is defined under ${name}`
    : `Under ${name} the largest fairness gap of ${MODELS[model].label} is ${FAIRNESS[largest.metric][0]} by ${attributeName(largest.at)}: ${number(largest.value)}, approximately ${interval(largest.wilson_low, largest.wilson_high, 1)}`;
  at("fairness-note").textContent = [
    `${Object.values(FAIRNESS).map(([short, long]) => `${short}: ${long}`).join("; ")}; ${about}. 0: all groups are treated alike.`,
    `Intervals are approximate: Wilson's for the rates, put together at their extremes, ${percent(found.confidence)} for each row by itself.`,
    listed.length < order.length ? `The ${listed.length} attributes of ${order.length} with the largest; the table holds all.` : "",
  ].join(" ");
  drawRows("fairness-chart", rows, ["difference between groups", "(lower is more equal)"], [0]);
  tableBehind(at("fairness-data"), () => ({
    rows: ofAttribute(found.rows),
    columns: [
      ...modelAndAttribute(),
      { key: "metric", title: "metric", value: (row) => row.metric, text: (row) => FAIRNESS[row.metric][0] },
      bounded("value", (row) => [row.value, row.wilson_low, row.wilson_high], 1, "difference, approximate interval"),
      ...(found.positive ? [] : [plainColumn("worst", "worst class")]),
      plainColumn("as_printed", "as the source prints it"),
      plainColumn("smallest_cell", "smallest cell", count),
      ...balancedColumns("value"),
    ],
  }));
}

// Dots with intervals below each other; the axis spans what is shown and the values `always`.
function drawRows(id, rows, title, always = [], chart = "intervals") {
  const ends = [...rows.flatMap((row) => [row.value, row.lower, row.upper]).filter((value) => !isMissing(value)), ...always];
  const low = Math.min(...ends), high = Math.max(...ends), margin = 0.04 * (high - low) + 0.002;
  draw(at(id), chart, { data: { rows }, signals: { low: low - margin, high: high + margin, room: room() }, bands: Math.max(rows.length, 1), words: { "@value": title } });
}

function showProjection() {
  if (!PROJECTION) return;
  const model = chosenModel(), whole = PROJECTION.models[model], name = MODELS[model].label;
  const own = PROJECTION.rows.filter((row) => row.model === model).sort((first, second) => first.tolerance - second.tolerance);
  const listed = own.slice(0, MANY_CLASSES);
  at("projection-takeaway").textContent = !whole ? `${name} was not projected` : whole.constant ? `${name} gives every image one class, so its Tolerance of 1 says nothing`
    : `${name} tolerates moves along ${own[0].dimension} least: Tolerance ${withInterval(own[0].tolerance, own[0].tolerance_low, own[0].tolerance_high, 1)}; mean ${number(whole.tolerance)}`;
  at("projection-note").textContent = !whole ? "" : [
    `Mapper ${PROJECTION.mapper}, n = ${count(whole.n)}. Beside this: accuracy ${number(whole.accuracy)}, ${number(whole.decoded_accuracy)} on reconstructions, which are predicted like the sample at a rate of ${number(whole.agreement)}; ${percent(Number(whole.censored.toPrecision(3)))} of moves change no prediction and count as 1.`,
    `Intervals at ${percent(PROJECTION.confidence)}, each for its own row. Tolerance is measured in the decoder's images: it is no distance in the images themselves.`,
    listed.length < own.length ? `The ${listed.length} least tolerated of ${own.length} dimensions; the table holds all.` : "",
  ].join(" ");
  at("projection-grid").hidden = !whole;
  if (!whole) return;
  const rows = (value, bounds = []) => listed.map((row) => ({
    label: row.dimension, value: row[value], lower: row[bounds[0]] ?? row[value], upper: row[bounds[1]] ?? row[value], size: FEW[0],
    text: `Tolerance ${withInterval(row.tolerance, row.tolerance_low, row.tolerance_high, 1)}; Deviation ${number(row.deviation)}; censored ${percent(Number(row.censored.toPrecision(3)))}${effectText(row.dimension)}`,
  }));
  const most = (key) => [...own].sort((first, second) => second[key] - first[key])[0];
  at("tolerance-caption").textContent = `Least Tolerance: ${own[0].dimension}, ${number(own[0].tolerance)}`;
  showDeviation("deviation", own, () => `Largest Deviation: ${most("deviation").dimension}, ${number(most("deviation").deviation)}`, () => rows("deviation"));
  at("censored-caption").textContent = `Most often without a change: ${most("censored").dimension}, ${percent(Number(most("censored").censored.toPrecision(3)))}`;
  drawRows("tolerance-chart", rows("tolerance", ["tolerance_low", "tolerance_high"]), "Tolerance (higher is better)", [1], "intervals_small");
  drawRows("censored-chart", rows("censored"), ["share of moves", "that change no prediction"], [0, 1], "intervals_small");
  showProjectedClasses(model);
  tableBehind(at("projection-data"), () => projectionTable());
  tableBehind(at("projected-data"), () => projectedTable());
}

// An attribute can be moved to one side only, away from what the sample has: then there is no Deviation to draw.
function showDeviation(id, known, caption, rows) {
  const sided = known.every((row) => !isMissing(row.deviation));
  at(`${id}-chart`).parentElement.hidden = !sided;
  if (!sided) return;
  at(`${id}-caption`).textContent = caption();
  drawRows(`${id}-chart`, rows(), "Deviation (lower is better)", [0], "intervals_small");
}

function effectText(dimension) {
  const effect = PROJECTION.effects[dimension];
  return effect ? `; a move changes ${effect.trait} most (${signed(effect.shift)})` : "";
}

const toleranceColumns = () => [
  bounded("tolerance", (row) => [row.tolerance, row.tolerance_low, row.tolerance_high], 1, "Tolerance"),
  plainColumn("deviation", "Deviation"), plainColumn("up", "move up"), plainColumn("down", "move down"), plainColumn("censored", "censored"),
];
const projectedName = (row) => MODELS[row.model].label + (PROJECTION.models[row.model]?.constant ? " (constant)" : "");
const nameOfModel = { key: "model", title: "model", value: projectedName, text: projectedName };

function projectionTable() {
  const trait = (row) => PROJECTION.effects[row.dimension]?.trait ?? "";
  return { rows: PROJECTION.rows, columns: [
    nameOfModel, { key: "dimension", title: "dimension", value: (row) => row.dimension, text: (row) => row.dimension },
    ...toleranceColumns(), { key: "trait", title: "changes most", value: trait, text: trait },
  ] };
}

function projectedTable() {
  const rows = PROJECTION.models.map((row, model) => row && { ...row, model }).filter(Boolean);
  return { rows, columns: [
    nameOfModel, ...toleranceColumns(), plainColumn("accuracy", "accuracy"), plainColumn("decoded_accuracy", "accuracy, reconstructed"),
    plainColumn("agreement", "agreement"), plainColumn("tolerance_agreeing", "Tolerance where they agree"), plainColumn("effective_dimensions", "effective dimensions"), plainColumn("n", "samples", count),
  ] };
}

onChange((changed) => {
  if (changed.has("everything")) {
    if (GROUPS) options(at("attribute"), [["", "all, largest difference first"], ...GROUPS.attributes.map(({ name }, place) => [place, name])]);
    if (GROUPS || PROJECTION) options(at("grouped-model"), MODELS.map((model, index) => [index, model.label]));
  }
  if (GROUPS || PROJECTION) at("grouped-model").value = chosenModel();
  if (["measure", "model", "attribute", "t"].some((key) => changed.has(key))) showGroups();
  if (["measure", "model"].some((key) => changed.has(key))) showProjection();
});

at("grouped-model")?.addEventListener("change", (event) => change({ model: Number(event.target.value) }));
at("attribute")?.addEventListener("change", (event) => change({ attribute: event.target.value === "" ? null : Number(event.target.value) }));
