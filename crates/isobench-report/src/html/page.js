// What the page gains by a script: tooltips for pointer and keyboard, files of the data, tables that can be sorted and filtered.
// Without it the page is complete: pictures have titles, data can be read, and the theme is chosen by the style alone.
"use strict";
(() => {
  const tip = document.getElementById("tip");
  let owner = null;

  // A picture's titles become labels, or the browser would show a second tooltip beside ours.
  for (const title of document.querySelectorAll("svg title")) {
    const parent = title.parentNode;
    if (!parent.hasAttribute("aria-label")) parent.setAttribute("aria-label", title.textContent);
    if (!parent.hasAttribute("data-tip") && parent.localName !== "svg") {
      parent.setAttribute("data-tip", title.textContent);
    }
    parent.removeAttribute("aria-labelledby");
    title.remove();
  }
  for (const part of document.querySelectorAll("svg .series:not([data-tip])")) {
    part.setAttribute("data-tip", part.getAttribute("aria-label"));
  }

  function place(x, y) {
    const room = 12;
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(Math.max(room, x + room), document.documentElement.clientWidth - width - room);
    const above = y - height - room;
    tip.style.left = `${Math.max(room, left)}px`;
    tip.style.top = `${above > room ? above : y + 2 * room}px`;
  }

  function show(element, x, y) {
    if (owner !== element) {
      hide();
      owner = element;
      tip.textContent = element.getAttribute("data-tip");
      tip.hidden = false;
      element.setAttribute("aria-describedby", "tip");
    }
    place(x, y);
  }

  function hide() {
    if (owner) owner.removeAttribute("aria-describedby");
    owner = null;
    tip.hidden = true;
  }

  const tipped = (event) => (event.target instanceof Element ? event.target.closest("[data-tip]") : null);
  document.addEventListener("pointermove", (event) => {
    const element = tipped(event);
    if (element) show(element, event.clientX, event.clientY);
    else if (owner && owner !== document.activeElement) hide();
  });
  function showAt(element) {
    const box = element.getBoundingClientRect();
    show(element, box.left + box.width / 2, box.top);
  }
  document.addEventListener("focusin", (event) => {
    const element = tipped(event);
    if (element) showAt(element);
    else hide();
  });
  document.addEventListener("focusout", hide);
  // The keyboard's way to a mark scrolls the page, so its tip follows; the pointer's mark has moved away.
  const scrolled = () => (owner && owner === document.activeElement ? showAt(owner) : hide());
  document.addEventListener("scroll", scrolled, { capture: true, passive: true });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });

  for (const button of document.querySelectorAll("button.save")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const source = document.getElementById(button.dataset.save);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([source.textContent], { type: "text/plain;charset=utf-8" }));
      link.download = button.dataset.file;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = false;
    const label = button.textContent;
    button.addEventListener("click", async () => {
      const source = document.getElementById(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(source.textContent);
        button.textContent = "Copied";
      } catch {
        // Where the browser doesn't let a page write there, the text is selected for the reader to copy.
        getSelection().selectAllChildren(source);
        button.textContent = "Selected: press Ctrl+C";
      }
      setTimeout(() => { button.textContent = label; }, 4000);
    });
  }

  // Tables: a click on a heading sorts the rows of each group, a choice of a factor's value hides the others.
  const value = (row, column) => {
    const cell = row.cells[column];
    const line = cell && (cell.querySelector(".line") || cell.firstChild);
    const text = line ? line.textContent.trim() : "";
    const number = Number.parseFloat(text.replace(/[,≥≤<>= ]/g, "").replace("−", "-"));
    return { text, number };
  };
  const compared = (one, other) => {
    if (Number.isNaN(one.number) !== Number.isNaN(other.number)) return Number.isNaN(one.number) ? 1 : -1;
    return Number.isNaN(one.number) ? one.text.localeCompare(other.text) : one.number - other.number;
  };
  for (const table of document.querySelectorAll("table.fit, table.results")) {
    const rows = [...table.tBodies].flatMap((body) => [...body.rows].filter((row) => row.cells.length > 1));
    if (rows.length < 2) continue;
    // Rows of one name are a group only for the eye; where groups have headings they stay together.
    const grouped = table.querySelector("th.group") !== null;
    const headings = [...table.tHead.rows[0].cells];
    for (const [column, heading] of headings.entries()) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const down = heading.getAttribute("aria-sort") === "ascending";
        for (const other of headings) other.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", down ? "descending" : "ascending");
        table.closest(".rows")?.classList.add("chosen");
        const order = (one, other) => (down ? -1 : 1) * compared(value(one, column), value(other, column));
        const bodies = grouped ? [...table.tBodies] : [table.tBodies[0]];
        for (const body of bodies) {
          const own = grouped ? rows.filter((row) => row.parentNode === body) : rows;
          body.append(...[...own].sort(order));
        }
      });
    }
  }
  for (const filters of document.querySelectorAll(".filters")) {
    filters.hidden = false;
    const all = filters.closest(".rows");
    const rows = [...all.querySelectorAll("tr[data-values]")];
    const choices = [...filters.querySelectorAll("select")];
    filters.addEventListener("change", () => {
      for (const row of rows) {
        const values = JSON.parse(row.dataset.values);
        row.hidden = choices.some((choice) => choice.value !== "" && choice.value !== values[choice.dataset.filter]);
      }
      for (const body of all.querySelectorAll("tbody")) {
        body.hidden = [...body.querySelectorAll("tr[data-values]")].every((row) => row.hidden);
      }
      const chosen = choices.some((choice) => choice.value !== "");
      all.classList.toggle("chosen", chosen);
      const first = rows.filter((row) => row.closest("table") === all.querySelector("table"));
      const shown = first.filter((row) => !row.hidden).length;
      filters.querySelector("[role=status]").textContent = chosen ? `${shown} of ${first.length} rows` : "";
    });
  }

  // A link into what is folded opens it.
  const unfold = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const details = target && (target.closest("details") || target.querySelector(":scope > details.folded"));
    if (details) details.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();
})();
