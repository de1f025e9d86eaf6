// Groups within classes, and projections by class, of the chosen model.

const CELLS = GROUPS && Object.fromEntries(Object.entries(GROUPS.cells).map(([name, arrays]) => [name, everyPacked(arrays)]));
const PROJECTED = PROJECTION && everyPacked(PROJECTION.classes);

// Every class of one group of one model, as rows; a cell without samples has no value.
function cellsOf(name, model, place) {
  const own = Object.fromEntries(Object.keys(CELLS[name]).map((key) => [key, rowOf(CELLS[name][key], model, place)]));
  return CLASSES.map((_, index) => ({ model, place, index, ...GROUPS.groups[place], ...Object.fromEntries(Object.entries(own).map(([key, values]) => [key, values[index]])) }));
}

// The largest difference between groups of one attribute within each class, largest first; few samples do not count.
function gapsWithin(cells, attributes) {
  const sure = cells.filter((cell) => !isMissing(cell.value) && !cell.small).sort((first, second) => first.value - second.value);
  const largestFirst = (gaps) => gaps.sort((first, second) => second.gap - first.gap);
  return largestFirst(CLASSES.map((_, index) => largestFirst(attributes.map((attribute) => {
    const own = sure.filter((cell) => cell.index === index && cell.at === attribute), low = own[0], high = own[own.length - 1];
    return { index, low, high, gap: own.length ? high.value - low.value : 0 };
  }))[0]));
}

function showCells(name, measure, attributes) {
  const model = chosenModel(), places = GROUPS.groups.map((group, place) => ({ ...group, place }));
  const cells = attributes.flatMap((attribute) => places.filter((group) => group.at === attribute)).flatMap(({ place }) => cellsOf(name, model, place));
  const values = cells.map((cell) => cell.value).filter((value) => !isMissing(value));
  at("cells").hidden = !values.length;
  if (!values.length) return;
  const ordered = gapsWithin(cells, attributes), room = Math.max(6, Math.min(MANY_CLASSES, Math.floor((at("cells-chart").clientWidth - 150) / 30)));
  const fitting = new Set(ordered.slice(0, room).map((gap) => gap.index)), shown = CLASSES.map((_, index) => index).filter((index) => fitting.has(index));
  const low = Math.min(...values), high = Math.max(...values, low + 1e-9), wide = (at("cells-chart").clientWidth - 150) / shown.length > 62;
  const widest = ordered[0], label = CLASSES[widest.index].label;
  at("cells-takeaway").textContent = widest.gap < TIE_TOLERANCE ? `Within no class do groups of enough samples differ under ${name}`
    : `Within ${classPhrase(label)} groups by ${attributeName(widest.low.at)} differ most under ${name}: ${widest.low.group} ${number(widest.low.value)}, ${widest.high.group} ${number(widest.high.value)}`;
  at("cells-note").textContent = [
    "Compare the rows of an attribute within a column: one colour, the class is treated alike. °: few samples; blank: none.",
    fitting.size < CLASSES.length ? `The ${shown.length} classes of ${count(CLASSES.length)} with the largest differences; the table holds all.` : "",
  ].join(" ");
  // A cell without samples has no colour, but a place: the groups keep their order.
  const empty = new Set(GROUPS.groups.map((_, place) => place).filter((place) => cells.every((cell) => cell.place !== place || isMissing(cell.value))));
  const rows = shown.flatMap((index) => cells.filter((cell) => cell.index === index && !empty.has(cell.place))).map((cell) => ({
    group: `${state.attribute === null ? `${attributeName(cell.at)}: ` : ""}${cell.group}`, class: CLASSES[cell.index].label, value: cell.value,
    ...(isMissing(cell.value) ? { value: null, text: "no samples", samples: "0", mark: "" } : {
      text: withInterval(cell.value, cell.low, cell.high, measure.range[1]), samples: count(cell.n), mark: (wide ? number(cell.value) : "") + (cell.small ? "°" : ""),
    }),
  }));
  draw(at("cells-chart"), shortNames(shown) ? "heatmap_short" : "heatmap", {
    data: { rows, cursor: [] },
    signals: { low, high, middle: low + 0.62 * (high - low) },
    bands: new Set(rows.map((row) => row.group)).size,
    // The heatmap of models, with groups in their place.
    words: { "@legend": legend(measure), model: "group", verdict: "samples" },
  });
  tableBehind(at("cells-data"), () => ({
    rows: MODELS.flatMap((_, which) => ofAttribute(places).flatMap(({ place }) => cellsOf(name, which, place))).filter((cell) => !isMissing(cell.n)),
    columns: [
      ...modelAndAttribute(),
      { key: "group", title: "group", value: (row) => row.group, text: (row) => row.group },
      { key: "class", title: "class", value: (row) => CLASSES[row.index].label, text: (row) => CLASSES[row.index].label },
      bounded("value", (row) => [row.value, row.low, row.high], measure.range[1]),
      { key: "n", title: "samples", numeric: true, value: (row) => row.n, text: (row) => count(row.n) + (row.small ? " (few)" : "") },
    ],
  }));
}

function projectedClasses(model) {
  const own = Object.fromEntries(Object.keys(PROJECTED).map((key) => [key, rowOf(PROJECTED[key], model)]));
  return CLASSES.map((_, index) => ({ model, index, ...Object.fromEntries(Object.entries(own).map(([key, values]) => [key, values[index]])) }));
}

function showProjectedClasses(model) {
  const known = projectedClasses(model).filter((row) => !isMissing(row.tolerance)).sort((first, second) => first.tolerance - second.tolerance);
  at("projected-classes").hidden = !known.length;
  if (!known.length) return;
  const listed = known.slice(0, MANY_CLASSES), uneven = [...known].sort((first, second) => second.deviation - first.deviation)[0];
  const named = (row) => classPhrase(CLASSES[row.index].label);
  at("class-tolerance-caption").textContent = `Least tolerant class: ${named(known[0])}, ${number(known[0].tolerance)}`;
  at("projected-classes-note").textContent = `By the true class of the sample, mean over the dimensions.${listed.length < known.length ? ` The ${listed.length} least tolerant of ${count(known.length)} classes; the table holds all.` : ""}`;
  const rows = (value, bounds = []) => listed.map((row) => ({
    label: CLASSES[row.index].label, value: row[value], lower: row[bounds[0]] ?? row[value], upper: row[bounds[1]] ?? row[value], size: FEW[0],
    text: `Tolerance ${withInterval(row.tolerance, row.tolerance_low, row.tolerance_high, 1)}; Deviation ${number(row.deviation)}; n = ${count(row.n)}`,
  }));
  drawRows("class-tolerance-chart", rows("tolerance", ["tolerance_low", "tolerance_high"]), "Tolerance (higher is better)", [1], "intervals_small");
  showDeviation("class-deviation", known, () => `Most one-sided class: ${named(uneven)}, ${number(uneven.deviation)}`, () => rows("deviation"));
  tableBehind(at("projected-classes-data"), () => ({
    rows: MODELS.flatMap((_, which) => projectedClasses(which)).filter((row) => !isMissing(row.tolerance)),
    columns: [
      nameOfModel, { key: "class", title: "class", value: (row) => CLASSES[row.index].label, text: (row) => CLASSES[row.index].label },
      bounded("tolerance", (row) => [row.tolerance, row.tolerance_low, row.tolerance_high], 1, "Tolerance"),
      plainColumn("deviation", "Deviation"), plainColumn("censored", "censored"), plainColumn("n", "samples", count),
    ],
  }));
}
