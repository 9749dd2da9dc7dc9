// A click on a heading sorts its table; without this script tables stay as they are.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  const number = text => parseFloat(text.replace(/[^0-9.eE+-]/g, " "));
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    head.classList.add("sortable");
    head.tabIndex = 0;
    head.title = "Sort by this column";
    const sort = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const text = row => row.cells[column].textContent.trim();
      const compare = (a, b) => {
        const difference = number(text(a)) - number(text(b));
        return Number.isNaN(difference) ? text(a).localeCompare(text(b)) : difference;
      };
      const rows = [...body.rows].sort(compare);
      body.append(...(down ? rows.reverse() : rows));
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", event => { if (event.key === "Enter") sort(); });
  });
}
