//! The history of a baseline: one column a version of the file, one row a bench.

use std::collections::BTreeSet;

use super::file::Baseline;

/// The baseline as it was committed.
#[derive(Clone, Debug)]
pub struct Version {
    /// The commit, short.
    pub commit: String,
    /// Its day, as 2026-11-30.
    pub date: String,
    /// What it said.
    pub baseline: Baseline,
}

/// What one bench took, version by version, where it was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The bench.
    pub id: String,
    /// By version.
    pub ratios: Vec<Option<f64>>,
}

/// The lines of a class, oldest version first.
pub fn lines(versions: &[Version], class: &str) -> Vec<Line> {
    let classes = versions.iter().filter_map(|version| version.baseline.classes.get(class));
    let ids: BTreeSet<&String> = classes.flat_map(|class| class.benches.keys()).collect();
    let of = |id: &String| Line {
        id: id.clone(),
        ratios: versions.iter().map(|v| v.baseline.find(class, id).map(|entry| entry.summary.ratio)).collect(),
    };
    ids.into_iter().map(of).collect()
}

impl Line {
    /// The ratios in times of the first one there is.
    fn relative(&self) -> Vec<Option<f64>> {
        let first = self.ratios.iter().flatten().next().copied();
        self.ratios.iter().map(|ratio| Some(ratio.as_ref()? / first?)).collect()
    }
}

/// The lines as text: the first and the last ratio, the change between them, and a bar for each version, whose full
/// height is the largest ratio of the line.
pub fn text(versions: &[Version], lines: &[Line]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let mut text = String::new();
    for (number, version) in (1..).zip(versions) {
        text += &format!("{number:>3}. {} {}\n", version.date, version.commit);
    }
    let width = lines.iter().map(|line| line.id.len()).max().unwrap_or(0).max("bench".len());
    text += &format!("{:width$} {:>12} {:>12} {:>8}  by version\n", "bench", "first", "last", "change");
    for line in lines {
        let known: Vec<f64> = line.ratios.iter().flatten().copied().collect();
        let (Some(first), Some(last)) = (known.first(), known.last()) else { continue };
        let most = known.iter().copied().fold(0.0, f64::max);
        let bar = |ratio: &Option<f64>| ratio.map_or(' ', |r| BARS[((r / most * 8.0).ceil() as usize).clamp(1, 8) - 1]);
        let bars: String = line.ratios.iter().map(bar).collect();
        let change = 100.0 * (last / first - 1.0);
        text += &format!("{:width$} {first:>12.5} {last:>12.5} {change:>+7.1}%  {bars}\n", line.id);
    }
    text
}

/// The lines as an SVG picture: a small plot a bench, relative to its first ratio, from 0 to 2.
pub fn svg(versions: &[Version], lines: &[Line]) -> String {
    const ROW: usize = 44;
    const LABEL: usize = 330;
    const PLOT: usize = 560;
    let (width, height) = (LABEL + PLOT + 80, ROW * (lines.len() + 1));
    let step = PLOT as f64 / versions.len().saturating_sub(1).max(1) as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    if let (Some(first), Some(last)) = (versions.first(), versions.last()) {
        svg += &format!(
            "<text x=\"8\" y=\"24\">{} {} to {} {}; grey: the first ratio</text>\n",
            first.date,
            escaped(&first.commit),
            last.date,
            escaped(&last.commit)
        );
    }
    for (row, line) in (1..).zip(lines) {
        let bottom = (ROW * (row + 1) - 6) as f64;
        let y = |relative: f64| bottom - relative.min(2.0) * (ROW - 8) as f64 / 2.0;
        let points = line.relative();
        let points = points.iter().enumerate().filter_map(|(i, p)| Some((LABEL as f64 + step * i as f64, (*p)?)));
        let points: Vec<(f64, f64)> = points.collect();
        let path: Vec<String> = points.iter().map(|(x, r)| format!("{x:.1},{:.1}", y(*r))).collect();
        let middle = y(1.0);
        svg += &format!("<text x=\"8\" y=\"{middle:.1}\">{}</text>\n", escaped(&line.id));
        svg += &format!(
            "<line x1=\"{LABEL}\" y1=\"{middle:.1}\" x2=\"{}\" y2=\"{middle:.1}\" stroke=\"#ccc\"/>\n",
            LABEL + PLOT
        );
        svg += &format!("<polyline points=\"{}\" fill=\"none\" stroke=\"#06c\"/>\n", path.join(" "));
        if let Some((x, relative)) = points.last() {
            svg += &format!("<circle cx=\"{x:.1}\" cy=\"{:.1}\" r=\"2.5\" fill=\"#06c\"/>\n", y(*relative));
            svg += &format!("<text x=\"{}\" y=\"{middle:.1}\">× {relative:.2}</text>\n", LABEL + PLOT + 12);
        }
    }
    svg + "</svg>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::baseline::{file::Provenance, stats::Summary};

    fn version(commit: &str, ratios: &[(&str, f64)]) -> Version {
        let mut baseline = Baseline::default();
        let summary = |ratio| Summary { ratio, spread: 0.0, rounds: 1 };
        let measured: BTreeMap<_, _> = ratios.iter().map(|(id, r)| ((*id).to_owned(), summary(*r))).collect();
        baseline.record("here", Provenance::default(), &measured);
        Version { commit: commit.to_owned(), date: "2026-11-30".to_owned(), baseline }
    }

    #[test]
    fn lines_show_each_version() {
        let versions = [version("a1", &[("x", 8.0)]), version("b2", &[("x", 4.0), ("y", 1.0)])];
        let lines = lines(&versions, "here");
        assert_eq!(lines[0].ratios, [Some(8.0), Some(4.0)]);
        assert_eq!(lines[1].ratios, [None, Some(1.0)]);
        let text = text(&versions, &lines);
        assert!(text.contains("  2. 2026-11-30 b2\n"), "{text}");
        assert!(text.contains("x          8.00000      4.00000   -50.0%  █▄\n"), "{text}");
        assert!(text.contains("+0.0%   █\n"), "{text}");

        let svg = svg(&versions, &lines);
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(svg.contains("× 0.50</text>") && svg.ends_with("</svg>\n"), "{svg}");
        assert_eq!(super::lines(&versions, "elsewhere"), []);
    }
}
