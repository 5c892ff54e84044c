// Pointer and arrow keys read values, legends hide lines, panels are saved as SVG and CSV.
const all = (root, selector) => [...root.querySelectorAll(selector)];
const shown = (figure) => all(figure, ".drawing").find((drawing) => drawing.getClientRects().length);
const data = (figure) => JSON.parse(figure.querySelector("script").textContent);
const said = (value) => value?.toLocaleString("en", { maximumSignificantDigits: 4 }) ?? "?";
function put(node, attributes, ...inside) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...inside);
  return node;
}
const html = (tag, ...rest) => put(document.createElement(tag), ...rest);
const draw = (tag, ...rest) => put(document.createElementNS("http://www.w3.org/2000/svg", tag), ...rest);
const pressing = (nodes, run) => nodes.forEach((node) => node.addEventListener("click", () => run(node)));
// An axis: the drawing's ends, the values there, whether it is logarithmic.
function place([from, to, low, high, logarithmic], value) {
  const on = logarithmic ? Math.log : Number;
  return from + (to - from) * (on(value) - on(low)) / (on(high) - on(low));
}
const saved = { // a panel as a file, by its ending
  csv(figure) {
    const { columns, series } = data(figure), cell = (text) => `"${text.replaceAll('"', '""')}"`;
    const rows = series.flatMap(({ name, x, mean, lower, upper }) =>
      x.map((t, i) => [cell(name), t, mean[i], lower[i], upper[i]].join(",")));
    return `data:text/csv,${encodeURIComponent([columns.map(cell), ...rows, ""].join("\r\n"))}`;
  },
  svg(figure) { // needs no page: a title, a legend of what is shown, the colours of paper
    const copy = shown(figure).cloneNode(true), { width, height } = copy.viewBox.baseVal;
    all(copy, ".cursor, .off").forEach((part) => part.remove());
    const keys = all(figure.closest(".charts"), ".legend > :not([aria-pressed=false])");
    copy.append(draw("text", { x: 4, y: -12, "font-weight": 600 }, figure.ariaLabel));
    keys.forEach((key, i) => copy.append(
      put(key.firstChild.cloneNode(true), { x: 4, y: height + 18 * i, width: 34, height: 12 }),
      draw("text", { x: 46, y: height + 18 * i + 10 }, key.textContent)));
    put(copy, { viewBox: `0 -30 ${width} ${height + 34 + 18 * keys.length}`,
      "font-family": "sans-serif", "font-size": 12.5, fill: "var(--ink,#1a1d21)" });
    const text = new XMLSerializer().serializeToString(copy).replace(/var\(--\w+,([^)]+)\)/g, "$1");
    return `data:image/svg+xml,${encodeURIComponent(text)}`;
  },
};
function readable(figure) {
  const chart = figure.closest(".charts"), button = (line) => chart.querySelector(`[data-series=${line.key}]`);
  const { series } = data(figure), { x: times, labels } = series[0], steps = { ArrowLeft: -1, ArrowRight: 1 };
  const tip = figure.appendChild(html("div", { class: "tip" })), cursor = draw("g", { class: "cursor" });
  let now = 0;
  function read(to) { // shows the values at one of the times, the biggest first
    const drawing = shown(figure), on = series.filter((line) => button(line).ariaPressed === "true");
    now = Math.max(0, Math.min(to, times.length - 1));
    tip.className = "tip";
    tip.hidden = !drawing || !on.length;
    if (tip.hidden) return;
    const { x, y } = JSON.parse(drawing.dataset.axes), cx = place(x, times[now]);
    tip.replaceChildren(html("b", {}, labels?.[now] ?? `t = ${times[now].toLocaleString("en")}`));
    cursor.replaceChildren(draw("path", { d: `M${cx} ${y[0]}V${y[1]}` }));
    for (const line of on.sort((a, b) => b.mean[now] - a.mean[now])) {
      const [mean, lower, upper] = ["mean", "lower", "upper"].map((name) => line[name][now]);
      const band = lower === upper ? "" : ` [${said(lower)}, ${said(upper)}]`, cy = place(y, mean);
      tip.append(html("div", {}, button(line).firstChild.cloneNode(true), `${line.name} ${said(mean)}${band}`));
      if (cy <= y[0] && cy >= y[1]) cursor.append(draw("circle", { cx, cy, r: 4, fill: line.colour }));
    }
    drawing.append(cursor);
    const scale = drawing.clientWidth / drawing.viewBox.baseVal.width;
    const beside = cx * scale + (cx < (x[0] + x[1]) / 2 ? 12 : -12 - tip.offsetWidth);
    tip.style.left = `${Math.max(0, Math.min(beside, figure.clientWidth - tip.offsetWidth))}px`;
    tip.style.top = `${figure.querySelector("figcaption").offsetHeight + drawing.clientHeight}px`; // covers nothing
  }
  function rest() {
    read(times.length - 1);
    cursor.remove();
    tip.classList.add("resting"); // on a phone it stays, below the panel
  }
  for (const drawing of all(figure, ".drawing")) {
    new ResizeObserver(rest).observe(put(drawing, { tabindex: 0 })); // other scale or width, or unfolded
    drawing.addEventListener("pointermove", (event) => {
      const { left, width } = drawing.getBoundingClientRect(), { x } = JSON.parse(drawing.dataset.axes);
      const at = (event.clientX - left) * drawing.viewBox.baseVal.width / width;
      const far = times.map((time) => Math.abs(place(x, time) - at));
      read(far.indexOf(Math.min(...far)));
    });
    drawing.addEventListener("keydown", ({ key }) => {
      if (key in steps) read(now + steps[key]);
      chart.querySelector("[aria-live]").textContent = tip.innerText;
    });
    for (const kind of ["pointerleave", "blur"]) drawing.addEventListener(kind, rest);
  }
  pressing(all(chart, "[data-series]"), ({ dataset }) => {
    all(figure, `.drawing .${dataset.series}`).forEach((part) => part.classList.toggle("off"));
    rest();
  });
}
pressing(all(document, "[data-series]"), (button) =>
  put(button, { "aria-pressed": button.ariaPressed !== "true" }));
all(document, ".charts:has([data-series]) figure").forEach(readable);
pressing(all(document, "[data-save]"), (button) => {
  const figure = button.closest("figure"), kind = button.dataset.save;
  html("a", { href: saved[kind](figure), download: `${figure.id}.${kind}` }).click();
});
for (const table of all(document, ".wide")) new ResizeObserver(() =>
  table.classList.toggle("moves", table.scrollWidth > table.clientWidth + 1)).observe(table);
document.documentElement.classList.add("live");
