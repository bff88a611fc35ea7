//! The clocks: whether the date can be right, whether somebody keeps it right, and whether time is cheap to ask for.

use std::{
    env, fs, mem,
    time::{Duration, Instant, SystemTime},
};

use super::finding::Finding;

const ABOUT: &str = "clock";

/// What was seen.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    now: SystemTime,
    /// When this program's file was written, which cannot be in the future.
    program: Option<SystemTime>,
    /// How much longer a moment took by the wall clock than by the monotonic one.
    drift: Option<Duration>,
    /// The kernel's source of time.
    source: Option<String>,
    /// Whether the kernel knows of somebody who keeps the clock right.
    synchronised: Option<bool>,
}

/// How long the two clocks are compared.
const MOMENT: Duration = Duration::from_millis(50);
/// By how much they may differ then.
const DRIFT: Duration = Duration::from_millis(5);

/// Looks for a moment.
pub(super) fn look() -> Seen {
    let (wall, monotonic) = (SystemTime::now(), Instant::now());
    std::thread::sleep(MOMENT);
    let (wall, monotonic) = (wall.elapsed(), monotonic.elapsed());
    let program = env::current_exe().and_then(fs::metadata).and_then(|metadata| metadata.modified());
    let source = fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    Seen {
        now: SystemTime::now(),
        program: program.ok(),
        drift: wall.ok().map(|wall| wall.abs_diff(monotonic)),
        source: source.ok().map(|text| text.trim().to_owned()),
        synchronised: synchronised(),
    }
}

/// What the kernel says; `None` if it may not be asked.
fn synchronised() -> Option<bool> {
    // SAFETY: the structure is plain numbers, for which zeros are legal, and mean that nothing is to be changed.
    let mut state: libc::timex = unsafe { mem::zeroed() };
    // SAFETY: the pointer is to a live structure of the type that the call fills.
    let code = unsafe { libc::adjtimex(&mut state) };
    (code >= 0).then_some(code != libc::TIME_ERROR && state.status & libc::STA_UNSYNC == 0)
}

/// Judges it.
pub(super) fn judge(seen: &Seen) -> Vec<Finding> {
    let day = Duration::from_secs(86_400);
    if seen.program.is_some_and(|program| seen.now + day < program) {
        let text = "the date is before this program was installed";
        return vec![Finding::fail(ABOUT, text, "set the clock: certificates and ages of jobs are wrong until then")];
    }
    let mut findings = Vec::new();
    match seen.drift {
        Some(drift) if drift <= DRIFT => {}
        Some(drift) => findings.push(Finding::warn(
            ABOUT,
            format!(
                "the wall clock moved by {} ms more or less than time did, in {} ms",
                drift.as_millis(),
                MOMENT.as_millis()
            ),
            "something sets the clock in jumps: let chrony or systemd-timesyncd slew it",
        )),
        None => findings.push(Finding::warn(
            ABOUT,
            "the wall clock was set back while it was looked at",
            "let chrony or systemd-timesyncd slew it",
        )),
    }
    if seen.synchronised == Some(false) {
        let advice = "run chrony or systemd-timesyncd (in a container: on its host)";
        findings.push(Finding::warn(ABOUT, "nobody keeps it right, as far as the kernel knows", advice));
    }
    if let Some(slow @ ("hpet" | "acpi_pm" | "jiffies" | "refined-jiffies")) = seen.source.as_deref() {
        let text = format!("the kernel takes time from {slow}, which is slow to ask");
        findings.push(Finding::warn(
            ABOUT,
            text,
            "see `dmesg | grep -i tsc` for why the processor's counter is not trusted",
        ));
    }
    if findings.is_empty() {
        let source = seen.source.as_deref().map(|source| format!(", from {source}")).unwrap_or_default();
        findings.push(Finding::ok(ABOUT, format!("the date can be right, and time goes on evenly{source}")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::{
        super::finding::{
            Level::{Fail, Ok as Good, Warn},
            levels,
        },
        *,
    };

    fn seen() -> Seen {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        Seen {
            now,
            program: Some(now - Duration::from_secs(1000)),
            drift: Some(Duration::from_micros(80)),
            source: Some("tsc".into()),
            synchronised: Some(true),
        }
    }

    #[test]
    fn a_good_clock_is_one_line() {
        assert_eq!(levels(&judge(&seen())), [Good]);
        assert_eq!(levels(&judge(&Seen { program: None, source: None, synchronised: None, ..seen() })), [Good]);
    }

    #[test]
    fn what_is_odd_is_told() {
        let early = Seen { now: SystemTime::UNIX_EPOCH, ..seen() };
        assert_eq!(levels(&judge(&early)), [Fail]);
        assert_eq!(levels(&judge(&Seen { drift: Some(Duration::from_secs(3)), ..seen() })), [Warn]);
        assert_eq!(levels(&judge(&Seen { drift: None, synchronised: Some(false), ..seen() })), [Warn, Warn]);
        assert_eq!(levels(&judge(&Seen { source: Some("hpet".into()), ..seen() })), [Warn]);
    }

    #[test]
    fn the_clocks_of_this_machine_can_be_looked_at() {
        let seen = look();
        assert!(seen.now > SystemTime::UNIX_EPOCH && seen.program.is_some(), "{seen:?}");
    }
}
