// One model in depth, and two models against each other.

const barRow = (entry, index, limit, highest) => ({
  ...cellOf(entry, index, limit, highest),
  lower: entry.low[index] ?? entry.values[index],
  upper: entry.high[index] ?? entry.values[index],
  suspect: entry.summary.suspects.includes(index) ? "may be the weakest" : "not the weakest",
});

const weakestFirst = (values) =>
  values.map((_, index) => index).filter((index) => !isMissing(values[index])).sort((first, second) => values[first] - values[second] || first - second);

function showModel() {
  const { entries, measure } = current(), entry = entries.find((candidate) => candidate.index === chosenModel()) ?? entries[0];
  const order = weakestFirst(entry.values), listed = order.slice(0, order.length <= MANY_CLASSES ? order.length : CLASSES_LISTED);
  at("model-select").value = entry.index;
  // Named, since the control that names the model is not printed.
  at("model-takeaway").textContent = `${entry.model.label}: ${modelSentence(state.measure, entry, state.t)}`;
  const { rdi_permuted: spread, wcr_permuted: floor, suspects } = entry.summary;
  at("model-note").textContent = state.t !== 1 ? "" : [
    `Orange diamonds: the ${plural(suspects.length, "class")} that may be the weakest, given the intervals.`,
    isMissing(spread) ? "" : "Shaded: from the lowest to the highest of equal classes of this size, on average by chance alone.",
    tauWithin(entry, listed) ? "Dashed: τ." : "",
    order.length > listed.length ? `The ${listed.length} weakest of ${count(order.length)} classes; the table holds all.` : "",
  ].filter(Boolean).join(" ");
  showBars(at("model-chart"), entry, measure, listed, true);
  showProfile(entry, measure, order, order.length > listed.length);
  showMeasures(entry, listed);
  showConfusion(entry);
  tableBehind(at("model-data"), () => classTable([entry], order, tau(), measure.range[1]));
}

const modelSentence = (measure, entry, t) =>
  t === 1 ? DATA.sentences[measure].model[entry.index] : `Class values at T = ${temperature(t)}, without intervals`;

const endsOf = (rows) => rows.flatMap((row) => [row.lower, row.upper]).filter((value) => !isMissing(value));
const marginOf = ([lowest, highest]) => 0.04 * (highest - lowest) + 1e-6;

// Whether there is a tau and the axis of the chart reaches to it.
function tauWithin(entry, listed) {
  if (tau() === null) return false;
  const ends = endsOf(listed.map((index) => barRow(entry, index, tau(), 1))), span = [Math.min(...ends), Math.max(...ends)];
  return tau() > span[0] - marginOf(span) && tau() < span[1] + marginOf(span);
}

function showBars(host, entry, measure, listed, whole) {
  const rows = listed.map((index) => barRow(entry, index, whole ? tau() : null, measure.range[1]));
  const { rdi_permuted: spread, wcr_permuted: floor } = entry.summary;
  const chance = whole && !isMissing(spread) && state.t === 1 ? [{ from: floor, to: floor + spread }] : [];
  const ends = endsOf(rows), span = whole ? [Math.min(...ends), Math.max(...ends)] : measure.range;
  const [lowest, highest] = span, margin = whole ? marginOf(span) : 0;
  draw(host, "bars", {
    data: { rows, floor: chance, tau: whole && tauWithin(entry, listed) ? [{ tau: tau() }] : [] },
    signals: { low: lowest - margin, high: highest + margin },
    bands: rows.length,
    words: { "@value": whole ? axisTitle(measure) : `${measure.unit}; higher is better` },
  });
}

function showProfile(entry, measure, order, many) {
  at("profile").hidden = !many;
  if (!many) return;
  const below = order[Math.ceil(order.length / 2) - 1];
  at("profile-takeaway").textContent = `Half of the ${count(order.length)} classes score ${number(entry.values[below])} or less; the strongest, ${classPhrase(CLASSES[order.at(-1)].label)}, scores ${number(entry.values[order.at(-1)])}`;
  const rows = order.map((index, place) => ({ place: place + 1, value: entry.values[index], lower: entry.low[index] ?? entry.values[index], upper: entry.high[index] ?? entry.values[index] }));
  draw(at("profile-chart"), "profile", { data: { rows, tau: tau() === null ? [] : [{ tau: tau() }] }, signals: { low: measure.range[0], high: measure.range[1] }, words: { "@value": legend(measure) } });
}

