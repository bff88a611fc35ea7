//! The run as a picture: an SVG without anything from outside. Above, the whole run; below, the longest wait of a device
//! enlarged. Each device has a row of its kernels, with its waits in red, and one for each of its threads; each job has a
//! row below them. Whoever rests on a block is told what it is. Pure.

use cuzk_proto::v1::{Job, PhaseInterval};

use super::{
    report::{Report, meanwhile_text},
    stats::LOCK_HOLD,
    svg::{LEFT, WIDTH, Window, axis, block, escape, label, short, swatch, text},
    times::DeviceUse,
};

const TOP: f64 = 84.0;
const KERNELS: f64 = 34.0;
const LANE: f64 = 14.0;
const JOB: f64 = 8.0;
const GAP: f64 = 4.0;
/// Jobs that have a row; of more, the first ones.
const JOBS: usize = 100;

/// Colours of phases, in the order of the legend.
const COLOURS: &[(&str, &str)] = &[
    (LOCK_HOLD, "#9aa7b4"),
    ("upload", "#4e79a7"),
    ("expand", "#76b7b2"),
    ("spmv", "#59a14f"),
    ("quotient", "#8cd17d"),
    ("msm_h", "#f28e2b"),
    ("msm_l", "#ffbe7d"),
    ("msm_a", "#edc948"),
    ("msm_b_g1", "#d4a6c8"),
    ("msm_l_a_b_g1", "#b6992d"),
    ("download", "#79706e"),
    ("stage", "#86bcb6"),
    ("lock_wait", "#e8e8e8"),
    ("msm_b_g2", "#b07aa1"),
    ("epilogue", "#9d7660"),
];
const WAIT: &str = "#e15759";
const QUEUED: &str = "#dddddd";
const RUNNING: &str = "#8fb0d3";

/// Draws the run.
pub(super) fn svg(report: &Report) -> String {
    let jobs: Vec<_> = report.proofs.iter().map(|proven| &proven.job).filter(|job| job.ended_unix_ms > 0).collect();
    let mut body = String::new();
    let mut y = TOP;
    if let Some(whole) = whole(&report.devices, &jobs) {
        y = panel(&mut body, y, "the whole run", whole, &report.devices, &jobs);
        if let Some(closer) = closer(&report.devices, whole) {
            y = panel(&mut body, y + 20.0, "around the longest wait", closer, &report.devices, &[]);
        }
    } else {
        text(&mut body, LEFT, y, "the daemon tells no times");
    }
    let title = format!(
        "{}: {} proofs, {} at once, {:.3} s a proof; device busy {}",
        report.circuit,
        report.proofs.len(),
        report.concurrency,
        report.seconds_a_proof(),
        report.busy_text()
    );
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n<title>{title}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"22\" font-size=\"15\">{title}</text>\n",
        height = y + 10.0,
        title = escape(&title),
    );
    legend(&mut out, &report.devices);
    out += &body;
    out += "</svg>\n";
    out
}

/// All that is known of the run.
fn whole(devices: &[DeviceUse], jobs: &[&Job]) -> Option<Window> {
    let phases = || devices.iter().flat_map(|device| device.lanes.values().flatten());
    let begins = phases().map(|p| p.begin_unix_us).chain(jobs.iter().map(|job| job.accepted_unix_ms * 1000));
    let ends = phases().map(|p| p.end_unix_us).chain(jobs.iter().map(|job| job.ended_unix_ms * 1000));
    Some(Window { begin: begins.min()?, end: ends.max()? }).filter(|window| window.end > window.begin)
}

/// The longest wait of all devices with what comes before and after it, if that is worth another look.
fn closer(devices: &[DeviceUse], whole: Window) -> Option<Window> {
    let wait = devices.iter().filter_map(DeviceUse::longest_wait).max_by_key(|wait| wait.length())?;
    let holds = devices.iter().flat_map(|d| d.lanes.values().flatten()).filter(|phase| phase.name == LOCK_HOLD);
    let typical = holds.map(|hold| hold.end_unix_us - hold.begin_unix_us).max().unwrap_or(0);
    let around = (2 * wait.length()).max(2 * typical);
    let window =
        Window { begin: wait.begin.saturating_sub(around).max(whole.begin), end: (wait.end + around).min(whole.end) };
    ((window.end - window.begin) * 4 < (whole.end - whole.begin) * 3).then_some(window)
}

