// Whether the score can be trusted: attack distances, calibration, sensitivity; then what it cost.

const SIDES = { refuted: "above the line: refuted on average", "not settled": "above the line: not settled", "not refuted": "on or below" };

// One chart per measure of distances, and one table behind them all.
function showDistances() {
  const known = DATA.falsification ?? {}, score = state.measure in known ? state.measure : Object.keys(known)[0];
  at("distances").hidden = !score;
  if (!score) return;
  const host = at("distances-grid"), names = Object.keys(known[score]), all = names.map((name) => [name, distanceRows(known[score][name])]);
  if (host.children.length !== names.length) {
    host.replaceChildren(...names.map((_, place) => element("figure", {}, element("figcaption", {}, ""), element("div", { class: "chart", id: `distances-chart-${place}` }), element("p", { class: "note" }, ""))));
  }
  all.forEach(([name, rows], place) => {
    const most = 1.08 * Math.max(...rows.flatMap((row) => [row.score_high, row.distance_high]), 1e-6), [caption, chart, note] = host.children[place].children;
    note.textContent = meansNote(rows, score, name);
    nameApart(rows, { distance: [0, most], score: [0, most] });
    caption.textContent = distanceSentence(rows, score, name);
    draw(chart, "distances", { data: { rows, line: [{ at: 0 }, { at: most }] }, signals: { most }, words: { "@distance": ["mean distance of the nearest", "adversarial example found (l2)"], "@score": `mean ${score}` } });
  });
  tableBehind(at("distances-data"), () => ({
    rows: all.flatMap(([name, rows]) => rows.map((row) => ({ ...row, distances: name }))),
    columns: [
      { key: "model", title: "model", value: (row) => row.model, text: (row) => row.model },
      { key: "distances", title: "distances of", value: (row) => row.distances, text: (row) => row.distances },
      ...["score", "distance"].map((of) => {
        const found = (row) => [row[of], ...(row.bounded.includes(of) ? [row[`${of}_low`], row[`${of}_high`]] : [null, null])];
        return { key: of, title: of, numeric: true, csv: [of, `${of}_low`, `${of}_high`], value: (row) => row[of], values: found, node: (row) => valueNode(...found(row)) };
      }),
      { key: "censored", title: "censored", numeric: true, value: (row) => row.censored, text: (row) => count(row.censored) },
      { key: "rate", title: "rate", numeric: true, csv: ["rate", "low", "high"], value: (row) => row.rate, values: (row) => [row.rate, row.low, row.high], node: (row) => valueNode(row.rate, row.low, row.high, 1) },
    ],
  }));
}

function distanceRows(found) {
  const chosen = chosenModel();
  return found.map((row, index) => row && {
    model: MODELS[index].label, chosen: index === chosen, score: row.mean_score, distance: row.mean_distance,
    ...Object.fromEntries(["score", "distance"].flatMap((of) => ["low", "high"].map((end) => [`${of}_${end}`, row[`${of}_${end}`] ?? row[`mean_${of}`]]))),
    bounded: ["score", "distance"].filter((of) => !isMissing(row[`${of}_low`])), censored: row.censored, rate: row.rate, low: row.low, high: row.high, confidence: row.confidence,
    side: SIDES[row.mean],
    text: `score ${withInterval(row.mean_score, row.score_low, row.score_high)}, distance ${withInterval(row.mean_distance, row.distance_low, row.distance_high)}${row.censored ? ` (${plural(row.censored, "sample")} not broken, counted at the largest distance searched)` : ""}; contradicted on ${withInterval(row.rate, row.low, row.high, 1)} of ${count(row.correct)} samples`,
  }).filter(Boolean);
}

// What the thin lines are; a mean over fewer samples than its summary is of has none.
function meansNote(rows, score, name) {
  const means = [["score", `mean ${score}`], ["distance", `mean distance of ${name}`]].filter(([of]) => rows.some((row) => row.bounded.includes(of))).map(([, words]) => words);
  return means.length ? `Thin lines: intervals of the ${means.join(" and of the ")}, ${percent(MEASURES[score].confidence)} for each by itself.` : "";
}

function distanceSentence(rows, score, name) {
  const [refuted, unsettled] = ["refuted", "not settled"].map((side) => rows.filter((row) => row.side === SIDES[side]));
  const unbroken = sum(unsettled.map((row) => row.censored)), close = unsettled.some((row) => !row.censored);
  const reasons = [unbroken && `${plural(unbroken, "sample")} not broken up to the largest distance searched`, close && "means too close to tell"].filter(Boolean);
  if (rows.length === 1) {
    const judged = refuted.length ? "surely exceeds" : unsettled.length ? "is above, not surely," : "does not exceed";
    const sure = refuted.length ? ` (${percent(rows[0].confidence)} confidence)` : unsettled.length ? `: ${reasons.join(", or ")}` : "";
    return `The mean ${score} ${judged} the mean distance at which the attack of ${name} succeeded${sure}`;
  }
  const open = unsettled.length ? `; ${unsettled.length} not settled: ${reasons.join(", or ")}` : "";
  return `In ${refuted.length} of ${plural(rows.length, "model")} mean ${score} surely exceeds the mean distance at which the attack of ${name} succeeded (${percent(rows[0].confidence)} confidence for all of these)${open}`;
}

