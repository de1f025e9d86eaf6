// Every class of every model: a heatmap with a cursor that arrow keys move, a search, and a strip above many classes.

let cursor = { row: 0, column: 0 }, shownCells = { rows: [], columns: [] };

function classOrder() {
  const { entries } = current();
  const indices = CLASSES.map((_, index) => index);
  if (state.order === "name") return indices.sort((first, second) => CLASSES[first].label.localeCompare(CLASSES[second].label));
  if (state.order !== "mean") return indices;
  const means = indices.map((index) => {
    const values = entries.map((entry) => entry.values[index]).filter((value) => !isMissing(value));
    return values.length ? mean(values) : Infinity;
  });
  return indices.sort((first, second) => means[first] - means[second] || first - second);
}

const columnsThatFit = () => Math.max(8, Math.min(MANY_CLASSES, Math.floor((at("heatmap-chart").clientWidth - 150) / 24)));

function classesShown(order) {
  const wanted = state.find.trim().toLowerCase();
  const found = wanted ? order.filter((index) => `${CLASSES[index].label} ${CLASSES[index].name}`.toLowerCase().includes(wanted)) : order;
  const room = found.length <= 20 ? 20 : columnsThatFit();
  const from = Math.max(0, Math.min(state.from, found.length - room));
  return { found, from, shown: found.slice(from, from + room), wanted, room };
}

function showHeatmap() {
  const { measure } = current(), rows = ranked().rows, order = classOrder();
  const { found, from, shown, wanted, room } = classesShown(order), limit = tau(), [, highest] = measure.range;
  const all = rows.flatMap((row) => row.values).filter((value) => !isMissing(value));
  const low = Math.min(...all), high = Math.max(...all, low + 1e-9);
  shownCells = { rows, columns: shown };
  const cells = rows.flatMap((row) => shown.map((index) => cellOf(row, index, limit, highest)));
  const count_of = (verdict) => sum(rows.map((row) => row.values.filter((_, index) => cellVerdict(row, index, limit) === verdict).length));
  at("heatmap-takeaway").textContent = state.t === 1 ? DATA.sentences[state.measure].classes : `Class values at T = ${temperature(state.t)}, without intervals`;
  at("tau-takeaway").textContent = limit === null ? `No rule of the gate sets a τ for ${measure.name}: choose τ above to see which class values reach it.`
    : state.t === 1
    ? `At τ = ${setting(limit)}: ${count(count_of("FAIL"))} of ${count(all.length)} class values are surely below (×), ${count(count_of("INCONCLUSIVE"))} undecided (?), ${count(count_of("PASS"))} surely at least τ (${percent(measure.confidence)} confidence for all classes${SEVERAL ? " of each model, not of all models" : ""}).`
    : `At τ = ${setting(limit)}: ${count(all.filter((value) => value < limit).length)} of ${count(all.length)} class values lie below (↓); without intervals none is sure.`;
  at("find-note").textContent = wanted ? `${plural(found.length, "class")} of ${count(CLASSES.length)} match.` : found.length > shown.length ? `Classes ${from + 1} to ${from + shown.length} of ${count(found.length)}.` : "";
  const signals = { low, high };
  const wide = (at("heatmap-chart").clientWidth - 150) / shown.length > 62;
  for (const cell of cells) cell.mark = [cell.glyph, wide && !isMissing(cell.value) ? number(cell.value) : ""].filter(Boolean).join(" ");
  draw(at("heatmap-chart"), shortNames(shown) ? "heatmap_short" : "heatmap", {
    data: { rows: cells, cursor: [] },
    signals: { ...signals, middle: low + 0.62 * (high - low) },
    bands: rows.length,
    words: { "@legend": legend(measure) },
    ready: (view) => view.addEventListener("click", (_, item) => item?.datum?.index !== undefined && choose(item.datum)),
  });
  showStrip(found, from, room, rows, signals);
  tableBehind(at("heatmap-data"), () => classTable(rows, found, limit, highest));
  showVulnerability();
}

const shortNames = (indices) => Math.max(...indices.map((index) => CLASSES[index].short.length)) * 8 < (at("heatmap-chart").clientWidth - 150) / indices.length;
const legend = (measure) => (isNarrow() ? measure.name : `${measure.name} (${measure.unit}; higher is better)`);

function cellVerdict(row, index, limit) {
  return isMissing(row.values[index]) ? null : verdictOf(row.low[index], row.high[index], limit);
}

function cellOf(row, index, limit, highest) {
  const value = row.values[index], verdict = cellVerdict(row, index, limit), below = !isMissing(value) && limit !== null && value < limit;
  return {
    model: row.model.label, class: CLASSES[index].label, index, at: row.index, value,
    text: isMissing(value) ? "no samples" : `${withInterval(value, row.low[index], row.high[index], highest)}, n = ${count(row.n[index])}`,
    glyph: verdict ? (verdict === "PASS" ? "" : GLYPHS[verdict]) : below ? "↓" : "",
    verdict: verdict ? `${VERDICT_WORDS[verdict]} τ = ${setting(limit)}` : below ? "below τ, no interval" : "",
  };
}

