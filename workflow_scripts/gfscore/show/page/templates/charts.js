// Charts become interactive when they come into view; what they and tables hold can be taken away.

let library = null, specifications = null;

function loaded() {
  library ??= (async () => {
    const script = document.createElement("script");
    script.textContent = await unzipped("library");
    document.head.append(script);
    specifications = JSON.parse(await unzipped("charts"));
  })();
  return library;
}

const colourOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const panelWidth = (width, columns) => Math.min(480, Math.max(110, Math.floor(width / columns) - 90));

// The same chart as wide as its plot, or with as many panels side by side as there is room for.
function fitted(specification, width) {
  const fit = { ...specification, params: specification.params.map((own) => ({ ...own, value: colourOf(own.name === "surface" ? "paper" : own.name) || own.value })) };
  if (!fit.facet && !fit.concat) {
    // Vega-Lite, which warns of charts whose height follows from their rows, does not learn of it: Vega does.
    delete fit.autosize;
    return { ...fit, width };
  }
  const columns = Math.max(1, Math.min(fit.usermeta?.panels ?? fit.concat?.length ?? 4, Math.floor(width / 240)));
  if (fit.facet) return { ...fit, columns, spec: { ...fit.spec, width: panelWidth(width, columns) } };
  return { ...fit, columns, concat: fit.concat.map((own) => ({ ...own, width: panelWidth(width, columns) })) };
}

async function enliven(plot) {
  await loaded();
  const specification = specifications[plot.dataset.chart];
  if (!specification || plot.dataset.live) return;
  plot.dataset.live = "drawing";
  const host = document.createElement("div");
  host.style.width = "100%";
  const still = [...plot.childNodes];
  plot.append(host);
  const large = (specification.data?.values?.length ?? 0) > 3000;
  try {
    const patch = specification.autosize ? (drawn) => ({ ...drawn, autosize: specification.autosize }) : [];
    const { view } = await window.vegaEmbed(host, fitted(specification, plot.clientWidth), { ast: true, actions: false, renderer: large ? "canvas" : "svg", defaultStyle: false, logLevel: 1, patch });
    if (specification.autosize) addEventListener("resize", () => plot.clientWidth && view.width(plot.clientWidth).runAsync());
    for (const node of still) node.remove();
    host.querySelector("svg, canvas")?.setAttribute("aria-label", plot.parentElement.querySelector("figcaption").textContent);
    const row = document.createElement("p");
    row.className = "js";
    for (const type of ["svg", "png"]) {
      const button = element("button", { type: "button", class: "save" }, type.toUpperCase());
      button.addEventListener("click", async () => save(await view.toImageURL(type, 2), `${plot.dataset.chart}.${type}`));
      row.append(button);
    }
    plot.append(row);
    plot.view = view;
    plot.dataset.live = "yes";
    paint(plot);
  } catch (problem) {
    host.remove();
    plot.dataset.live = "failed";
    throw problem;
  }
}

// In the heatmap of the measure that tau is about, cells that reach it fade; of any measure, only the classes that the
// search finds stay.
function paint(plot) {
  const { measure } = plot.parentElement.dataset, { view } = plot;
  if (!view || view.getState().signals?.tau === undefined) return;
  view.signal("tau", measure === DATA.painted ? state.tau : null).signal("find", found().length ? state.find.trim().toLowerCase() : "").runAsync();
}

function paintAll() {
  const painted = byId("painted");
  if (painted) painted.textContent = DATA.painted && state.tau !== null ? `Cells below τ = ${setting(state.tau)} by ${DATA.painted} keep their colour.` : "";
  document.querySelectorAll(".plot[data-live=yes]").forEach(paint);
}

function save(address, name) {
  const link = element("a", { href: address, download: name });
  link.click();
}

function csvOf(table) {
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
  return [...table.rows].map((row) => [...row.cells].map((cell) => quoted(cell.textContent.trim())).join(",")).join("\n");
}

function watchCharts() {
  for (const table of document.querySelectorAll("table.numbers")) {
    const button = element("button", { type: "button", class: "save js" }, "CSV of this table");
    button.addEventListener("click", () => save(URL.createObjectURL(new Blob([csvOf(table)], { type: "text/csv" })), `${table.dataset.name ?? "table"}.csv`));
    table.parentElement.after(button);
  }
  if (!byId("library") || typeof IntersectionObserver === "undefined") return;
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { watcher.unobserve(entry.target); enliven(entry.target); }
  }, { rootMargin: "200px" });
  for (const plot of document.querySelectorAll(".plot")) watcher.observe(plot);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => location.reload());
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
