//! `config check`, `config print`, `config reference`, `config import`.

use std::{fs, io::Write};

use crate::{
    cli::{ConfigArgs, ConfigCommand, ImportArgs},
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
        ConfigCommand::Import(args) => import(args)?,
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

/// Writes the new file, and tells what became of each key on standard error.
fn import(args: &ImportArgs) -> Result<(), Failure> {
    let text = fs::read_to_string(&args.file).map_err(|e| Failure::io("read", &args.file, e))?;
    let import = config::import(&args.file, &text)?;
    let new = import.render(&args.file);
    match &args.out {
        None => print!("{new}"),
        Some(out) => {
            let mut file = fs::File::create_new(out).map_err(|e| {
                Failure::io("create", out, e).with_hint("an existing file is left alone: name another, or move it away")
            })?;
            file.write_all(new.as_bytes()).map_err(|e| Failure::io("write", out, e))?;
        }
    }
    for key in &import.keys {
        eprintln!("{key}");
    }
    let [taken, not_needed, refused, unknown] = import.counts();
    eprintln!("{taken} keys taken, {not_needed} not needed, {refused} refused, {unknown} unknown");
    Ok(())
}
