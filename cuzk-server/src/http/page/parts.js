// The parts of the page, each a function of the picture.

import { age, byId, bytes, clock, counted, each, make, number, say, setAttribute, span, tail } from "/text.js";
import * as timeline from "/timeline.js";

/** How the daemon is, in the page's head. */
export function head(status) {
  say(byId("state"), status.state);
  byId("state").dataset.state = status.state;
  say(byId("completed"), number(status.total_proofs_completed));
  say(byId("failed"), number(status.total_proofs_failed));
  say(byId("uptime"), age(status.uptime_seconds * 1000));
  say(byId("version"), status.version);
  byId("failed").classList.toggle("bad", status.total_proofs_failed > 0);
  const title = `cuzk · ${status.state}`;
  if (document.title !== title) document.title = title;
  byId("notices").hidden = status.warnings.length === 0;
  each(byId("notice-list"), status.warnings, (text) => text, () => make("li"), say);
}

/** The devices, without their time lines. */
export function devices(status, now) {
  const build = () => {
    const item = make("li", "device");
    const top = make("div", "device-head");
    top.append(make("h3"), make("span", "chip"), make("span", "quiet memory"), make("code", "quiet id"));
    const canvas = make("canvas");
    canvas.setAttribute("role", "img");
    const workers = make("ul", "workers");
    item.append(top, make("p", "fence"), canvas, make("p", "quiet use"), workers);
    return item;
  };
  each(byId("device-list"), status.gpus, (gpu) => gpu.uuid, build, (item, gpu) => {
    const fenced = gpu.health === "fenced";
    say(item.querySelector("h3"), gpu.name);
    const chip = item.querySelector(".chip");
    const busy = gpu.busy_workers.length;
    say(chip, fenced ? "gets no work" : busy > 0 ? `${busy} of ${gpu.workers} busy` : "idle");
    chip.dataset.state = fenced ? "failed" : busy > 0 ? "running" : "idle";
    const used = gpu.vram_total_bytes - gpu.vram_free_bytes;
    const total = gpu.vram_total_bytes;
    say(item.querySelector(".memory"), total > 0 ? `${bytes(used)} of ${bytes(total)} in use` : "");
    say(item.querySelector(".id"), [gpu.uuid, gpu.pci_address].filter((text) => text && text !== gpu.name).join(" "));
    const fence = item.querySelector(".fence");
    fence.hidden = !fenced;
    say(fence, fenced ? `Since ${age(now - gpu.fenced_since_unix_ms)}: ${gpu.fence_reason}` : "");
    each(item.querySelector(".workers"), gpu.busy_workers, (_, n) => n, () => {
      const line = make("li");
      line.append(make("span", "swatch"), make("span", "what"), make("span", "quiet"));
      return line;
    }, (line, worker) => {
      const swatch = line.children[0];
      swatch.className = `swatch phase-${timeline.colour(worker.phase)}`;
      say(swatch, timeline.letter(worker.phase));
      say(line.children[1], `${timeline.title(worker.phase)}, ${age(now - worker.since_unix_ms)}`);
      say(line.children[2], `partition ${worker.partition} of ${tail(worker.job_id, 12)}`);
    });
  });
}

/** The time lines, at whatever rate the page likes. */
export function drawDevices(status, seconds) {
  if (!status) return;
  status.gpus.forEach((gpu, index) => {
    const item = byId("device-list").children[index];
    if (!item) return;
    const share = timeline.draw(item.querySelector("canvas"), index, gpu.workers, seconds);
    say(item.querySelector(".use"), `Kernels ran ${share.toFixed(0)} % of the last ${span(seconds * 1000)}`);
  });
}

export function queue(picture) {
  const rows = ["critical", "high", "normal", "low"].map((priority) => [priority, picture.waiting[priority]]);
  const most = Math.max(1, ...rows.map(([, jobs]) => jobs));
  const build = ([priority]) => {
    const row = make("tr");
    const name = make("th", "", priority);
    name.scope = "row";
    const bar = make("td", "bar-column");
    bar.append(make("span", "bar"));
    row.append(name, make("td", "num"), bar);
    return row;
  };
  each(byId("queue-rows"), rows, ([priority]) => priority, build, (row, [, jobs]) => {
    say(row.children[1], String(jobs));
    row.querySelector(".bar").style.width = `${(100 * jobs) / most}%`;
  });
  const sum = (field) => picture.status.queues.reduce((n, one) => n + one[field], 0);
  say(byId("queue-sum"), `${sum("pending")} waiting, ${sum("in_progress")} at work`);
}

