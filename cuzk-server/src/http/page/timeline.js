// What the workers of the devices did in the last minutes: kept here, for the daemon tells each ended phase once.

import { age, make, setAttribute, span } from "/text.js";

/** Phases in the order in which they run: letter, and what it is called here. */
export const PHASES = {
  queue: ["q", "in the queue"],
  params: ["p", "parameters loading"],
  synthesis: ["s", "synthesis"],
  begin: ["a", "taking over"],
  check: ["c", "check of the witness"],
  stage: ["t", "staging"],
  lock_wait: ["w", "wait for the device"],
  lock_hold: ["k", "kernels"],
  msm_b_g2: ["b", "sum over G2"],
  epilogue: ["e", "epilogue"],
  verify: ["v", "verification"],
};
const OTHER = ["?", "other"];
const ON_DEVICES = ["begin", "check", "stage", "lock_wait", "lock_hold", "msm_b_g2", "epilogue", "verify"];

export const letter = (phase) => (PHASES[phase] ?? OTHER)[0];
export const title = (phase) => (PHASES[phase] ?? [null, phase])[1];
export const colour = (phase) => (phase in PHASES ? phase : "other");

const KEPT_MS = 5 * 60_000;
const LANE = 20;
const GAP = 3;
const AXIS = 16;

/** [device, worker, phase, job, partition, from, to] */
let past = [];
let present = [];
/** By how much the daemon's clock is ahead of ours, in ms. */
let ahead = 0;

export function take(timeline, nowMs) {
  ahead = nowMs - Date.now();
  past = timeline.whole ? timeline.past : past.concat(timeline.past);
  present = timeline.present;
  const oldest = nowMs - KEPT_MS;
  if (past.length > 0 && past[0][6] < oldest) past = past.filter((row) => row[6] >= oldest);
}

export const daemonNow = () => Date.now() + ahead;

/** How many workers of a device are drawn: one more than the rest if it takes an urgent partition beside them. */
export function lanes(device, workers) {
  const most = (rows) => rows.reduce((n, row) => (row[0] === device ? Math.max(n, row[1] + 1) : n), 0);
  return Math.max(workers, most(past), most(present));
}

/** Draws one device's last `seconds`. */
export function draw(canvas, device, workers, seconds) {
  const count = lanes(device, workers);
  const width = canvas.clientWidth;
  const height = count * (LANE + GAP) + AXIS;
  const scale = window.devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  const style = getComputedStyle(canvas);
  const ink = (name) => style.getPropertyValue(name).trim();

  const now = daemonNow();
  const begin = now - seconds * 1000;
  const x = (ms) => ((ms - begin) / (seconds * 1000)) * width;
  for (let lane = 0; lane < count; lane += 1) {
    pen.fillStyle = ink("--groove");
    pen.fillRect(0, lane * (LANE + GAP), width, LANE);
  }
  pen.font = `600 11px ${style.fontFamily}`;
  pen.textBaseline = "middle";
  pen.textAlign = "center";
  let busy = 0;
  for (const rows of [past, present]) {
    for (const [of, worker, phase, , , from, to] of rows) {
      const end = to || now;
      if (of !== device || end < begin) continue;
      const left = Math.max(0, x(from));
      const wide = Math.max(0.75, Math.min(width, x(end)) - left);
      const top = worker * (LANE + GAP);
      pen.fillStyle = ink(`--${colour(phase)}`);
      pen.fillRect(left, top, wide, LANE);
      if (wide >= 14) {
        pen.fillStyle = ink("--on-phase");
        pen.fillText(letter(phase), left + wide / 2, top + LANE / 2 + 0.5);
      }
      if (phase === "lock_hold") busy += end - Math.max(from, begin);
    }
  }
  axis(pen, ink, width, height, seconds);
  const share = Math.min(100, (100 * busy) / (seconds * 1000));
  setAttribute(canvas, "aria-label", `Time line of the last ${span(seconds * 1000)}: kernels ran ${share.toFixed(0)} % of it`);
  return share;
}

function axis(pen, ink, width, height, seconds) {
  pen.font = `11px ${getComputedStyle(pen.canvas).fontFamily}`;
  pen.textBaseline = "alphabetic";
  const steps = width < 500 ? 2 : 4;
  for (let step = 0; step <= steps; step += 1) {
    const at = (width * step) / steps;
    pen.fillStyle = ink("--line");
    if (step > 0 && step < steps) pen.fillRect(at, 0, 1, height - AXIS);
    pen.fillStyle = ink("--quiet");
    pen.textAlign = step === 0 ? "left" : step === steps ? "right" : "center";
    const ago = seconds * (1 - step / steps);
    pen.fillText(step === steps ? "now" : `−${age(ago * 1000)}`, at, height - 3);
  }
}

/** The phases by letter and colour, once. */
export function legend(list) {
  for (const phase of Object.keys(PHASES)) {
    const item = make("li", ON_DEVICES.includes(phase) ? "" : "of-jobs");
    item.append(make("span", `swatch phase-${phase}`, letter(phase)), make("span", "", title(phase)));
    list.append(item);
  }
}
