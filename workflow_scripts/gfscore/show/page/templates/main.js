// The page works without any of this; with it, controls appear.

function drawAll() {
  drawFirst();
  drawRanking();
  drawPair();
  drawFound();
  showMeasure();
}

(async () => {
  if (typeof DecompressionStream === "undefined") return;
  DATA = JSON.parse(await unzipped("data"));
  if (DATA.temperatures) DATA.temperatures.arrays = Object.fromEntries(Object.entries(DATA.temperatures.metrics).map(([name, array]) => [name, unpacked(array)]));
  for (const found of Object.values(DATA.pairs)) if (found) for (const name of ["difference", "low", "high", "overall"]) found[name] = unpacked(found[name]);
  for (const cells of Object.values(DATA.cells)) {
    const grid = unpacked(cells.values);
    cells.rows = Array.from({ length: grid.shape[0] }, (_, line) => rowOf(grid, line));
  }
  for (const [name, array] of Object.entries(DATA.values)) DATA.values[name] = unpacked(array);
  readFragment();
  document.documentElement.classList.add("scripted");
  listen();
  drawAll();
  watchCharts();
  addEventListener("hashchange", () => { if (location.hash.includes("=")) { readFragment(); drawAll(); } });
  window.audit = { data: DATA, state };
  document.documentElement.dataset.ready = "yes";
})();
