// Jobs, a row each, with a bar that shows where their time went.

import { age, byId, clock, each, make, say, setAttribute, span, tail } from "/text.js";
import { colour, letter, title } from "/timeline.js";

/** Those that follow one another; what a prover tells beside them is part of the kernels. */
const PROVER = ["check", "stage", "lock_wait", "lock_hold", "msm_b_g2", "epilogue", "verify"];

/** [phase, ms] of a job, summed over its partitions. */
function phases(job) {
  const told = new Map(job.phases.map((phase) => [phase.name, phase.duration_us / 1000]));
  // The wait for parameters is a part of the wait in the queue.
  const all = [["queue", Math.max(0, job.queue_wait_ms - job.srs_load_ms)], ["params", job.srs_load_ms], ["synthesis", job.synthesis_ms]];
  return all.concat(PROVER.map((name) => [name, told.get(name) ?? 0])).filter(([, ms]) => ms > 0);
}

function bar(cell, job) {
  const parts = phases(job);
  const sum = parts.reduce((n, [, ms]) => n + ms, 0);
  const [drawn, words] = cell.children;
  each(drawn, parts, ([name]) => name, ([name]) => make("span", `phase-${colour(name)}`), (part, [name, ms]) => {
    const share = (100 * ms) / sum;
    part.style.width = `${share}%`;
    say(part, share >= 7 ? letter(name) : "");
  });
  drawn.hidden = parts.length === 0;
  const text = parts.map(([name, ms]) => `${title(name)} ${span(ms)}`).join(", ");
  setAttribute(drawn, "aria-label", text);
  // The longest ones in words, for everybody; all of them for those who cannot see the bar.
  const longest = [...parts].sort((a, b) => b[1] - a[1]).slice(0, 3);
  say(words, longest.map(([name, ms]) => `${title(name)} ${span(ms)}`).join(" · "));
}

function build(labels) {
  return () => {
    const row = make("tr");
    row.setAttribute("role", "row");
    for (const label of labels) {
      const cell = make("td");
      cell.setAttribute("role", "cell");
      cell.dataset.label = label;
      row.append(cell);
    }
    const [job, , , state, , time, where] = row.children;
    job.append(make("span", "subject"), make("code", "quiet"));
    state.append(make("span", "chip"), make("p", "why"));
    time.classList.add("num");
    const drawn = make("div", "phases");
    drawn.setAttribute("role", "img");
    where.append(drawn, make("span", "quiet"));
    return row;
  };
}

function common(row, job) {
  const [name, circuit, priority, state, , time, where] = row.children;
  const sector = job.miner_id || job.sector_number ? `t0${job.miner_id}/${job.sector_number}` : "";
  say(name.children[0], job.request_id || sector || "no name");
  say(name.children[1], [job.request_id && sector, tail(job.job_id, 14)].filter(Boolean).join("  "));
  setAttribute(name.children[1], "title", job.job_id);
  say(circuit, job.circuit_id);
  say(priority, job.priority);
  const chip = state.children[0];
  say(chip, job.state);
  chip.dataset.state = job.state;
  say(state.children[1], job.error_message);
  state.children[1].hidden = !job.error_message;
  say(time, span(job.total_ms));
  bar(where, job);
}

/** A table without rows is a word. */
function some(name, there) {
  byId(`${name}-rows`).parentElement.hidden = !there;
  byId(`${name}-none`).hidden = there;
}

const UNFINISHED = build(["Job", "Circuit", "Priority", "State", "Partitions", "Time", "Where the time went"]);
const ENDED = build(["Job", "Circuit", "Priority", "State", "Ended", "Time", "Where the time went"]);

export function unfinished(jobs, now) {
  each(byId("unfinished-rows"), jobs, (job) => job.job_id, () => {
    const row = UNFINISHED();
    row.children[4].append(make("progress"), make("span", "quiet"));
    return row;
  }, (row, job) => {
    common(row, job);
    const { waiting, synthesizing, ready, proving, proved } = job.stages;
    const all = waiting + synthesizing + ready + proving + proved;
    const [drawn, words] = row.children[4].children;
    drawn.max = Math.max(1, all);
    drawn.value = proved;
    setAttribute(drawn, "aria-label", "partitions proved");
    const under = [[proving, "proving"], [ready, "ready"], [synthesizing, "in synthesis"]].filter(([n]) => n > 0);
    say(words, [`${proved} of ${all}`, ...under.map(([n, what]) => `${n} ${what}`)].join(", "));
    if (job.state === "queued") say(words, `${job.queue_position} ahead`);
    say(row.children[5], age(now - job.accepted_unix_ms));
  });
  some("unfinished", jobs.length > 0);
}

export function ended(jobs, now) {
  each(byId("ended-rows"), jobs, (job) => job.job_id, () => {
    const row = ENDED();
    row.children[4].append(make("time"), make("span", "quiet"));
    return row;
  }, (row, job) => {
    common(row, job);
    const [time, ago] = row.children[4].children;
    say(time, clock(job.ended_unix_ms));
    setAttribute(time, "datetime", new Date(job.ended_unix_ms).toISOString());
    say(ago, `${age(now - job.ended_unix_ms)} ago`);
  });
  some("ended", jobs.length > 0);
}
