// Sorting is a convenience: without scripts every table is readable in its given order.
const leaves = (table) => {
  // Header cells of single columns with their column, also under headers that span several.
  const [first, second] = table.tHead.rows;
  if (!second) return [...first.cells].map((cell, column) => [cell, column]);
  const below = [...second.cells];
  const found = [];
  let column = 0;
  for (const cell of first.cells) {
    if (cell.rowSpan > 1) found.push([cell, column++]);
    else for (let i = 0; i < cell.colSpan; i++) found.push([below.shift(), column++]);
  }
  return found;
};
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = leaves(table);
  for (const [head, column] of heads) {
    const numeric = head.classList.contains("number");
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    const key = (row) => {
      const cell = row.cells[column];
      const text = cell?.dataset.sort ?? cell?.textContent.trim() ?? "";
      return numeric ? (text === "" ? NaN : Number(text.replace("\u2212", "-").replaceAll(",", ""))) : text;
    };
    button.addEventListener("click", () => {
      // Numbers start with the largest, words with the first letter.
      const sorted = head.getAttribute("aria-sort");
      const descending = sorted ? sorted === "ascending" : numeric;
      for (const [other] of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows].map((row) => [key(row), row]);
      rows.sort(([x], [y]) => {
        if (!numeric) return (descending ? -1 : 1) * x.localeCompare(y);
        // Missing numbers stay at the end.
        if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
        return (descending ? -1 : 1) * (x - y);
      });
      table.tBodies[0].append(...rows.map(([, row]) => row));
    });
  }
}
// Paper cannot be unfolded: print shows everything.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => { part.open = true; }));
