//! The configuration: all that is wrong with it.

use super::finding::Finding;
use crate::{
    cli::ConfigArgs,
    config::{self, Config, Problems, Settings},
    resources::{Plan, Resources},
};

const ABOUT: &str = "config";

/// The configuration to check the machine for (the defaults, if it cannot be used), and what is to say about it.
pub(super) fn look(args: &ConfigArgs) -> (Config, Vec<Finding>) {
    let overrides = args.overrides().map_err(|problem| Problems(vec![problem]));
    let loaded = overrides.and_then(|overrides| config::load(args.config.as_deref(), overrides));
    let file = args.config.as_ref().map(|path| path.display().to_string());
    judge(loaded, file.as_deref(), &Resources::detect())
}

fn judge(loaded: Result<Settings, Problems>, file: Option<&str>, resources: &Resources) -> (Config, Vec<Finding>) {
    let settings = match loaded {
        Ok(settings) => settings,
        Err(Problems(problems)) => {
            let finding = |problem: &config::Problem| {
                let advice = "mend that line; all below is checked for the defaults, until then";
                Finding::fail(ABOUT, problem.to_string(), advice)
            };
            return (Config::default(), problems.iter().map(finding).collect());
        }
    };
    let mut findings = match file {
        Some(file) => vec![Finding::ok(ABOUT, format!("{file}: {}", config::summary(&settings)))],
        None => vec![Finding::ok(ABOUT, format!("no file is named (--config): {}", config::summary(&settings)))],
    };
    let mend = "see `cuzk-daemon config reference`";
    findings.extend(settings.warnings.iter().map(|warning| Finding::warn(ABOUT, warning.to_string(), mend)));
    match Plan::new(resources, &settings.config) {
        Ok(plan) => {
            findings.push(Finding::ok("resources", plan.to_string()));
            let warning = |text: String| Finding::warn("resources", text, "change the key, or give the daemon more");
            findings.extend(plan.warnings(resources).into_iter().map(warning));
        }
        Err(error) => findings.push(Finding::fail("resources", error.to_string(), "the daemon does not start so")),
    }
    (settings.config, findings)
}

#[cfg(test)]
mod tests {
    use super::{
        super::finding::{Level, levels},
        *,
    };
    use crate::config::{Sources, check, merge};

    fn seen(text: &str) -> Vec<Finding> {
        let machine = Resources { threads: 8, cores: 4, memory_bytes: Some(16 << 30) };
        let file = Some(("/c.toml".into(), text.to_owned()));
        judge(merge(&Sources { file, ..Sources::default() }).and_then(check), Some("/c.toml"), &machine).1
    }

    #[test]
    fn every_problem_has_a_line() {
        let findings = seen("[daemon]\nlisen = 1\n[gpus]\npolicy = \"always\"\n");
        assert_eq!(levels(&findings), [Level::Fail; 2]);
        assert!(findings[0].seen.contains("/c.toml:2") && findings[1].seen.contains("/c.toml:4"), "{findings:?}");
    }

    #[test]
    fn warnings_and_plans_are_told() {
        assert_eq!(levels(&seen("")), [Level::Ok; 2]);
        let findings = seen("[pipeline]\nenabled = true\n[synthesis]\nthreads = 64\n");
        assert_eq!(levels(&findings), [Level::Ok, Level::Warn, Level::Ok, Level::Warn]);
        let findings = seen("[memory]\nsafety_margin = \"1TiB\"\n");
        assert_eq!(levels(&findings), [Level::Ok, Level::Fail]);
        assert!(findings[1].seen.contains("safety_margin"), "{findings:?}");
    }
}
