//! The dashboard and the alert rules name only what the metrics have: every name, label and compared value.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;

use super::{
    Awaited, Engine,
    testing::{Fake, submission},
};
use crate::{
    EngineConfig,
    store::durable::{Store, StoreOptions},
};

const DASHBOARD: &str = include_str!("../../../config/grafana/cuzk.json");
const RULES: &str = include_str!("../../../config/prometheus/cuzk.rules.yml");
/// Labels that Prometheus itself adds.
const OF_PROMETHEUS: [&str; 3] = ["instance", "job", "le"];

/// For each metric its labels, and for each label the values that were seen.
type Families = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Of an engine on disk that has completed a job and failed one.
async fn families() -> Families {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions { folder: folder.path().to_owned(), move_damaged_aside: false };
    let store = Arc::new(Store::open(&options).unwrap());
    let engine = Engine::start_with_store(EngineConfig::default(), Fake::new(1), store).unwrap();
    for (id, words) in [("a", "tag=1 parts=2"), ("b", "synth-error")] {
        let job = engine.submit(submission(id, words)).await.unwrap();
        assert!(matches!(engine.await_job(&job.job_id, None).await, Ok(Awaited::Ended(_))));
    }
    engine.requests().count("GetStatus", "ok");
    let mut families = Families::new();
    for line in engine.metrics_text().lines().filter(|line| !line.is_empty()) {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            families.entry(declared.split(' ').next().unwrap().to_owned()).or_default();
            continue;
        }
        if line.starts_with('#') {
            continue;
        }
        let (series, _) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let family = families.entry(name.to_owned()).or_default();
        for pair in labels.trim_end_matches('}').split("\",").filter(|pair| !pair.is_empty()) {
            let (label, value) = pair.split_once("=\"").unwrap();
            family.entry(label.to_owned()).or_default().insert(value.trim_end_matches('"').to_owned());
        }
    }
    families
}

/// What is wrong with an expression; empty: nothing.
fn faults(expression: &str, families: &Families) -> Vec<String> {
    let mut faults = Vec::new();
    let mut labels: BTreeSet<&str> = OF_PROMETHEUS.into();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts: Vec<usize> = expression.match_indices("cuzk_").map(|(at, _)| at).collect();
    for at in starts.into_iter().filter(|at| !expression[..*at].ends_with(is_name)) {
        let rest = &expression[at..];
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let Some(family) = families.get(name) else {
            faults.push(format!("there is no {name}"));
            continue;
        };
        labels.extend(family.keys().map(String::as_str));
        let Some(selector) = after.strip_prefix('{').and_then(|after| after.split_once('}')) else { continue };
        for matcher in selector.0.split(',').filter(|matcher| !matcher.is_empty()) {
            let (label, value) = matcher.split_once('=').expect("a matcher");
            let (label, exact) = (label.trim_end_matches('!'), !value.starts_with('~'));
            if OF_PROMETHEUS.contains(&label) {
                continue;
            }
            match family.get(label) {
                None => faults.push(format!("{name} has no label {label}")),
                Some(seen) if exact && !seen.contains(value.trim_matches('"')) => {
                    faults.push(format!("{name} never has {label}={value}"));
                }
                Some(_) => {}
            }
        }
    }
    for (_, grouped) in expression.match_indices("by (").map(|(at, by)| expression[at..].split_at(by.len())) {
        for label in grouped.split(')').next().unwrap_or_default().split(',').map(str::trim) {
            if !labels.contains(label) {
                faults.push(format!("nothing there has the label {label} to group by"));
            }
        }
    }
    faults
}

/// Labels in texts of the form `{{label}}` or `{{ $labels.label }}`.
fn shown(text: &str) -> Vec<String> {
    let parts = text.split("{{").skip(1).filter_map(|part| part.split("}}").next());
    parts.map(|part| part.trim().trim_start_matches("$labels.").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dashboard_names_what_there_is() {
    let families = families().await;
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut ids = BTreeSet::new();
    let mut expressions = 0;
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64()), "{} has another's id", panel["title"]);
        for target in panel["targets"].as_array().expect("targets") {
            let expression = target["expr"].as_str().expect("text");
            assert_eq!(faults(expression, &families), [""; 0], "{}: {expression}", panel["title"]);
            assert!(expression.contains("$instance"), "{expression}");
            for label in shown(target["legendFormat"].as_str().unwrap_or_default()) {
                assert!(families.values().any(|labels| labels.contains_key(&label)), "{}: {label}", panel["title"]);
            }
            expressions += 1;
        }
    }
    assert!(expressions >= 20, "{expressions}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_alert_rules_name_what_there_is() {
    let families = families().await;
    let rules: Value = serde_yaml_ng::from_str(RULES).expect("YAML");
    let mut names = BTreeSet::new();
    for rule in rules["groups"][0]["rules"].as_array().expect("rules") {
        let text = |key: &str| rule[key].as_str().unwrap_or_default();
        assert!(names.insert(text("alert").to_owned()) && text("alert").starts_with("Cuzk"), "{rule}");
        assert_eq!(faults(text("expr"), &families), [""; 0], "{}", text("alert"));
        assert!(text("expr").contains("cuzk"), "{}", text("alert"));
        let severity = rule["labels"]["severity"].as_str().unwrap_or_default();
        assert!(["info", "warning", "critical"].contains(&severity), "{rule}");
        for part in ["summary", "description"] {
            let text = rule["annotations"][part].as_str().expect("every alert says what to do");
            for label in shown(text) {
                let known = label == "instance" || families.values().any(|labels| labels.contains_key(&label));
                assert!(known, "{}: {label}", rule["alert"]);
            }
        }
    }
    assert!(names.len() >= 10, "{names:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_would_be_noticed() {
    let families = families().await;
    let faulty = |expression: &str| !faults(expression, &families).is_empty();
    for (good, expression) in [
        (true, "sum by (kind, outcome) (rate(cuzk_jobs_finished_total{outcome=\"failed\"}[5m]))"),
        (true, "histogram_quantile(0.9, sum by (le) (rate(cuzk_job_seconds_bucket{priority=~\"a|b\"}[5m])))"),
        (false, "cuzk_jobs_finished"),
        (false, "cuzk_jobs_finished_total{result=\"failed\"}"),
        (false, "cuzk_jobs_finished_total{outcome=\"fails\"}"),
        (false, "sum by (device) (cuzk_jobs_finished_total)"),
    ] {
        assert_eq!(!faulty(expression), good, "{expression}");
    }
}
