// Charts: embedded once, then given new data; those out of sight wait until the browser has time.

const drawn = new Map();
const hosts = new IntersectionObserver(
  (entries) => entries.forEach(({ target, isIntersecting }) => {
    const chart = drawn.get(target);
    chart.visible = isIntersecting;
    if (isIntersecting) apply(chart);
  }),
  { rootMargin: "200px" },
);
const CANVAS = new Set(["strip"]);
const whenIdle = window.requestIdleCallback ?? ((task) => setTimeout(task, 30));

// Show a chart: `data` by name, `signals` by name, `words` that replace titles beginning with "@", and how many `bands`
// stand below each other where the height depends on it.
function draw(host, name, { data, signals = {}, words = {}, bands = 1, ready = null }) {
  let chart = drawn.get(host);
  if (!chart || chart.name !== name) {
    chart?.view?.finalize();
    chart = { host, name, visible: chart?.visible ?? false, view: null, embedding: false, words: null };
    drawn.set(host, chart);
    hosts.observe(host);
  }
  Object.assign(chart, { wanted: { data, signals, words, bands, ready }, stale: true });
  if (chart.visible) apply(chart);
  else whenIdle(() => apply(chart));
}

function apply(chart) {
  if (!chart.stale || chart.embedding || !chart.host.isConnected) return;
  chart.stale = false;
  const { data, signals, words, bands } = chart.wanted, key = JSON.stringify(words);
  if (!chart.view || chart.words !== key) return embed(chart, key);
  for (const [name, value] of Object.entries(signals)) chart.view.signal(name, value);
  for (const [name, rows] of Object.entries(data)) chart.view.data(name, rows);
  if (chart.step) chart.view.height(chart.step * bands);
  chart.view.run();
}

async function embed(chart, key) {
  const { data, signals, words, bands, ready } = chart.wanted;
  const spec = JSON.parse(JSON.stringify(CHARTS[chart.name]), (_, value) => (value in words ? words[value] : value));
  chart.step = spec.height.step;
  if (chart.step) spec.height = chart.step * bands;
  spec.datasets = data;
  const values = { ...theme(), names: SHORT, ...signals };
  for (const parameter of spec.params) if (parameter.name in values) parameter.value = values[parameter.name];
  chart.embedding = true;
  const result = await vegaEmbed(chart.host, spec, {
    mode: "vega-lite",
    renderer: CANVAS.has(chart.name) ? "canvas" : "svg",
    actions: { export: true, source: false, compiled: false, editor: false },
    downloadFileName: `${DATA.audit}-${chart.name}`,
    // Errors only: Vega warns of data that are empty for now.
    logLevel: 1,
    i18n: { CLICK_TO_VIEW_ACTIONS: "Save this chart", PNG_ACTION: "Save as PNG", SVG_ACTION: "Save as SVG" },
  });
  Object.assign(chart, { view: result.view, embedding: false, words: key });
  chart.host.querySelector("svg, canvas")?.setAttribute("aria-hidden", "true");
  ready?.(result.view);
  if (chart.stale) apply(chart);
}

const viewOf = (host) => drawn.get(host)?.view;

function theme() {
  const style = getComputedStyle(document.documentElement);
  const names = CHARTS.ranking.params.map((parameter) => parameter.name);
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]).filter(([, value]) => value));
}

function recolour() {
  const colours = theme();
  for (const { view } of drawn.values()) {
    if (!view) continue;
    for (const [name, value] of Object.entries(colours)) view.signal(name, value);
    view.run();
  }
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
window.addEventListener("beforeprint", () => {
  recolour();
  drawn.forEach((chart) => apply(chart));
});
window.addEventListener("afterprint", recolour);