function showCalibration() {
  const { calibration } = DATA;
  at("calibration").hidden = !calibration;
  if (!calibration) return;
  const host = at("calibration-grid");
  // Of one measure, whichever is chosen above.
  at("calibration-heading").textContent = `Calibration of ${calibration.measure}`;
  at("calibration-takeaway").textContent = calibration.sentence.replaceAll("T = 1", AT_ONE);
  if (!host.children.length) {
    for (const objective of calibration.objectives) host.append(element("figure", {}, element("figcaption", {}, ""), element("div", { class: "chart" }), element("p", { class: "note" }, "")));
  }
  tableBehind(at("calibration-data"), () => ({
    rows: calibration.objectives.flatMap((objective) => objective.points.map(([t, value]) => ({ title: objective.title, t, value }))),
    columns: [
      { key: "objective", title: "objective", value: (row) => row.title, text: (row) => row.title },
      { key: "temperature", title: "T", numeric: true, value: (row) => row.t, text: (row) => temperature(row.t) },
      { key: "value", title: "value", numeric: true, value: (row) => row.value, text: (row) => signed(row.value) },
    ],
  }));
  calibration.objectives.forEach((objective, place) => {
    const [caption, chart, note] = host.children[place].children;
    caption.textContent = objectiveSentence(objective);
    note.textContent = objectiveNote(objective);
    chart.hidden = !objective.points.length;
    if (chart.hidden) return;
    const searched = objective.points.map(([t]) => t), middle = Math.sqrt(searched[0] * searched.at(-1));
    const side = (t) => (t > middle ? "right" : "left");
    const marks = [{ temperature: 1, words: "T = 1", side: side(1), raised: false }], levels = isMissing(objective.at_one) || objective.own ? [] : [{ value: objective.at_one }];
    if (objective.t_star !== null) marks.push({ temperature: objective.t_star, words: `T* = ${temperature(objective.t_star)}`, side: side(objective.t_star), raised: true });
    draw(chart, "curve", {
      data: { rows: objective.points.map(([t, value]) => ({ temperature: t, value })), stretches: objective.stretches.map(([from, to]) => ({ from, to: Math.max(to, from * 1.01) })), marks, levels },
      words: { "@objective": [objective.title, "(higher is better)"] },
    });
  });
}

// Does not break in the middle.
const AT_ONE = "T\u00a0=\u00a01";

function objectiveSentence(objective) {
  if (objective.own) return `${objective.title}: ${SEVERAL ? `every model has its own temperature (${objective.range})` : `best at T\u00a0=\u00a0${objective.range}`}`;
  if (objective.t_star === null) return `${objective.title}: ${SEVERAL ? "no optimum" : "needs several models"}`;
  const searched = objective.points.map(([t]) => t), [whole] = objective.stretches;
  if (whole && whole[0] <= searched[0] && whole[1] >= searched.at(-1)) return `${objective.title}: every temperature is as good (${signed(objective.best)}), so there is none to choose`;
  const edge = objective.edge ? ", at the end of the search: not to be trusted" : "";
  return `${objective.title}: best ${signed(objective.best)} at T\u00a0=\u00a0${objective.range}${edge} (${signed(objective.at_one)} at ${AT_ONE})`;
}

function objectiveNote({ robust, alone, p, search }) {
  const parts = [];
  if (!isMissing(robust.after)) parts.push(`Agreement with robust accuracy: ${signed(robust.before)} at ${AT_ONE}, ${signed(robust.after)} at T*${isMissing(alone) ? "" : `, ${signed(alone)} for clean accuracy alone`}.`);
  if (!isMissing(p)) parts.push(`Permutation p of the maximum${search === "grid" ? " over the coarse steps of the grid alone" : ""}: ${pValue(p)}.`);
  return parts.join(" ");
}

