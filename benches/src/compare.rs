//! `compare` and `record`: measuring, or reading what was measured elsewhere, and the baseline file.

use std::{collections::BTreeMap, convert::Infallible, fs, io, path::Path};

use anyhow::{Context, Result, anyhow};

use crate::{
    baseline::{
        compare::{Row, compare as compare_rows, fails, table},
        file::Baseline,
        lines,
        stats::Summary,
        verdict::Rule,
    },
    cli::{Selection, matches},
    rooms,
    run::{
        counts, git,
        machine::{Machine, counts_class},
        sampler::{self, Bench},
    },
};

/// Where the baseline is kept, from the root of the repository.
pub(crate) const BASELINE: &str = "benches/baseline.json";

/// Rounds of a comparison.
const ROUNDS: usize = 5;
/// Rounds of a record: its error is in every comparison to come.
const ROUNDS_OF_RECORD: usize = 9;

/// Ratios of the rounds, by bench.
type Rounds = BTreeMap<String, Vec<f64>>;

/// Compares with the baseline, prints the tables, and says whether anything is slower.
pub(crate) fn compare(selection: &Selection) -> Result<bool> {
    let baseline = read(&selection.baseline)?;
    let mut slower = false;
    let mut report = |class: &str, rows: &[Row]| {
        if rows.is_empty() {
            return;
        }
        println!("\n{class}");
        if !baseline.classes.contains_key(class) {
            println!("(nothing is recorded for this class: reported, not judged; `record` would record it)");
        }
        print!("{}", table(rows));
        slower |= fails(rows);
    };
    let mut saved = String::new();
    if let Some(from) = &selection.from {
        for (class, rounds) in read_lines(from)? {
            saved += &lines::render(&class, &rounds);
            let Ok(rows) = compare_rows(&baseline, &class, rule(&class), summaries(&rounds)?, |_| no_more());
            report(&class, &rows);
        }
    } else {
        let rounds_wanted = selection.rounds.unwrap_or(ROUNDS);
        let class = Machine::this()?.class;
        let mut benches = prepare(selection)?;
        let rounds = measure(&mut benches, rounds_wanted, &|_| true);
        saved += &lines::render(&class, &rounds);
        let rows = compare_rows(&baseline, &class, Rule::TIME, summaries(&rounds)?, |doubtful| {
            eprintln!("measuring again: {}", doubtful.join(", "));
            let rounds = measure(&mut benches, rounds_wanted, &|id| doubtful.iter().any(|doubtful| doubtful == id));
            summaries(&rounds)
        })?;
        report(&class, &rows);
        if let Some(rounds) = count(selection)? {
            let class = counts_class();
            saved += &lines::render(&class, &rounds);
            let Ok(rows) = compare_rows(&baseline, &class, Rule::COUNT, summaries(&rounds)?, |_| no_more());
            report(&class, &rows);
        }
    }
    save(selection, &saved)?;
    if slower {
        println!(
            "\nSLOWER than the baseline allows. If that is meant, record it: \
             cargo run --release -p cuzk-benches -- record --reason \"why\""
        );
    }
    Ok(slower)
}

/// Measures and writes the baseline.
pub(crate) fn record(selection: &Selection, reason: String) -> Result<()> {
    let mut baseline = read(&selection.baseline)?;
    let machine = Machine::this()?;
    let mut all = lines::Rounds::new();
    let mut provenance = git::provenance(machine.name, reason)?;
    if let Some(from) = &selection.from {
        all = read_lines(from)?;
        provenance.machine = format!("read from {}", from.display());
    } else {
        let mut benches = prepare(selection)?;
        let rounds = selection.rounds.unwrap_or(ROUNDS_OF_RECORD);
        all.insert(machine.class, measure(&mut benches, rounds, &|_| true));
        if let Some(rounds) = count(selection)? {
            all.insert(counts_class(), rounds);
        }
    }
    let mut saved = String::new();
    for (class, rounds) in all {
        saved += &lines::render(&class, &rounds);
        let summaries = summaries(&rounds)?;
        for (id, summary) in &summaries {
            let (bound, limit) = (rule(&class).bound(summary, summary), rule(&class).limit);
            if bound > limit {
                println!("{id}: too noisy to catch a slow-down of 1.5 (bound {:.0} %)", 100.0 * bound);
            }
        }
        baseline.record(&class, provenance.clone(), &summaries);
        println!("recorded {} benches of {class}", summaries.len());
    }
    save(selection, &saved)?;
    fs::write(&selection.baseline, baseline.render())
        .with_context(|| format!("cannot write {}", selection.baseline.display()))
}

/// The benches of a selection that are timed, ready.
fn prepare(selection: &Selection) -> Result<Vec<Bench>> {
    let wanted = |id: &str| matches(&selection.filter, id);
    let mut benches = Vec::new();

    for operation in rooms::all() {
        if selection.set.has(operation.tier) && operation.ours().any(|id| wanted(&id)) {
            benches.extend(Bench::prepare(&operation, false, &wanted)?);
        }
    }
    Ok(benches)
}

fn measure(benches: &mut [Bench], rounds: usize, wanted: &dyn Fn(&str) -> bool) -> Rounds {
    let mut wanted: Vec<&mut Bench> = benches.iter_mut().filter(|bench| wanted(&bench.id)).collect();
    sampler::run(&mut wanted, rounds).into_iter().map(|(id, rounds)| (id, rounds.ratios)).collect()
}

/// Instruction counts of a selection, if it has any and they can be had here.
fn count(selection: &Selection) -> Result<Option<Rounds>> {
    let wanted = |id: &str| matches(&selection.filter, id);
    let counted =
        |operation: &rooms::Operation| operation.tier == rooms::Tier::Counted && operation.ours().any(|id| wanted(&id));
    if !rooms::all().iter().any(counted) {
        return Ok(None);
    }
    let counts = counts::measure(&wanted)?;
    if counts.is_none() {
        println!("\nno instruction counts: valgrind is not installed here (apt-get install valgrind)");
    }
    Ok(counts)
}

/// How measurements of a class are judged.
fn rule(class: &str) -> Rule {
    if class.starts_with("instructions ") { Rule::COUNT } else { Rule::TIME }
}

fn summaries(rounds: &Rounds) -> Result<BTreeMap<String, Summary>> {
    let summary = |(id, ratios): (&String, &Vec<f64>)| {
        let summary = Summary::of(ratios).ok_or_else(|| anyhow!("{id}: no time at all was measured: {ratios:?}"))?;
        Ok((id.clone(), summary))
    };
    rounds.iter().map(summary).collect()
}

/// What was measured elsewhere cannot be measured again, and counts need not be.
fn no_more() -> Result<BTreeMap<String, Summary>, Infallible> {
    Ok(BTreeMap::new())
}

/// The baseline; an empty one if there is no file yet.
fn read(path: &Path) -> Result<Baseline> {
    match fs::read_to_string(path) {
        Ok(text) => Baseline::parse(&text).map_err(|error| anyhow!("{} {error}", path.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Baseline::default()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn read_lines(path: &Path) -> Result<lines::Rounds> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    lines::parse(&text).map_err(|error| anyhow!("{}: {error}", path.display()))
}

fn save(selection: &Selection, lines: &str) -> Result<()> {
    let Some(path) = &selection.save else { return Ok(()) };
    fs::write(path, lines).with_context(|| format!("cannot write {}", path.display()))
}
