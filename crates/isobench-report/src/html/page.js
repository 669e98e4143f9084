// What the page gains by a script: tooltips for pointer and keyboard, files of the data, everything opened for printing.
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
      const text = document.getElementById(button.dataset.save).textContent;
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
      link.download = button.dataset.file;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  // On paper nothing can be opened; the data stay out.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open]):not(.data)")];
    for (const details of opened) details.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });
})();
