// Charts stand still; the heatmap of classes answers the threshold and the search, and all can be taken away.

const colourOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// In the heatmap of the measure that tau is about, cells that reach it fade; of any measure, classes that the search
// does not find.
function paint(plot) {
  const cells = DATA.cells[plot.dataset.chart];
  if (!cells) return;
  const tau = plot.parentElement.dataset.measure === DATA.painted ? state.tau : null;
  const wanted = found().length ? state.find.trim().toLowerCase() : "";
  const hidden = cells.columns.map((name) => wanted !== "" && !name.toLowerCase().includes(wanted));
  const fades = (line, place) => hidden[place] || (tau !== null && cells.rows[line][place] !== null && cells.rows[line][place] >= tau);
  for (const svg of plot.querySelectorAll("svg")) veil(svg, cells.rows, fades);
}

// A veil over the cells that fade, a rectangle for each run of them, under their numbers.
function veil(svg, values, fades) {
  const [left, top, width, height] = svg.dataset.box.split(" ").map(Number);
  const rows = values.length, columns = values[0].length, shade = svgElement("g", { class: "veils" });
  for (let line = 0; line < rows; line += 1) for (let place = 0; place < columns; place += 1) {
    if (!fades(line, place)) continue;
    const start = place;
    while (place + 1 < columns && fades(line, place + 1)) place += 1;
    shade.append(svgElement("rect", {
      class: "veil", x: left + (start * width) / columns, y: top + (line * height) / rows,
      width: ((place + 1 - start) * width) / columns, height: height / rows,
    }));
  }
  svg.querySelector(".veils")?.remove();
  svg.querySelector(".cells").after(shade);
  for (const number of svg.querySelectorAll(".number")) {
    const [, line, place] = number.classList;
    number.classList.toggle("veiled", fades(Number(line), Number(place)));
  }
}

function svgElement(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function paintAll() {
  const painted = byId("painted");
  if (painted) painted.textContent = DATA.painted && state.tau !== null ? `Cells below τ = ${setting(state.tau)} by ${DATA.painted} keep their colour.` : "";
  document.querySelectorAll(".plot").forEach(paint);
}

// The picture as a file of its own, in the colours of the page.
function standalone(svg) {
  const copy = svg.cloneNode(true), { width, height } = svg.viewBox.baseVal;
  const faded = svgElement("style", {});
  faded.textContent = ".veil { fill: var(--paper); opacity: 0.82; } .veiled text { fill: var(--ink) !important; }";
  copy.prepend(faded, svgElement("rect", { width, height, style: "fill: var(--paper)" }));
  copy.setAttribute("font-family", getComputedStyle(svg).fontFamily);
  for (const [name, value] of [["width", width], ["height", height]]) copy.setAttribute(name, value);
  return new XMLSerializer().serializeToString(copy).replace(/var\(--([a-z]+)\)/g, (_, name) => colourOf(name));
}

async function asPng(text, { width, height }) {
  const image = new Image(), canvas = document.createElement("canvas");
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  Object.assign(canvas, { width: 2 * width, height: 2 * height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/png");
}

async function savePicture(plot, type) {
  const svg = [...plot.querySelectorAll("svg")].find((own) => own.checkVisibility()), text = standalone(svg);
  const address = type === "svg" ? URL.createObjectURL(new Blob([text], { type: "image/svg+xml" })) : await asPng(text, svg.viewBox.baseVal);
  save(address, `${plot.dataset.chart}.${type}`);
}

function save(address, name) {
  const link = element("a", { href: address, download: name });
  link.click();
}

// What a spreadsheet would take for a formula begins with an apostrophe, as in gfscore.tables.csv_files.as_cell.
function csvOf(table) {
  const cellOf = (text) => text.split(/([;\n])/).map((part) => (/^\s*[=+\-@]/.test(part.normalize("NFKC")) && Number.isNaN(Number(part)) ? `'${part}` : part)).join("");
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
  return [...table.rows].map((row) => [...row.cells].map((cell) => quoted(cellOf(cell.textContent.trim()))).join(",")).join("\n");
}

function watchCharts() {
  for (const table of document.querySelectorAll("table.numbers")) {
    const button = element("button", { type: "button", class: "save js" }, "CSV of this table");
    button.addEventListener("click", () => save(URL.createObjectURL(new Blob([csvOf(table)], { type: "text/csv" })), `${table.dataset.name ?? "table"}.csv`));
    table.parentElement.after(button);
  }
  for (const plot of document.querySelectorAll(".plot")) {
    const row = element("p", { class: "js" });
    for (const type of ["svg", "png"]) {
      const button = element("button", { type: "button", class: "save" }, type.toUpperCase());
      button.addEventListener("click", () => savePicture(plot, type));
      row.append(button);
    }
    plot.append(row);
  }
}

// The heatmap of the chosen measure takes the place of the one shown, which goes where that one was.
function showMeasure() {
  const slot = document.querySelector("#class > figure.chart"), measure = state.measure ?? DATA.measure;
  const wanted = [...document.querySelectorAll("#class figure.chart")].find((chart) => chart.dataset.name === slot?.dataset.name && chart.dataset.measure === measure);
  if (!slot || !wanted || wanted === slot) return;
  const place = document.createElement("span");
  wanted.replaceWith(place);
  const summary = place.closest("details").querySelector("summary");
  summary.textContent = summary.textContent.replace(measure, slot.dataset.measure);
  slot.replaceWith(wanted);
  place.replaceWith(slot);
}