function showSensitivity() {
  const known = DATA.sensitivity, measure = known && (state.measure in known.sentences ? state.measure : Object.keys(known.sentences)[0]);
  at("sensitivity").hidden = !known;
  if (!known) return;
  at("shift-takeaway").textContent = known.sentences[measure].shift;
  at("scale-takeaway").textContent = known.sentences[measure].factor;
  const rows = known.rows.filter(([name]) => name === measure), chosen = chosenModel();
  const drawOne = (id, chart, change, words) => {
    const points = change.map(([, model, shift, scale, value, at]) => ({ model: MODELS[model].label, chosen: model === chosen, change: at, value, text: number(value) }));
    // Values that a change leaves alone differ by rounding, at which the axis does not look.
    const values = points.map((point) => point.value).filter((value) => !isMissing(value)), low = Math.min(...values), high = Math.max(...values);
    const margin = Math.max(0.05 * (high - low), 0.02 * Math.abs(high), 1e-6);
    draw(at(id), chart, { data: { rows: points }, signals: { low: low - margin, high: high + margin }, words: { "@change": words, "@value": `mean ${measure}` } });
  };
  const shifted = rows.filter(([, , , scale]) => scale === 1).map((row) => [...row, row[2]]);
  const scaled = rows.filter(([, , shift]) => shift === 0).map((row) => [...row, row[3]]);
  drawOne("shift-chart", "sensitivity", shifted.sort((x, y) => x[5] - y[5]), "constant added to every logit");
  drawOne("scale-chart", "sensitivity_of_factor", scaled.sort((x, y) => x[5] - y[5]), "factor on every logit (logarithmic)");
  at("sensitivity-note").textContent = `Neither change alters a prediction.${SEVERAL ? ` ${MODELS[chosen].label} stands out; the other models are grey.` : ""}`;
  tableBehind(at("sensitivity-data"), () => ({
    rows: known.rows,
    columns: [
      { key: "measure", title: "measure", value: (row) => row[0], text: (row) => row[0] },
      { key: "model", title: "model", value: (row) => MODELS[row[1]].label, text: (row) => MODELS[row[1]].label },
      ...["shift", "scale", "value"].map((title, place) => ({ key: title, title, numeric: true, value: (row) => row[place + 2], text: (row) => number(row[place + 2]) })),
    ],
  }));
}

function showCosts() {
  const rows = DATA.costs;
  at("costs").hidden = !rows;
  if (!rows) return;
  const totals = new Map();
  for (const row of rows) {
    const what = row.measure ? `${row.measure} (${row.step})` : row.step, found = totals.get(what) ?? { what, seconds: 0, gpu: 0, forwards: 0, backwards: 0, jobs: 0 };
    // Null where one of the jobs was not counted.
    const added = (key) => (found[key] === null || isMissing(row[key]) ? null : found[key] + row[key]);
    totals.set(what, { what, seconds: found.seconds + (row.wall_s ?? 0), gpu: found.gpu + (row.gpu_s ?? 0), forwards: added("forwards"), backwards: added("backwards"), jobs: found.jobs + 1 });
  }
  const bars = [...totals.values()].filter((row) => row.seconds > 0).sort((x, y) => y.seconds - x.seconds), all = sum(bars.map((row) => row.seconds));
  at("costs-takeaway").textContent = `${bars[0].what} took ${percent(Number((bars[0].seconds / all).toPrecision(2)))} of the ${duration(all)} of the models' jobs`;
  draw(at("costs-chart"), "costs", { data: { rows: bars.map((row) => ({ ...row, text: `${duration(row.seconds)}, ${plural(row.jobs, "job")}${row.gpu ? `, ${duration(row.gpu)} of GPU` : ""}, ${passesOf(row)}` })) }, bands: bars.length });
  tableBehind(at("costs-data"), () => ({
    rows,
    columns: [
      { key: "step", title: "step", value: (row) => row.step, text: (row) => row.step },
      { key: "measure", title: "measure", value: (row) => row.measure ?? "", text: (row) => row.measure ?? "–" },
      { key: "model", title: "model", value: (row) => row.model, text: (row) => row.model },
      ...[["wall_s", "seconds"], ["cpu_s", "processor s"], ["gpu_s", "GPU s"], ["peak_memory_mib", "memory MiB"], ["samples", "samples"]].map(([key, title]) => ({ key, title, numeric: true, best: true, value: (row) => row[key], text: (row) => number(row[key]) })),
      ...[["forwards", "images forward"], ["backwards", "images differentiated"]].map(([key, title]) => ({ key, title, numeric: true, best: true, value: (row) => row[key], text: (row) => count(row[key]) })),
    ],
  }));
}

const passesOf = ({ forwards, backwards }) => (forwards === null ? "passes not counted" : `${plural(forwards, "image")} passed forward${backwards ? `, ${count(backwards)} differentiated` : ""}`);

const duration = (seconds) => (seconds < 120 ? `${number(seconds)} s` : seconds < 7200 ? `${number(seconds / 60)} min` : `${number(seconds / 3600)} h`);

onChange((changed) => {
  if (changed.has("measure") || changed.has("model")) showDistances();
  if (["measure", "model", "lambda"].some((key) => changed.has(key))) showSensitivity();
  if (changed.has("everything")) { showCalibration(); showCosts(); }
});
