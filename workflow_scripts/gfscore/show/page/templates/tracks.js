// Rows of tracks, as tracks.html draws them.

const SVG = "http://www.w3.org/2000/svg";
const GLYPHS = { PASS: "✓", FAIL: "×", INCONCLUSIVE: "?" };

function element(name, attributes = {}, ...children) {
  const svg = ["svg", "line", "rect", "circle", "title", "text"].includes(name);
  const node = svg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== undefined) node.setAttribute(key, value);
  node.append(...children.filter((child) => child !== null));
  return node;
}

const at = (value, scale) => `${((100 * (Math.min(Math.max(value, scale.low), scale.high) - scale.low)) / (scale.high - scale.low)).toFixed(3)}%`;

function drawing(row, scale) {
  const svg = element("svg", { class: "track", role: "img", "aria-label": row.about }, element("title", {}, row.about));
  const upright = (name, value, top, bottom) => svg.append(element("line", { class: name, x1: at(value, scale), x2: at(value, scale), y1: top, y2: bottom }));
  if (row.band) svg.append(element("rect", { class: row.closed ? "band" : "band open", x: at(row.band[0], scale), width: at(scale.low + row.band[1] - row.band[0], scale), y: 4, height: 10 }));
  if (!isMissing(scale.threshold)) upright("threshold", scale.threshold, -6, 24);
  if (!isMissing(row.low) && !isMissing(row.high)) svg.append(element("line", { class: "whisker", x1: at(row.low, scale), x2: at(row.high, scale), y1: 9, y2: 9 }));
  if (!isMissing(row.clean)) upright("tick", row.clean, 3, 15);
  if (!isMissing(row.point)) svg.append(element("circle", { class: "dot", cx: at(row.point, scale), cy: 9, r: 4 }));
  return svg;
}

// Where a model is chosen, a click on another row chooses that one.
function drawRows(table, rows, scale, chosen = null) {
  const pick = chosen !== null;
  const lines = rows.map((row) => {
    const name = pick
      ? element("button", { type: "button", "data-model": row.model, "aria-pressed": String(row.model === chosen), "aria-label": row.verdict ? `${row.name}: ${row.verdict}` : row.name }, row.short)
      : row.short;
    const sign = pick ? element("span", { class: "sign", "aria-hidden": "true" }, GLYPHS[row.verdict] ?? "") : null;
    return element("tr", { class: pick && row.model === chosen ? "chosen" : null },
      element("th", { scope: "row", title: row.name }, ...[sign, name].filter(Boolean)),
      element("td", {}, drawing(row, scale)),
      element("td", { class: "num" }, row.text));
  });
  table.tBodies[0].replaceChildren(...lines);
}

function drawAxis(table, scale) {
  const texts = scale.ticks.map((value) =>
    element("text", { x: at(value, scale), y: 12, class: value === scale.low ? "first" : value === scale.high ? "last" : "" }, setting(value)));
  table.tFoot.querySelector("svg").replaceChildren(...texts);
}

// As gfscore.show.page.tracks.Scale.ticks.
function scaleOf(low, high, threshold = null) {
  const width = high - low;
  const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10].find((size) => width / size < 6) ?? width;
  const first = Math.ceil(low / step - 1e-9), ticks = [];
  for (let place = first; place * step <= high + 1e-9; place += 1) ticks.push(Number((place * step).toFixed(10)));
  return { low, high, threshold, ticks };
}
