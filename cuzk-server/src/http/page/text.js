// Values as text, and the few ways in which this page touches the document: text goes in as text, never as markup.

export const byId = (id) => document.getElementById(id);

/** A new element with a class and a text. */
export function make(name, kind = "", text = "") {
  const element = document.createElement(name);
  if (kind) element.className = kind;
  if (text) element.textContent = text;
  return element;
}

/** Changes a text only where it differs, so that selections and screen readers are left in peace. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** Keeps one child of `parent` for each item, in order: `build` makes it, `update` fills it. */
export function each(parent, items, key, build, update) {
  const known = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  items.forEach((item, index) => {
    const id = String(key(item, index));
    let child = known.get(id);
    known.delete(id);
    if (!child) {
      child = build(item);
      child.dataset.key = id;
    }
    if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] ?? null);
    update(child, item, index);
  });
  known.forEach((child) => child.remove());
}

/** 1536 -> "1.5 KiB". */
export function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) {
    count /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || count >= 100 ? 0 : 1;
  return `${count.toFixed(digits)} ${units[unit]}`;
}

/** 21480 -> "21,480". */
export const number = (count) => count.toLocaleString("en");

/** Milliseconds as people say them: "850 ms", "12.3 s", "3 min 4 s", "5 h". */
export function span(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return two(Math.floor(whole / 60), "min", whole % 60, "s");
  const minutes = Math.floor(whole / 60);
  if (minutes < 48 * 60) return two(Math.floor(minutes / 60), "h", minutes % 60, "min");
  return two(Math.floor(minutes / 1440), "d", Math.floor(minutes / 60) % 24, "h");
}

const two = (large, unit, small, smaller) => `${large} ${unit}${small > 0 ? ` ${small} ${smaller}` : ""}`;

/** As {@link span}, in whole seconds: for what counts on. */
export function age(ms) {
  return ms < 60_000 ? `${Math.max(0, Math.floor(ms / 1000))} s` : span(ms);
}

export const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour12: false });

/** The end of a long name, which tells one from another. */
export const tail = (text, length) => (text.length <= length ? text : `…${text.slice(-length + 1)}`);

export const counted = (count, one, many) => `${count} ${count === 1 ? one : many}`;
