// The life of the page: a stream of pictures, what is drawn of each, and what to do when the stream ends.

import * as jobs from "/jobs.js";
import * as parts from "/parts.js";
import { age, byId, clock, say } from "/text.js";
import { daemonNow, legend, take } from "/timeline.js";

/** A picture comes every five seconds at least; without one for so long, the connection is dead. */
const SILENCE_MS = 15_000;
const RETRY_MS = [1000, 2000, 4000, 8000, 15_000];
const CLOCK_MS = 1000;

let stream = null;
let latest = null;
/** When the latest picture came, or the latest attempt began, by our clock. */
let heard = 0;
let retries = 0;
let retry = null;

function connect() {
  clearTimeout(retry);
  retry = null;
  stream?.close();
  stream = new EventSource("/events");
  // A connection that opens and says nothing is dead too.
  heard = Date.now();
  stream.onmessage = (event) => {
    retries = 0;
    heard = Date.now();
    show(JSON.parse(event.data));
    linked();
  };
  stream.onerror = () => lost();
}

/** Says that nothing comes any more, and tries again after a while. */
function lost() {
  stream?.close();
  document.body.dataset.link = "lost";
  say(byId("link"), "Connection lost");
  if (retry === null) {
    retry = setTimeout(again, RETRY_MS[Math.min(retries, RETRY_MS.length - 1)]);
    retries += 1;
  }
  tick();
}

/** A refused stream does not say why: it may be that this browser is not in any more. */
async function again() {
  try {
    // Who is in is led back here, and who is not is shown the form.
    const asked = await fetch("/login", { redirect: "manual" });
    if (asked.status === 200) {
      location.assign("/login");
      return;
    }
  } catch {
    // Nobody is there. The next attempt will tell.
  }
  connect();
}

function linked() {
  document.body.dataset.link = "live";
  say(byId("link"), "Live");
  byId("lost").hidden = true;
}

function show(picture) {
  latest = picture;
  const { status, now_unix_ms: now } = picture;
  take(picture.timeline, now);
  parts.head(status);
  parts.devices(status, now);
  parts.queue(picture);
  parts.memory(status);
  parts.parameters(status);
  jobs.unfinished(picture.unfinished, now);
  jobs.ended(picture.ended, now);
  parts.errors(status, now);
  say(byId("as-of"), `As of ${clock(now)}`);
  draw();
}

const seconds = () => Number(document.querySelector("input[name=span]:checked").value);

function draw() {
  if (!document.hidden) parts.drawDevices(latest?.status, seconds());
}

/** What goes on between two pictures. */
function tick() {
  if (document.body.dataset.link !== "lost" && Date.now() - heard > SILENCE_MS) lost();
  if (document.body.dataset.link === "lost") {
    const since = latest ? `What you see is ${age(daemonNow() - latest.now_unix_ms)} old. ` : "";
    say(byId("lost"), `Connection lost. ${since}Trying again.`);
    byId("lost").hidden = false;
    return;
  }
  draw();
}

legend(byId("legend"));
byId("spans").addEventListener("change", draw);
new ResizeObserver(draw).observe(byId("devices"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
setInterval(tick, CLOCK_MS);
connect();