const SHARES = { body: "Requests in reception", queue: "Requests of unfinished jobs", work: "Proving" };
const USES = { params: "parameters", witness: "partitions", device: "buffers of devices" };

export function memory(status) {
  const { shares, uses } = status.memory;
  each(byId("share-list"), shares, (share) => share.name, () => {
    const item = make("li");
    const meter = make("div", "meter");
    meter.setAttribute("role", "img");
    item.append(make("span", "name"), make("span", "num"), meter, make("p", "quiet"));
    return item;
  }, (item, share) => {
    const of = uses.filter((use) => use.share === share.name);
    const used = of.reduce((n, use) => n + use.used_bytes, 0);
    const name = SHARES[share.name] ?? share.name;
    const text = `${bytes(used)} of ${bytes(share.limit_bytes)}`;
    say(item.children[0], name);
    say(item.children[1], text);
    const meter = item.children[2];
    setAttribute(meter, "aria-label", `${name}: ${text}`);
    each(meter, of, (use) => use.name, (use) => make("span", `use-${use.name}`), (part, use) => {
      part.style.width = `${(100 * use.used_bytes) / Math.max(1, share.limit_bytes)}%`;
    });
    const parts = of.filter((use) => USES[use.name]).map((use) => `${USES[use.name]} ${bytes(use.used_bytes)}`);
    say(item.children[3], parts.join(", "));
  });
  const pinned = status.pinned_memory_limit_bytes;
  const store = status.store;
  say(byId("store"), [
    pinned > 0 ? `Page-locked: ${bytes(status.pinned_memory_bytes)} of ${bytes(pinned)}.` : "",
    store ? `Job store: ${counted(store.jobs, "job", "jobs")}, ${bytes(store.payload_bytes)}.` : "Jobs are kept in memory only.",
    store?.trouble ? `It takes no jobs: ${store.trouble}` : "",
  ].filter(Boolean).join(" "));
}

const TIERS = { hot: "on a device", warm: "in host memory", cold: "on disk" };

export function parameters(status) {
  const known = status.loaded_srs;
  const others = status.provable_circuits.filter((id) => !known.some((srs) => srs.circuit_id === id));
  const rows = known.concat(others.map((id) => ({ circuit_id: id, tier: "cold", size_bytes: 0, ref_count: 0 })));
  each(byId("srs-rows"), rows, (srs) => srs.circuit_id, (srs) => {
    const row = make("tr");
    const name = make("th", "", srs.circuit_id);
    name.scope = "row";
    const tier = make("td");
    tier.append(make("span", "chip"));
    row.append(name, tier, make("td", "num"), make("td", "num"));
    return row;
  }, (row, srs) => {
    const chip = row.querySelector(".chip");
    say(chip, srs.loading ? `loading, ${srs.loaded_percent} %` : TIERS[srs.tier] ?? srs.tier);
    chip.dataset.state = srs.loading ? "loading" : srs.tier;
    say(row.children[2], srs.size_bytes > 0 ? bytes(srs.size_bytes) : "");
    say(row.children[3], srs.ref_count > 0 ? String(srs.ref_count) : "");
  });
  byId("srs-none").hidden = rows.length > 0;
}

export function errors(status, now) {
  const found = status.incidents;
  each(byId("error-list"), found, (one) => `${one.at_unix_ms} ${one.job_id} ${one.device} ${one.text}`, (one) => {
    const item = make("li");
    const time = make("time", "", clock(one.at_unix_ms));
    time.dateTime = new Date(one.at_unix_ms).toISOString();
    const of = [one.device, one.job_id && `job ${tail(one.job_id, 12)}`].filter(Boolean).join(", ");
    item.append(time, make("span", "quiet ago"), make("span", "quiet", of), make("span", "text", one.text));
    return item;
  }, (item, one) => say(item.querySelector(".ago"), `${age(now - one.at_unix_ms)} ago`));
  byId("errors-none").hidden = found.length > 0;
}