// The same classes, in the same order, under every measure of the audit.
function showMeasures(entry, listed) {
  const host = at("measures-grid"), others = DATA.measures;
  at("measures").hidden = others.length < 2;
  if (others.length < 2) return;
  if (!host.children.length) {
    for (const measure of others) host.append(element("figure", { "data-measure": measure.name }, element("figcaption", {}, ""), element("div", { class: "chart" }), element("p", { class: "note" }, measure.title === measure.name ? "" : measure.title)));
  }
  for (const figure of host.children) {
    const name = figure.dataset.measure, found = under(name, entry.index);
    figure.querySelector("figcaption").textContent = found ? `${name}: ${modelSentence(name, entry, temperatureOf(name))}` : `${name}: not measured`;
    if (found) showBars(figure.querySelector(".chart"), found, MEASURES[name], listed, false);
  }
  tableBehind(at("measures-data"), () => ({
    rows: others.map(({ name }) => [name, under(name, entry.index)]).filter(([, found]) => found).flatMap(([name, { values, low, high, n }]) => weakestFirst(entry.values).map((index) => ({ name, label: CLASSES[index].label, value: values[index], low: low[index], high: high[index], n: n[index] }))),
    columns: [
      { key: "measure", title: "measure", value: (row) => row.name, text: (row) => row.name },
      { key: "class", title: "class", value: (row) => row.label, text: (row) => row.label },
      { key: "value", title: "value", numeric: true, csv: ["value", "low", "high"], value: (row) => row.value, values: (row) => [row.value, row.low, row.high], node: (row) => valueNode(row.value, row.low, row.high, MEASURES[row.name].range[1]) },
      { key: "n", title: "samples", numeric: true, value: (row) => row.n, text: (row) => count(row.n) },
    ],
  }));
  showAgreement(entry);
}

const temperatureOf = (name) => (name === state.measure ? state.t : 1);
const under = (name, model) => valuesAt(name, temperatureOf(name)).find((candidate) => candidate.index === model);

function showAgreement(entry) {
  const values = DATA.measures.map((measure) => rowOf(SCORES[measure.name].value, entry.index));
  const wide = (at("agreement-chart").clientWidth - 130) / DATA.measures.length > 34;
  const rows = DATA.measures.flatMap((first, x) => DATA.measures.map((second, y) => {
    const rho = x === y ? 1 : spearman(values[x], values[y]);
    return { first: first.name, second: second.name, rho, n: values[x].filter((value, place) => !isMissing(value) && !isMissing(values[y][place])).length, text: rho === null ? "–" : signed(rho), short: rho === null ? "–" : wide ? rho.toFixed(2).replace("-", MINUS) : "" };
  }));
  const apart = rows.filter((row) => row.first < row.second && row.rho !== null).sort((first, second) => first.rho - second.rho);
  at("agreement-takeaway").textContent = agreementOf(apart, entry.model.label);
  draw(at("agreement-chart"), isNarrow() ? "agreement_narrow" : "agreement", { data: { rows }, bands: DATA.measures.length });
  tableBehind(at("agreement-data"), () => ({
    rows: rows.filter((row) => row.first < row.second),
    columns: [
      ...["first", "second"].map((key) => ({ key, title: key === "first" ? "measure" : "and", value: (row) => row[key], text: (row) => row[key] })),
      { key: "rho", title: "Spearman correlation over classes", numeric: true, value: (row) => row.rho, text: (row) => row.text },
      { key: "n", title: "classes", numeric: true, value: (row) => row.n, text: (row) => count(row.n) },
    ],
  }));
}

// Takes pairs of measures from the least agreement to the most.
function agreementOf(pairs, label) {
  if (!pairs.length) return "The measures cannot be compared over classes";
  const [least] = pairs, most = pairs.at(-1), over = `${signed(least.rho)} over ${plural(least.n, "class")}`;
  if (pairs.length === 1) return `${least.first} and ${least.second} order the classes of ${label} with a Spearman correlation of ${over}`;
  if (most.rho - least.rho < TIE_TOLERANCE) return `Every two measures agree alike on which classes of ${label} are weak (Spearman ${over})`;
  return `${least.first} and ${least.second} agree least on which classes of ${label} are weak (Spearman ${over})`;
}

