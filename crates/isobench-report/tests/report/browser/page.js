// What the browser tests ask of a page. Each is the body of a function; blocks are found by their names.

// --- contrast
// Every text whose colour stands out less than 4.5 to 1 from what is painted behind it.
const numbers = (colour) => (colour.match(/[\d.]+/g) || []).map(Number);
const light = (colour) => {
  const [r, g, b] = numbers(colour).map((value) => value / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    const parts = numbers(colour);
    if (parts.length === 3 || parts[3] === 1) return colour;
    if (parts[3] > 0) return `half-transparent ${colour}`;
  }
  return "rgb(255, 255, 255)";
};
const faint = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || ["SCRIPT", "STYLE"].includes(element.tagName)) continue;
  if (["title", "desc"].includes(element.localName) || !element.getClientRects().length) continue;
  const style = getComputedStyle(element);
  if (style.visibility === "hidden" || style.clipPath !== "none") continue;
  const colour = element instanceof SVGElement ? style.fill : style.color;
  const [one, other] = [light(colour), light(behind(element))];
  const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  if (!(contrast >= 4.5)) {
    faint.push(`${contrast.toFixed(2)}: ${colour} on ${behind(element)}: ${walker.currentNode.textContent.trim().slice(0, 40)}`);
  }
}
return [...new Set(faint)];

// --- clipped
// What is wider than its box, reaches out of the window, or is drawn beyond its picture.
const width = document.documentElement.clientWidth;
const seen = (element) => element.getClientRects().length > 0 && element.checkVisibility();
const veiled = (element) => {
  // What is there for screen readers only is one pixel large on purpose.
  for (let at = element; at; at = at.parentElement) if (getComputedStyle(at).clipPath !== "none") return true;
  return false;
};
const said = (element) =>
  `${element.localName}.${element.getAttribute("class") || ""}: ${element.textContent.trim().slice(0, 40)}`;
const clipped = [];
for (const element of document.querySelectorAll("body, body *")) {
  if (!seen(element) || element.closest(".skip, #tip, script") || veiled(element)) continue;
  const box = element.getBoundingClientRect();
  if (element instanceof SVGElement) {
    const picture = element.closest("svg.chart:not(.swatch), #card-picture, svg");
    const drawn = ["text", "path", "circle", "rect", "line"].includes(element.localName) && !element.closest("defs, clipPath");
    if (!drawn || !picture) continue;
    const frame = picture.getBoundingClientRect();
    const out = Math.max(frame.left - box.left, box.right - frame.right);
    if (out > 2) clipped.push(`${out.toFixed(1)} beyond its picture: ${said(element)}`);
  } else if (element.clientWidth > 0 && element.scrollWidth > element.clientWidth + 1) {
    clipped.push(`${element.scrollWidth} in a box of ${element.clientWidth}: ${said(element)}`);
  }
  if (box.right > width + 1 || box.left < -1) clipped.push(`to ${box.right.toFixed(0)} of ${width}: ${said(element)}`);
  const parent = element.parentElement;
  if (!(element instanceof SVGElement) && parent !== document.documentElement && seen(parent)) {
    const out = box.right - parent.getBoundingClientRect().right;
    if (out > 1 && !["inline", "contents"].includes(getComputedStyle(parent).display)) {
      clipped.push(`${out.toFixed(0)} beyond its parent: ${said(element)}`);
    }
  }
}
return clipped.slice(0, 12);

// --- tipped
// A mark in a picture that lies free under the pointer: where, and what its tip should say.
for (const mark of document.querySelectorAll("figure [data-tip]")) {
  mark.scrollIntoView({ block: "center", behavior: "instant" });
  const box = mark.getBoundingClientRect();
  const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
  const hit = document.elementFromPoint(x, y);
  if (hit && hit.closest("[data-tip]") === mark) return { x, y, tip: mark.dataset.tip };
}
return null;

// --- hatchings
// The colours of all lines that tell kinds apart.
return [...document.querySelectorAll("svg.chart use")]
  .filter((use) => /-h\d+$/.test(use.getAttribute("href")))
  .map((use) => getComputedStyle(use).stroke);

// --- tip
// What the tooltip shows, or null.
const tip = document.getElementById("tip");
return tip.hidden || !tip.getClientRects().length ? null : tip.textContent;

// --- focus
// Puts the keyboard on the first mark that takes it; what its tip should say.
const mark = document.querySelector("figure [data-tip][tabindex]");
if (!mark) return null;
mark.focus();
return mark.dataset.tip;

// --- blocked
// Asks for a picture from the network; calls back with the directive that forbids it.
const done = arguments[arguments.length - 1];
document.addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective));
new Image().src = "https://example.invalid/picture.png";

// --- saved
// Clicks on the first button that a selector finds; calls back with the name and the text of the
// file that it hands out, which the browser isn't left to save.
const done = arguments[arguments.length - 1];
const made = URL.createObjectURL;
const blobs = new Map();
URL.createObjectURL = (blob) => {
  const address = made(blob);
  blobs.set(address, blob);
  return address;
};
HTMLAnchorElement.prototype.click = function () {
  blobs.get(this.href).text().then((text) => done({ file: this.download, text }));
};
document.querySelector(SELECTOR).click();
