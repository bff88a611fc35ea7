//! `gen-c1`: writes the C1 output of a sector that does not exist.

use std::{fs::File, io::BufWriter, time::Instant};

use cuzk_synth::{c1::envelope, error::InputError, phantom::PhantomSector, registered::SealProof};

use crate::{
    cli::GenC1Args,
    exit::{Exit, Failure},
};

/// Makes it, writes it, and says how to send it.
pub(super) fn gen_c1(args: &GenC1Args) -> Result<(), Failure> {
    let begin = Instant::now();
    let sector = PhantomSector {
        seal: SealProof::new(args.sector_size, args.variant.into()),
        miner_id: args.miner,
        sector_number: args.sector,
        seed: &args.seed,
    };
    let refused = |e: InputError| Failure::new(Exit::Refused, format!("cannot make up a C1 output: {e}"));
    let c1 = sector.c1_output().map_err(refused)?;
    let out = &args.out;
    let mut file = BufWriter::new(File::create(out).map_err(|e| Failure::io("create", out, e))?);
    envelope::wrap(&mut file, &c1, sector.sector_number, sector.seal.size.bytes())
        .map_err(|e| Failure::io("write", out, e))?;
    println!("made {} in {:.1} s: {}", out.display(), begin.elapsed().as_secs_f64(), sector.seal.name());
    println!("No such sector exists: it proves nothing about storage. Send it with");
    println!("cuzk-daemon prove --c1 {} --miner {} --out PROOF", out.display(), sector.miner_id);
    Ok(())
}