// Takes mistakes [true class, predicted class, samples], the commonest first by `share`, and `words` for what they hold.
function commonestMistake(about, wrong, share, words) {
  if (!wrong.length) return `No mistakes ${about}`;
  const alike = wrong.filter((row) => share(row) === share(wrong[0])).length, all = `${count(sum(wrong.map((row) => row[2])))} mistakes in all`;
  if (alike > 1) return `No mistake ${about} is the commonest: ${alike} pairs of classes are confused alike, ${words.each(wrong[0])} each; ${all}`;
  const [from, to] = wrong[0];
  return `Commonest mistake ${about}: ${words.name(from)} taken for ${words.name(to)}, ${words.often(wrong[0])}; ${all}`;
}

function showConfusion(entry) {
  const known = DATA.confusions?.counts ?? {}, measures = Object.keys(known);
  const measure = measures.includes(state.measure) ? state.measure : measures[0];
  const counts = measure && known[measure][entry.index];
  at("confusion").hidden = !counts;
  if (!counts) return;
  const array = unpacked(counts), triples = Array.from({ length: array.shape[0] }, (_, row) => rowOf(array, row));
  const name = (index) => CLASSES[CLASSES.findIndex((entry) => entry.index === index)];
  const whole = DATA.confusions.whole && CLASSES.length <= 20, totals = new Map();
  for (const [from, , amount] of triples) totals.set(from, (totals.get(from) ?? 0) + amount);
  // Of its class, as the colours show it; the bars of many classes show numbers.
  const share = ([from, , amount]) => (whole ? amount / (totals.get(from) || 1) : amount);
  const wrong = triples.filter(([from, to]) => from !== to).sort((first, second) => share(second) - share(first) || second[2] - first[2]);
  at("confusion-takeaway").textContent = commonestMistake(`of ${entry.model.label} under ${measure}`, wrong, share, {
    name: (index) => classPhrase(name(index).label),
    often: ([from, , amount]) => (whole ? `${count(amount)} of its ${plural(totals.get(from), "sample")}` : plural(amount, "time")),
    each: (row) => (whole ? `${percent(Number(share(row).toPrecision(3)))} of a class` : plural(row[2], "time")),
  });
  at("confusion-note").textContent = whole ? "Rows are true classes, columns predictions; the diagonal, where the model is right, is left out." : `The ${Math.min(20, wrong.length)} commonest mistakes${DATA.confusions.whole ? "" : `, among the ${DATA.confusions.most} commonest of each class`}.`;
  if (whole) {
    const found = new Map(triples.map(([from, to, amount]) => [`${from} ${to}`, amount]));
    const rows = CLASSES.flatMap((from) => CLASSES.map((to) => {
      const amount = found.get(`${from.index} ${to.index}`) ?? 0, share = from.index === to.index ? 0 : amount / (totals.get(from.index) || 1);
      return { true: from.label, predicted: to.label, share, count: share && amount ? String(amount) : "", text: `${amount} of ${totals.get(from.index) ?? 0}` };
    }));
    const most = Math.max(...rows.map((row) => row.share ?? 0));
    draw(at("confusion-chart"), shortNames(CLASSES.map((_, index) => index)) ? "confusion_short" : "confusion", { data: { rows }, signals: { middle: 0.6 * most }, bands: CLASSES.length });
  } else {
    const rows = wrong.slice(0, 20).map(([from, to, amount]) => ({ pair: `${name(from).label} → ${name(to).label}`, short: `${name(from).short} → ${name(to).short}`, count: amount, text: plural(amount, "sample") }));
    const names = Object.fromEntries(rows.map(({ pair, short }) => [pair, short]));
    draw(at("confusion-chart"), "mistakes", { data: { rows }, signals: { names, most: Math.max(...rows.map((row) => row.count), 1) }, bands: rows.length });
  }
  tableBehind(at("confusion-data"), () => ({
    rows: wrong.map((row) => ({ from: name(row[0]).label, to: name(row[1]).label, amount: row[2], share: share(row) })),
    columns: [
      { key: "from", title: "true", value: (row) => row.from, text: (row) => row.from },
      { key: "to", title: "predicted", value: (row) => row.to, text: (row) => row.to },
      { key: "amount", title: "samples", numeric: true, best: true, value: (row) => row.amount, text: (row) => count(row.amount) },
      ...(whole ? [{ key: "share", title: "share of the true class", numeric: true, value: (row) => row.share, text: (row) => number(row.share) }] : []),
    ],
  }));
}

