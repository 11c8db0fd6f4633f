"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") === "ascending";
      const sign = descending ? -1 : 1;
      const key = (row) => row.cells[column];
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        const [m, n] = [x.dataset.n, y.dataset.n];
        if (m !== "" && n !== "") return sign * (Number(m) - Number(n));
        if (m === "" && n === "") return sign * x.textContent.localeCompare(y.textContent);
        return m === "" ? 1 : -1; // what has no number stays last
      });
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      table.tBodies[0].append(...rows);
    });
  });
}
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});
