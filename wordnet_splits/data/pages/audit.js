const table = document.getElementById("classes");
const heads = [...table.tHead.rows[0].cells];
heads.forEach((head, column) => head.firstElementChild?.addEventListener("click", () => {
  const up = head.getAttribute("aria-sort") !== "ascending";
  heads.forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => (up ? 1 : -1) * value(a).localeCompare(value(b), "en", { numeric: true }));
  table.tBodies[0].append(...rows);
}));