function choose(datum) {
  cursor = { row: shownCells.rows.findIndex((row) => row.index === datum.at), column: shownCells.columns.indexOf(datum.index) };
  showCursor();
  change({ model: datum.at });
}

function showStrip(found, from, room, rows, signals) {
  const many = found.length > room;
  at("strip").hidden = !many;
  if (!many) return;
  const cells = rows.flatMap((row) => found.map((index, place) => ({ model: row.model.label, from: place + 0.5, to: place + 1.5, value: row.values[index] })));
  at("from").max = found.length - room;
  at("from").value = from;
  draw(at("strip-chart"), "strip", {
    data: { rows: cells, window: [{ from: from + 0.5, to: from + room + 0.5 }] },
    signals,
    bands: rows.length,
    words: { "@classes": `classes, ${{ mean: "weakest first", name: "by name", given: "as given" }[state.order] ?? "as given"}` },
    ready: (view) => view.addEventListener("pointerup", () => {
      const span = view.signal("zoom")?.from ?? view.signal("zoom")?.to;
      if (span) change({ from: Math.max(0, Math.round(Math.min(...span) - 0.5)) });
    }),
  });
}

function showCursor() {
  const row = shownCells.rows[cursor.row], index = shownCells.columns[cursor.column], view = viewOf(at("heatmap-chart"));
  if (!row || index === undefined || !view) return;
  const cellShown = cellOf(row, index, tau(), current().measure.range[1]);
  view.data("cursor", [cellShown]).run();
  at("cell").textContent = `${row.model.label}, ${CLASSES[index].label}: ${cellShown.text}${cellShown.verdict ? "; " + cellShown.verdict : ""}`;
}

function moveCursor(event) {
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  if (event.key === "Enter" && shownCells.rows[cursor.row]) change({ model: shownCells.rows[cursor.row].index });
  if (!step) return;
  event.preventDefault();
  const wide = shownCells.columns.length, column = cursor.column + step[1];
  cursor = { row: Math.max(0, Math.min(shownCells.rows.length - 1, cursor.row + step[0])), column: Math.max(0, Math.min(wide - 1, column)) };
  if (column < 0 && state.from > 0) change({ from: state.from - 1 });
  if (column >= wide && !at("strip").hidden && state.from < Number(at("from").max)) change({ from: state.from + 1 });
  showCursor();
}

function classTable(rows, found, limit, highest) {
  return {
    rows: rows.flatMap((row) => found.map((index) => ({ ...cellOf(row, index, limit, highest), low: row.low[index], high: row.high[index], n: row.n[index], accuracy: row.accuracy[index], name: row.model.label, label: CLASSES[index].label }))),
    columns: [
      { key: "model", title: "model", value: (row) => row.name, text: (row) => row.name },
      { key: "class", title: "class", value: (row) => row.label, text: (row) => row.label },
      { key: "value", title: "value", numeric: true, csv: ["value", "low", "high"], value: (row) => row.value, values: (row) => [row.value, row.low, row.high], node: (row) => valueNode(row.value, row.low, row.high, highest) },
      { key: "n", title: "samples", numeric: true, value: (row) => row.n, text: (row) => count(row.n) },
      { key: "accuracy", title: "accuracy", numeric: true, value: (row) => row.accuracy, text: (row) => number(row.accuracy) },
      ...(limit === null ? [] : [{ key: "verdict", title: "at τ", value: (row) => row.verdict, text: (row) => row.verdict }]),
    ],
  };
}

function showVulnerability() {
  const found = DATA.vulnerability[state.measure].filter((row) => row[2] > 0).sort((first, second) => second[2] - first[2] || first[1] - second[1]);
  const position = new Map(CLASSES.map((entry, place) => [entry.index, place]));
  const rows = found.slice(0, 20).map(([index, rank, worst, best]) => ({ class: CLASSES[position.get(index)].label, times: worst, text: `weakest in ${worst}, strongest in ${best}; mean rank ${number(rank)}` }));
  at("vulnerability").hidden = !SEVERAL || state.t !== 1 || !rows.length;
  at("vulnerability-takeaway").textContent = DATA.sentences[state.measure].vulnerability;
  draw(at("vulnerability-chart"), "vulnerability", { data: { rows }, signals: { most: Math.max(...rows.map((row) => row.times), 1) }, bands: rows.length });
  tableBehind(at("vulnerability-data"), () => ({
    rows: DATA.vulnerability[state.measure].map(([index, rank, worst, best]) => ({ name: CLASSES[position.get(index)].label, worst, best, rank })),
    columns: [
      { key: "class", title: "class", value: (row) => row.name, text: (row) => row.name },
      ...[["worst", "models where it is the weakest"], ["best", "the strongest"]].map(([key, title]) => ({ key, title, numeric: true, value: (row) => row[key], text: (row) => count(row[key]) })),
      { key: "rank", title: "mean rank", numeric: true, value: (row) => row.rank, text: (row) => number(row.rank) },
    ],
  }));
}

at("heatmap-chart").addEventListener("keydown", moveCursor);
at("heatmap-chart").addEventListener("focus", () => requestAnimationFrame(showCursor));

onChange((changed) => {
  if (["measure", "t", "lambda", "tau", "order", "find", "from"].some((key) => changed.has(key))) showHeatmap();
});
