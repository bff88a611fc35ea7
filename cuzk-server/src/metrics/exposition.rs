//! Writes the Prometheus text exposition format, version 0.0.4.

use std::{fmt::Write, time::Duration};

use super::histogram::Histogram;

/// Label names and values of one sample.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

/// A text under construction: families one after the other, each with its HELP and TYPE before its samples.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    text: String,
    /// The family that samples belong to.
    family: &'static str,
}

impl Exposition {
    /// Begins a counter; its name ends in `_total`.
    pub(super) fn counter(&mut self, name: &'static str, help: &str) -> &mut Self {
        debug_assert!(name.ends_with("_total"));
        self.begin(name, "counter", help)
    }

    /// Begins a gauge.
    pub(super) fn gauge(&mut self, name: &'static str, help: &str) -> &mut Self {
        self.begin(name, "gauge", help)
    }

    /// Begins a histogram of seconds.
    pub(super) fn histogram(&mut self, name: &'static str, help: &str) -> &mut Self {
        self.begin(name, "histogram", help)
    }

    /// One value of the counter or gauge.
    pub(super) fn sample(&mut self, labels: Labels<'_>, value: u64) -> &mut Self {
        self.line("", labels, None, &value.to_string());
        self
    }

    /// One value in seconds.
    pub(super) fn seconds(&mut self, labels: Labels<'_>, value: Duration) -> &mut Self {
        self.line("", labels, None, &value.as_secs_f64().to_string());
        self
    }

    /// One histogram of the family.
    pub(super) fn buckets(&mut self, labels: Labels<'_>, histogram: &Histogram) -> &mut Self {
        for (bound, count) in histogram.cumulative() {
            self.line("_bucket", labels, Some(&bound.to_string()), &count.to_string());
        }
        self.line("_bucket", labels, Some("+Inf"), &histogram.count().to_string());
        self.line("_sum", labels, None, &histogram.sum().as_secs_f64().to_string());
        self.line("_count", labels, None, &histogram.count().to_string());
        self
    }

    /// The text.
    pub(super) fn finish(self) -> String {
        self.text
    }

    fn begin(&mut self, name: &'static str, kind: &str, help: &str) -> &mut Self {
        self.family = name;
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        self
    }

    fn line(&mut self, suffix: &str, labels: Labels<'_>, bound: Option<&str>, value: &str) {
        let pairs: Vec<String> = labels
            .iter()
            .copied()
            .chain(bound.map(|bound| ("le", bound)))
            .map(|(name, value)| format!("{name}=\"{}\"", escape(value)))
            .collect();
        let family = self.family;
        let _ = match pairs.is_empty() {
            true => writeln!(self.text, "{family}{suffix} {value}"),
            false => writeln!(self.text, "{family}{suffix}{{{}}} {value}", pairs.join(",")),
        };
    }
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_format_line_by_line() {
        let mut out = Exposition::default();
        out.counter("a_total", "Counts a.\nReally.").sample(&[], 3).sample(&[("x", "q\"\\\n")], 4);
        let mut h = Histogram::default();
        h.observe(Duration::from_millis(2500));
        out.histogram("s_seconds", "Time.").buckets(&[("p", "v")], &h);
        let text = out.finish();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..5],
            [
                "# HELP a_total Counts a.\\nReally.",
                "# TYPE a_total counter",
                "a_total 3",
                "a_total{x=\"q\\\"\\\\\\n\"} 4",
                "# HELP s_seconds Time.",
            ]
        );
        assert!(lines.contains(&"s_seconds_bucket{p=\"v\",le=\"1\"} 0"));
        assert!(lines.contains(&"s_seconds_bucket{p=\"v\",le=\"3\"} 1"));
        assert_eq!(
            lines[lines.len() - 3..],
            ["s_seconds_bucket{p=\"v\",le=\"+Inf\"} 1", "s_seconds_sum{p=\"v\"} 2.5", "s_seconds_count{p=\"v\"} 1",]
        );
        assert!(text.ends_with('\n'));
    }
}
