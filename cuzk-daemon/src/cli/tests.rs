use clap::CommandFactory;
use cuzk_gpu::cuda::kernels::{Arch, arch::RELEASED};
use cuzk_proto::v1;
use cuzk_synth::circuit::SectorSize;

use super::*;

fn parse(line: &str) -> Result<Command, clap::Error> {
    let words = std::iter::once("cuzk-daemon").chain(line.split_whitespace());
    Cli::try_parse_from(words).map(Cli::into_command)
}

#[test]
fn the_definition_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn serve_is_the_default() {
    for line in ["--config /c.toml", "serve --config /c.toml"] {
        let Ok(Command::Serve(args)) = parse(line) else {
            panic!("{line} starts the daemon");
        };
        assert_eq!(args.config, Some("/c.toml".into()));
    }
    assert!(matches!(parse(""), Ok(Command::Serve(_))));
}

#[test]
fn flags_become_overrides_in_order() {
    let line = "--set gpus.policy=never --listen 127.0.0.1:1 --listen unix:///s --param-cache /p --log-level debug";
    let Ok(Command::Serve(args)) = parse(line) else {
        panic!("starts the daemon");
    };
    let overrides = args.overrides().expect("well-formed");
    let pairs: Vec<_> = overrides.iter().map(|o| (o.key.as_str(), o.value.as_str())).collect();
    assert_eq!(
        pairs,
        [
            ("gpus.policy", "never"),
            ("daemon.listen", "127.0.0.1:1,unix:///s"),
            ("srs.param_cache", "/p"),
            ("logging.level", "debug"),
        ]
    );
    let settings = crate::config::load(None, overrides).expect("legal");
    assert_eq!(settings.config.daemon.listen.0.len(), 2);
}

#[test]
fn a_relative_parameter_directory_is_made_absolute() {
    let Ok(Command::Serve(args)) = parse("--param-cache params") else {
        panic!("starts the daemon");
    };
    assert!(args.overrides().is_ok_and(|o| o[0].value.starts_with('/') && o[0].value.ends_with("/params")));
}

#[test]
fn prove_needs_an_output() {
    assert!(parse("prove --c1 f --miner 1000").is_err());
    for output in ["--out p", "--hex", "--out p --hex"] {
        let parsed = parse(&format!("prove --c1 f --miner 1000 --sector 42 --priority high {output}"));
        let Ok(Command::Prove(args)) = parsed else {
            panic!("{output}");
        };
        assert_eq!((args.miner, args.sector, args.registered_proof), (1000, Some(42), None));
        assert_eq!(v1::Priority::from(args.priority), v1::Priority::High);
    }
}

#[test]
fn the_scripts_command_lines() {
    assert!(matches!(
        parse("params generate --circuit porep-2k --out /p"),
        Ok(Command::Params(ParamsCommand::Generate(_)))
    ));
    let parsed = parse("params fetch --circuit porep-2k --circuit porep-32g --mirror https://h/{cid} --param-cache /p");
    assert!(
        matches!(parsed, Ok(Command::Params(ParamsCommand::Fetch(f))) if f.circuit.len() == 2 && f.mirror.len() == 1)
    );
    assert!(matches!(parse("params fetch --all"), Ok(Command::Params(ParamsCommand::Fetch(f))) if f.all));
    assert!(matches!(parse("status --json --addr unix:///s"), Ok(Command::Status(s)) if s.json));
    let parsed = parse("gen-c1 --sector-size 32GiB --variant v1_1 --seed 1 --out f");
    assert!(matches!(parsed, Ok(Command::GenC1(g)) if g.sector_size == SectorSize::Gib32));
    assert!(matches!(
        parse("kernels build --arch sm_80,sm_90 --out /k"),
        Ok(Command::Kernels(KernelsCommand::Build(args))) if args.arch == [Arch::new(8, 0), Arch::new(9, 0)]
    ));
    assert!(matches!(
        parse("kernels build --out /k"),
        Ok(Command::Kernels(KernelsCommand::Build(args))) if args.arch == RELEASED
    ));
    assert!(matches!(parse("watch --jobs 5"), Ok(Command::Watch(w)) if w.jobs == 5));
    let parsed = parse("jobs list --state running --state failed --json --limit 3");
    assert!(matches!(parsed, Ok(Command::Jobs(JobsCommand::List(l))) if l.json && l.limit == 3 && l.state.len() == 2));
    assert!(matches!(parse("jobs show j-1"), Ok(Command::Jobs(JobsCommand::Show(s))) if s.job == "j-1"));
    let parsed = parse("srs preload porep-2k --quiet");
    assert!(matches!(parsed, Ok(Command::Srs(SrsCommand::Preload(s))) if s.circuit.to_string() == "porep-2k"));
    assert!(matches!(parse("gpu list --local"), Ok(Command::Gpu(GpuCommand::List(g))) if g.local));
    assert!(matches!(parse("token new --name n --scope submit,read"), Ok(Command::Token(_))));
    assert!(matches!(parse("cancel j-1"), Ok(Command::Cancel(c)) if c.job == "j-1"));
    assert!(matches!(parse("config check --config f"), Ok(Command::Config(ConfigCommand::Check(_)))));
    let parsed = parse("config import old.toml --out new.toml");
    assert!(matches!(parsed, Ok(Command::Config(ConfigCommand::Import(i))) if i.out == Some("new.toml".into())));
    let parsed =
        parse("bench --circuit porep-32g --proofs 15 --concurrency 15 --synthetic 1 --json j --timeline t.svg");
    assert!(matches!(parsed, Ok(Command::Bench(b)) if (b.proofs, b.concurrency) == (15, 15) && b.c1.is_none()));
    assert!(matches!(parse("doctor --json --config f"), Ok(Command::Doctor(d)) if d.json));
}

#[test]
fn bad_values_are_usage_errors() {
    for line in [
        "params generate --circuit porep-3k --out /p",
        "params fetch",
        "params fetch --all --circuit porep-2k",
        "params fetch --all --mirror ftp://h",
        "kernels build --arch sm_75 --out /k",
        "status --addr https://h",
        "status --addr https://h:1 --tls-cert c",
        "gen-c1 --sector-size 1KiB --out f",
        "bench",
        "bench --circuit porep-2k --proofs 0",
        "bench --circuit porep-2k --c1 f --synthetic s",
        "bench --circuit porep-2k --sector 3",
        "completions tcsh",
        "config import",
        "gen-c1 --sector-size 2048 --out f",
        "gen-c1 --sector-size 2KiB --out f --variant noninteractive",
        "cancel",
        "jobs list --state odd",
        "jobs list --limit 0",
        "srs preload porep-3k",
        "token new --name n",
        "token new --name n --scope write",
        "token new --name a#b --scope read",
        "nonsense",
        "--config /c serve",
    ] {
        assert_eq!(parse(line).map(|_| ()).map_err(|e| e.exit_code()), Err(2), "{line}");
    }
}
