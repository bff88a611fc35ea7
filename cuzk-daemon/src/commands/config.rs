//! `config check`, `config print`, `config reference`.

use crate::{
    cli::{ConfigArgs, ConfigCommand},
    config::{self, Problems, Settings},
    exit::Failure,
    resources::{Plan, Resources},
};

/// Runs a `config` command.
pub(super) fn config(command: &ConfigCommand) -> Result<(), Failure> {
    match command {
        ConfigCommand::Check(args) => {
            let settings = load(args)?;
            let resources = Resources::detect();
            let plan = Plan::new(&resources, &settings.config)?;
            for warning in plan.warnings(&resources) {
                eprintln!("warning: {warning}");
            }
            println!("the configuration is legal; on this machine: {plan}");
        }
        ConfigCommand::Print(args) => print!("{}", config::render(&load(args)?)),
        ConfigCommand::Reference => print!("{}", config::REFERENCE),
    }
    Ok(())
}

/// Reads the configuration, and tells its warnings on standard error.
pub(super) fn load(args: &ConfigArgs) -> Result<Settings, Failure> {
    let overrides = args.overrides().map_err(|problem| Problems(vec![problem]))?;
    let settings = config::load(args.config.as_deref(), overrides)?;
    for warning in &settings.warnings {
        eprintln!("warning: {warning}");
    }
    Ok(settings)
}
