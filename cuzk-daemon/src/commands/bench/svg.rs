//! Pieces of a picture over time, as SVG. Pure.

use std::fmt::Write;

/// The picture's width, what stands in front of its rows, and what is left free behind them.
pub(super) const WIDTH: f64 = 1500.0;
pub(super) const LEFT: f64 = 190.0;
pub(super) const RIGHT: f64 = 20.0;

/// From where to where a part of the picture goes, in microseconds.
#[derive(Clone, Copy)]
pub(super) struct Window {
    pub(super) begin: u64,
    pub(super) end: u64,
}

impl Window {
    /// Where a moment is.
    pub(super) fn x(self, at: u64) -> f64 {
        let part = (at.clamp(self.begin, self.end) - self.begin) as f64 / (self.end - self.begin).max(1) as f64;
        LEFT + part * (WIDTH - LEFT - RIGHT)
    }

    /// Whether any of it is to be seen.
    pub(super) fn shows(self, begin: u64, end: u64) -> bool {
        begin < self.end && end > self.begin
    }
}

/// A block from one moment to another, which says what it is when one rests on it.
pub(super) fn block(
    out: &mut String,
    y: f64,
    height: f64,
    window: Window,
    (begin, end): (u64, u64),
    fill: &str,
    about: &str,
) {
    if !window.shows(begin, end) {
        return;
    }
    let (from, to) = (window.x(begin), window.x(end));
    // What is shorter than a dot is seen all the same.
    let (width, about) = ((to - from).max(0.3), escape(about));
    writeln!(
        out,
        "<rect x=\"{from:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{height}\" fill=\"{fill}\"><title>{about}</title></rect>"
    )
    .expect("writing to a string");
}

/// Marks of time behind the rows, and their names below.
pub(super) fn axis(out: &mut String, top: f64, bottom: f64, window: Window) {
    let span = window.end - window.begin;
    let step = step(span);
    let (unit, per) = if step >= 1_000_000 { ("s", 1e6) } else { ("ms", 1e3) };
    for n in 0..=span / step {
        let x = window.x(window.begin + n * step);
        let shown = (n * step) as f64 / per;
        writeln!(
            out,
            "<line x1=\"{x:.2}\" y1=\"{top}\" x2=\"{x:.2}\" y2=\"{bottom}\" stroke=\"#00000022\"/>\
             <text x=\"{x:.2}\" y=\"{:.1}\" text-anchor=\"middle\">{shown} {unit}</text>",
            bottom + 14.0
        )
        .expect("writing to a string");
    }
}

/// Microseconds between two marks: a round number, at most twelve of them.
fn step(span: u64) -> u64 {
    let rough = (span / 12).max(1);
    let ten = 10u64.pow(rough.ilog10());
    [1, 2, 5, 10].into_iter().map(|factor| factor * ten).find(|step| *step >= rough).unwrap_or(10 * ten)
}

/// A name in front of a row.
pub(super) fn label(out: &mut String, y: f64, name: &str) {
    writeln!(out, "<text x=\"{:.1}\" y=\"{y:.1}\" text-anchor=\"end\">{}</text>", LEFT - 8.0, escape(&short(name, 28)))
        .expect("writing to a string");
}

/// Words from a place on.
pub(super) fn text(out: &mut String, x: f64, y: f64, words: &str) {
    writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escape(words)).expect("writing to a string");
}

/// A colour and what it stands for.
pub(super) fn swatch(out: &mut String, x: f64, y: f64, fill: &str, name: &str) {
    writeln!(out, "<rect x=\"{x:.1}\" y=\"{y}\" width=\"12\" height=\"12\" fill=\"{fill}\"/>")
        .expect("writing to a string");
    text(out, x + 16.0, y + 10.0, name);
}

/// What fits in front of a row: UUIDs are known by their beginning.
pub(super) fn short(name: &str, most: usize) -> String {
    match name.chars().count() > most {
        true => name.chars().take(most - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

/// For the text of an XML document.
pub(super) fn escape(text: &str) -> String {
    let plain = |c: char| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        c if c.is_control() => "?".to_owned(),
        c => c.to_string(),
    };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_where_it_was() {
        let window = Window { begin: 0, end: 100 };
        assert_eq!((window.x(0), window.x(100)), (LEFT, WIDTH - RIGHT));
        assert_eq!(window.x(1000), WIDTH - RIGHT);
        let mut out = String::new();
        block(&mut out, 0.0, 10.0, window, (200, 300), "red", "outside");
        assert!(out.is_empty());
    }

    #[test]
    fn marks_are_round_and_few() {
        for span in [1, 7, 99, 1_234, 118_000_000, 3_600_000_000] {
            let step = step(span);
            assert!(span / step <= 12, "{span}: {step}");
            assert!(step.to_string().trim_end_matches('0').len() == 1, "{step}");
        }
    }

    #[test]
    fn names_cannot_leave_their_text() {
        assert_eq!(escape("<a & \"b\">\n"), "&lt;a &amp; &quot;b&quot;&gt;?");
        assert_eq!(short(&"x".repeat(40), 28).chars().count(), 28);
    }
}