/// Draws one part, and returns where the next one begins.
fn panel(out: &mut String, mut y: f64, name: &str, window: Window, devices: &[DeviceUse], jobs: &[&Job]) -> f64 {
    text(out, 10.0, y + 10.0, name);
    let top = y + 16.0;
    y = top + GAP;
    for device in devices {
        label(out, y + KERNELS / 2.0 + 4.0, &format!("{} kernels", short(&device.device, 16)));
        kernels(out, y, window, device);
        y += KERNELS + GAP;
        for (lane, phases) in &device.lanes {
            if !phases.iter().any(|phase| window.shows(phase.begin_unix_us, phase.end_unix_us)) {
                continue;
            }
            label(out, y + LANE - 3.0, &format!("thread {lane}"));
            let outside = phases.iter().filter(|phase| !is_within(phase, phases));
            outside.for_each(|p| phase(out, y, LANE, window, p));
            y += LANE + GAP;
        }
    }
    for job in jobs.iter().take(JOBS) {
        // Job ids of one daemon differ in what is behind the last dash.
        label(out, y + JOB, &format!("job …-{}", job.job_id.rsplit('-').next().unwrap_or_default()));
        let [accepted, started, ended] =
            [job.accepted_unix_ms, job.started_unix_ms, job.ended_unix_ms].map(|ms| ms * 1000);
        let started = if started == 0 { ended } else { started };
        block(out, y, JOB, window, (accepted, started), QUEUED, &format!("{}: queued", job.job_id));
        block(out, y, JOB, window, (started, ended), RUNNING, &format!("{}: under way", job.job_id));
        y += JOB + 2.0;
    }
    axis(out, top, y, window);
    y + 24.0
}

/// The kernel phases of a device, with the groups of kernels in them, and its waits.
fn kernels(out: &mut String, y: f64, window: Window, device: &DeviceUse) {
    for phases in device.lanes.values() {
        phases.iter().filter(|p| p.name == LOCK_HOLD).for_each(|p| phase(out, y, KERNELS, window, p));
        let within = phases.iter().filter(|p| is_within(p, phases));
        within.for_each(|p| phase(out, y + 4.0, KERNELS - 8.0, window, p));
    }
    for wait in &device.waits {
        let about = format!("waits {:.2} ms: {}", wait.length() as f64 / 1000.0, meanwhile_text(wait));
        block(out, y, KERNELS, window, (wait.begin, wait.end), WAIT, &about);
    }
}

/// Whether a phase is a group of kernels: inside of the kernel phase of its thread.
fn is_within(phase: &PhaseInterval, of_thread: &[PhaseInterval]) -> bool {
    let holds = of_thread.iter().filter(|hold| hold.name == LOCK_HOLD);
    phase.name != LOCK_HOLD
        && holds.into_iter().any(|h| h.begin_unix_us <= phase.begin_unix_us && phase.end_unix_us <= h.end_unix_us)
}

fn phase(out: &mut String, y: f64, height: f64, window: Window, phase: &PhaseInterval) {
    let ms = (phase.end_unix_us - phase.begin_unix_us) as f64 / 1000.0;
    let span = (phase.begin_unix_us, phase.end_unix_us);
    block(out, y, height, window, span, colour(&phase.name), &format!("{} {ms:.2} ms", phase.name));
}

fn legend(out: &mut String, devices: &[DeviceUse]) {
    let seen = |name: &str| devices.iter().flat_map(|d| d.lanes.values().flatten()).any(|phase| phase.name == name);
    let phases = COLOURS.iter().filter(|(name, _)| seen(name)).copied();
    let mut x = 10.0;
    for (name, colour) in phases.chain([("wait", WAIT), ("job queued", QUEUED), ("job under way", RUNNING)]) {
        swatch(out, x, 36.0, colour, name);
        x += 34.0 + 6.5 * name.len() as f64;
    }
    text(
        out,
        10.0,
        66.0,
        "A red block is a time in which a device ran no kernels; rest on a block to be told what it is.",
    );
}

fn colour(phase: &str) -> &'static str {
    COLOURS.iter().find(|(name, _)| *name == phase).map_or("#bab0ac", |(_, colour)| colour)
}

#[cfg(test)]
mod tests {
    use super::{
        super::{report::tests::report, verify::Verified},
        *,
    };

    #[test]
    fn the_picture_shows_kernels_waits_threads_and_jobs() {
        let svg = svg(&report(Verified::NoKey(String::new())));
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        for part in [
            "<title>msm_h 190.00 ms</title>",
            "<title>waits 100.00 ms: no partition was ready for it</title>",
            "<title>s-1: queued</title>",
            ">d kernels</text>",
            ">thread 2</text>",
            ">the whole run</text>",
        ] {
            assert!(svg.contains(part), "{part} is not in {svg}");
        }
        assert_eq!(svg.matches("http").count(), 1, "nothing from outside: only the name space has a URL");
        let mut open = Vec::new();
        for tag in svg.split('<').skip(1) {
            let tag = tag.split('>').next().expect("a tag ends");
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None if tag.ends_with('/') => {}
                None => open.push(tag.split(' ').next().expect("a name")),
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn a_short_wait_in_a_long_run_is_enlarged() {
        use super::super::times::{devices, tests::partition};
        let runs: Vec<_> = (0..100)
            .map(|n| {
                let begin = n * 1000 + if n >= 50 { 300 } else { 0 };
                partition(1, &[(LOCK_HOLD, begin, begin + 1000)])
            })
            .collect();
        let devices = devices(&runs);
        let all = whole(&devices, &[]).expect("times");
        let near = closer(&devices, all).expect("a wait");
        assert!(near.begin >= 47_000 && near.end <= 53_000, "{} to {}", near.begin, near.end);
        let busy = super::super::times::devices(&runs[..50]);
        assert!(closer(&busy, all).is_none());
    }
}
