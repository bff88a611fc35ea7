//! Proofs on a device that may use little of its memory: what does not fit comes in parts, and b_g2 may be its part too.

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;

use super::{
    Cuda, DeviceKey, Source,
    inputs::{Porep, WATCHDOG, config},
};
use crate::{
    arith::Backend as Arithmetic,
    cpu::Cpu,
    cuda::{
        gpu::Gpu,
        harness::{Bench, Check, Measurement},
        plan::{BG2, Card, Config, MemoryPlan, NoPlan, Room, Rows, Shape, Vector},
        points::Checks,
    },
    device::Device,
    prover::Blinding,
    srs::{self, Watch},
    timing::Phase,
};

/// The checks.
pub const CHECKS: &[Check] = &[Check { name: "prove/limits, 2 KiB PoRep", run: |gpu, rng| run(gpu, rng).map(drop) }];

/// The benches.
pub const BENCHES: &[Bench] = &[Bench { name: "prove/limits, 2 KiB", run }];

/// Whether a plan is what is to be tried.
type Wanted<'a> = &'a dyn Fn(&MemoryPlan) -> bool;

/// Proves under each of some limits, compares with the CPU, and tells the times of the kernel phase.
fn run(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<Vec<Measurement>, String> {
    let text = |error: &dyn ToString| error.to_string();
    let porep = Porep::new(rng)?;
    let Porep { params, r1cs, partitions, .. } = &porep;
    let (_, partition) = partitions.first().ok_or("there is no sample")?;
    let blinding = Blinding::random(rng);
    let srs = Arc::new(srs::read(params, Arithmetic::current()).map_err(|e| text(&e))?);
    let expected = Device::new(Cpu::new(Arithmetic::current())).prove(&srs, partition, blinding);
    let expected = expected.map_err(|e| text(&e))?.0;

    let shape = Shape::of(r1cs, Room::for_bits(r1cs.num_variables(), r1cs.num_constraints()));
    let card = Card::new(gpu.info(), gpu.free_memory().map_err(|e| text(&e))?);
    let device = Device::new(Cuda::new(gpu.clone(), None));
    let mut rows = Vec::new();
    let nothing = |plan: &MemoryPlan| plan.vectors().all(Vector::is_resident);
    let (matrices, planes) = (Rows::Matrices, Rows::Planes);
    let h_only = |plan: &MemoryPlan| !plan.h.is_resident() && plan.l.is_resident();
    let cases: [(&str, Rows, BG2, Wanted<'_>); 8] = [
        ("everything streamed", matrices, BG2::Cpu, &|plan| plan.h.resident == 0),
        ("everything streamed", planes, BG2::Cpu, &|plan| plan.h.resident == 0),
        ("h streamed in part", matrices, BG2::Cpu, &|plan| plan.h.resident > 0 && !plan.h.is_resident()),
        ("only h streamed", planes, BG2::Cpu, &h_only),
        ("h streamed, b_g2 on the device", planes, BG2::Gpu, &|plan| plan.b_g2.is_some() && !plan.h.is_resident()),
        ("nothing streamed", matrices, BG2::Cpu, &nothing),
        ("nothing streamed", planes, BG2::Cpu, &nothing),
        ("nothing streamed, b_g2 on the device", planes, BG2::Gpu, &|plan| plan.b_g2.is_some() && nothing(plan)),
    ];
    for (name, how, b_g2, wanted) in cases {
        let all = Config { b_g2, ..config(2, how) };
        let Err(NoPlan::Device { needed, .. }) =
            MemoryPlan::choose(&shape, &card, &Config { vram_limit: Some(0), ..all })
        else {
            return Err("a plan without memory".to_owned());
        };
        // The smallest limit under which it is so.
        let limits = (0..128).map(|i| needed + all.reserve + (i << 25));
        let configs = limits.map(|limit| Config { vram_limit: Some(limit), ..all });
        let mut plans = configs.filter_map(|config| MemoryPlan::choose(&shape, &card, &config).ok());
        let plan = plans.find(|plan| wanted(plan)).ok_or_else(|| format!("{name}, {how:?}: there is no such plan"))?;
        let whole = plan.vectors().filter(|vector| vector.is_resident()).count();
        let size =
            format!("{} of {} queries, {:.2} GB", whole, plan.vectors().count(), plan.device_bytes() as f64 / 1e9);
        let source = Source { path: params, checks: Checks::FILE, readers: 8, watch: &Watch::nobody() };
        let key =
            DeviceKey::new(gpu, plan.clone(), &source, WATCHDOG, srs.clone(), r1cs.clone()).map_err(|e| text(&e))?;
        let mut seconds = f64::INFINITY;
        for _ in 0..3 {
            let (proof, timings) = device.prove(&key, partition, blinding).map_err(|e| text(&e))?;
            if proof != expected {
                return Err(format!("{name}, {how:?}: another proof than the CPU's:\n{plan}"));
            }
            seconds = seconds.min(timings.total(Phase::LockHold).as_secs_f64());
        }
        rows.push(Measurement {
            kernel: format!("prove, {name}, {how:?}"),
            size,
            seconds,
            work: 1.0,
            unit: "partitions",
            ceiling: None,
            goal: None,
        });
    }
    Ok(rows)
}
