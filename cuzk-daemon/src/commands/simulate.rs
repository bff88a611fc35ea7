//! `simulate`: what the daemon's scheduler would make of a machine.

use std::{fs, time::Instant};

use cuzk_server::{
    memory::Shares,
    sim::{
        self, Faults, Scenario,
        model::{Machine, Task},
        trace,
    },
};

use crate::{
    cli::SimulateArgs,
    exit::{Exit, Failure},
};

/// Simulates and prints the report.
pub(super) fn simulate(args: &SimulateArgs) -> Result<(), Failure> {
    let trace = match &args.trace {
        None => trace::stream(args.proofs as usize, args.proofs as usize, 0.0),
        Some(path) => {
            let text = fs::read_to_string(path).map_err(|e| Failure::io("read", path, e))?;
            trace::parse(&text).map_err(|e| Failure::new(Exit::Usage, format!("{}: {e}", path.display())))?
        }
    };
    let faults = Faults { device: args.faults, seed: args.seed, ..Faults::default() };
    let scenario = Scenario { machine: machine(args)?, trace, faults };
    let begin = Instant::now();
    let report = sim::run(&scenario).map_err(|violation| {
        Failure::new(Exit::Failure, format!("a rule of the scheduler does not hold: {violation}"))
            .with_hint("please report it with the command line and the trace")
    })?;
    print!("{report}");
    println!("simulated in {:.3} s", begin.elapsed().as_secs_f64());
    Ok(())
}

fn machine(args: &SimulateArgs) -> Result<Machine, Failure> {
    let times = [args.kernels, args.synthesis, args.finish, args.faults];
    if times.iter().any(|time| !(0.0..1e6).contains(time)) || args.faults > 1.0 {
        let reason = "times must lie between 0 and a million seconds, the share of faults between 0 and 1";
        return Err(Failure::new(Exit::Usage, reason));
    }
    let mut machine = match args.published {
        true => Machine::published(args.workers as usize),
        false => {
            let mut ours = Machine::ours(args.devices as usize, args.cores as usize, args.kernels);
            ours.workers_per_device = args.workers as usize;
            ours.memory = Shares::of(args.memory.bytes(), 4 << 30);
            let cores = ours.costs.tail.cores;
            ours.costs.tail = Task { seconds: args.finish / cores, ..ours.costs.tail };
            ours
        }
    };
    if !args.published {
        machine.costs.synthesis.seconds = args.synthesis;
    }
    Ok(machine)
}