// The pair that the reader chose, else the best two models that were compared.
function chosenPair(pairs) {
  const order = ranked().rows.map((row) => row.index), place = (index) => order.indexOf(index);
  const listed = [...(pairs?.pairs ?? [])].sort((x, y) => place(x[0]) + place(x[1]) - place(y[0]) - place(y[1]))[0];
  const [best, next] = [...(listed ?? order)].sort((x, y) => place(x) - place(y));
  const first = state.a ?? best, second = state.b ?? (next === first ? best : next);
  const found = pairs?.pairs.findIndex(([x, y]) => (x === first && y === second) || (x === second && y === first)) ?? -1;
  return { first, second, place: found, turned: found >= 0 && pairs.pairs[found][0] !== first };
}

function showPair() {
  if (!SEVERAL) return;
  const pairs = PAIRS[state.measure], { first, second, place, turned } = chosenPair(pairs);
  at("a-select").value = first;
  at("b-select").value = second;
  const names = [MODELS[first].label, MODELS[second].label], unknown = place < 0;
  at("pair-figure").hidden = unknown;
  at("pair-takeaway").textContent = first === second ? "Choose two different models" : unknown ? "These two models were not compared sample by sample" : "";
  at("pair-note").textContent = unknown ? "" : `Differences of paired samples at T = 1; bounds are joint over all pairs and classes with ${percent(pairs.confidence)} confidence, p by Holm.`;
  if (unknown) return;
  const sign = turned ? -1 : 1, [low, high] = turned ? ["high", "low"] : ["low", "high"];
  const take = (name) => rowOf(pairs[name], place);
  const values = { difference: take("difference"), low: take(low), high: take(high), p: take("p") };
  const flip = (value) => (isMissing(value) ? null : sign * value);
  const rows = CLASSES.map((entry, index) => {
    const difference = flip(values.difference[index]), lower = flip(values.low[index]), upper = flip(values.high[index]), p = values.p[index];
    return { class: entry.label, difference, lower, upper, p, sure: p !== null && p <= pairs.alpha ? "significant" : "not significant", text: `${signed(difference)} (${interval(lower, upper)})` };
  }).filter((row) => row.difference !== null).sort((x, y) => y.difference - x.difference);
  const sure = rows.filter((row) => row.sure === "significant"), ahead = sure.filter((row) => row.difference > 0).length;
  at("pair-takeaway").textContent = sure.length
    ? `${names[0]} is significantly better on ${count(ahead)} of ${plural(rows.length, "class")}, ${names[1]} on ${count(sure.length - ahead)}`
    : `${names[0]} and ${names[1]} differ significantly on none of ${plural(rows.length, "class")}`;
  const listed = rows.length <= MANY_CLASSES ? rows : [...rows.slice(0, 15), ...rows.slice(-15)];
  draw(at("pair-chart"), "differences", { data: { rows: listed, zero: [{ at: 0 }] }, bands: listed.length, words: { "@difference": [...(isNarrow() ? [MODELS[first].short, `minus ${MODELS[second].short}`] : [`${MODELS[first].short} minus ${MODELS[second].short}`]), `(${MEASURES[state.measure].unit})`, "right of 0 the first is better"] } });
  tableBehind(at("pair-data"), () => ({
    rows,
    columns: [
      { key: "class", title: "class", value: (row) => row.class, text: (row) => row.class },
      { key: "difference", title: "difference", numeric: true, best: true, csv: ["difference", "low", "high"], value: (row) => row.difference, values: (row) => [row.difference, row.lower, row.upper], text: (row) => row.text },
      { key: "p", title: "p (Holm)", numeric: true, value: (row) => row.p, text: (row) => number(row.p) },
      { key: "sure", title: "", value: (row) => row.sure, text: (row) => row.sure },
    ],
  }));
}

const PAIRS = Object.fromEntries(Object.entries(DATA.pairs).map(([measure, pairs]) => [
  measure, pairs && { ...pairs, ...everyPacked({ difference: pairs.difference, low: pairs.low, high: pairs.high, p: pairs.p }) },
]));

onChange((changed) => {
  if (["measure", "t", "tau", "model"].some((key) => changed.has(key))) showModel();
  if (["measure", "lambda", "a", "b"].some((key) => changed.has(key))) showPair();
});
