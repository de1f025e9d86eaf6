// Tables beside the charts: the same numbers, sortable, and as CSV in full precision. Names are text, never markup.

const MOST_ROWS = 200;

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

// Columns are {title, value(row), text(row) or node(row), numeric, key, under: words below the title}; `sorted` is
// {key, change} where the state keeps the order, else the table keeps it.
function table(host, { columns, rows, caption, sorted = null, chosen = null }) {
  host.shown = { columns, rows };
  if (!host.own) host.own = { key: null, down: false };
  const key = sorted ? sorted.key : host.own.key;
  const column = columns.find((candidate) => candidate.key === String(key ?? "").replace(/^-/, "")) ?? null;
  const down = sorted ? String(key).startsWith("-") : host.own.down;
  const ordered = column ? [...rows].sort((first, second) => compare(column.value(first), column.value(second), down)) : rows;
  const head = columns.map((candidate) => heading(host, candidate, column, down, sorted));
  const body = ordered.slice(0, MOST_ROWS).map((row) =>
    element("tr", { class: chosen?.(row) ? "chosen" : null }, ...columns.map((candidate, position) => cell(candidate, row, position))),
  );
  const grid = element("table", {}, element("caption", {}, caption), element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body));
  const left = rows.length > MOST_ROWS ? [element("p", { class: "note" }, `The first ${MOST_ROWS} of ${count(rows.length)} rows; the CSV file holds all of them.`)] : [];
  const focused = host.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  host.replaceChildren(grid, ...left);
  if (focused) host.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

function heading(host, column, active, down, sorted) {
  const current = column === active;
  const click = () => {
    const reverse = current ? !down : Boolean(column.best);
    if (sorted) sorted.change((reverse ? "-" : "") + column.key);
    else { host.own = { key: column.key, down: reverse }; table(host, { ...host.last }); }
  };
  const mark = current ? (down ? " ▼" : " ▲") : "";
  return element(
    "th",
    { scope: "col", class: column.numeric ? "numeric" : null, "aria-sort": current ? (down ? "descending" : "ascending") : null },
    element("button", { type: "button", "data-key": column.key, title: column.about ?? `Sort by ${column.title}`, onclick: click }, column.title + mark),
    ...(column.under ? [element("small", { class: "bounds" }, column.under)] : []),
  );
}

function cell(column, row, position) {
  const content = column.node ? column.node(row) : column.text(row);
  return element(position === 0 && !column.numeric ? "th" : "td", { class: column.numeric ? "numeric" : null, scope: position === 0 && !column.numeric ? "row" : null }, content);
}

function compare(first, second, down) {
  if (isMissing(first) || isMissing(second)) return isMissing(first) - isMissing(second);
  const order = typeof first === "string" ? first.localeCompare(second) : first - second;
  return down ? -order : order;
}

// A spreadsheet must not take a name for a formula.
function csvField(value) {
  const text = isMissing(value) ? "" : typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? "'" + value : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

function csv({ columns, rows }) {
  const lines = [columns.flatMap((column) => column.csv ?? [column.title]), ...rows.map((row) => columns.flatMap((column) => (column.values ? column.values(row) : [column.value(row)])))];
  return lines.map((line) => line.map(csvField).join(",")).join("\r\n") + "\r\n";
}

function save(name, text, type) {
  const link = element("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// A table inside <details> is made when it is opened; `make` returns its columns and rows.
function tableBehind(host, make) {
  host.make = make;
  if (!host.body) {
    host.body = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" });
    const button = element("button", { type: "button", class: "save", onclick: () => save(`${DATA.audit}-${host.dataset.table}.csv`, csv(host.make()), "text/csv") }, "Download CSV");
    host.append(button, host.body);
    host.addEventListener("toggle", () => host.open && fill(host));
  }
  if (host.open) fill(host);
}

function fill(host) {
  const made = { caption: host.querySelector("summary").textContent, ...host.make() };
  host.body.last = made;
  table(host.body, made);
}
