//! Parameters of circuits: from their files to the host's memory and to the GPUs.

use std::{
    path::Path,
    sync::{
        Arc, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use cuzk_gpu::{
    cuda::{
        plan::{Room, Rows, Shape},
        prove::Circuit,
    },
    srs::{self, Srs, Watch},
};
use cuzk_server::{Load, ParamsSize};
use cuzk_synth::{
    circuit::CircuitId,
    porep,
    r1cs::{self, R1cs},
};

use super::PorepProving;

/// What is needed to prove a circuit.
pub struct Params {
    pub(super) srs: Arc<Srs>,
    pub(super) r1cs: Arc<R1cs>,
    /// The same on the GPUs.
    pub(super) on_gpus: Arc<Circuit>,
}

impl PorepProving {
    /// The lists of a circuit's parameter file, if there is a usable one.
    pub(super) fn layout(&self, circuit: CircuitId) -> Option<srs::Layout> {
        let found = self.library.find(circuit).ok()?;
        srs::check_layout(&found.files.params).ok()
    }

    /// The constraint system of a circuit, recorded now if it is in no cache.
    fn r1cs(&self, circuit: CircuitId) -> Result<R1cs, String> {
        let recording = || tracing::info!(%circuit, "recording the constraint system, once");
        let Some(cache) = &self.settings.circuit_cache else {
            recording();
            return porep::record(circuit).map_err(|e| e.to_string())?.map_err(|e| e.to_string());
        };
        r1cs::open_or_record(circuit, &r1cs::cache_path(cache, circuit), recording).map_err(|e| e.to_string())
    }

    /// Loads the parameters of a circuit, on the current threads.
    pub(super) fn load_here(&self, circuit: CircuitId, load: &Load) -> Result<(Params, ParamsSize), String> {
        let found = self.library.find(circuit).map_err(|e| e.to_string())?;
        let in_log = in_tenths(circuit);
        let report = |done, of| {
            load.report(done, of);
            in_log(done, of);
        };
        let watch = Watch::new(&report, load.cancelled());
        // The native witness is compared with the circuit now, so that no job waits for that. If they differ, the log has
        // a warning, and witnesses take longer.
        let host = || self.load_on_host(circuit, &found.files.params, &watch);
        let (host, native) = rayon::join(host, || porep::is_native(circuit));
        let (srs, r1cs) = host?;
        let rows = if native.map_err(|e| e.to_string())? { Rows::Planes } else { Rows::Matrices };
        let bytes = srs.bytes(self.settings.arithmetic) + r1cs.bytes();
        let on_gpus = self.gpus.load(srs.clone(), r1cs.clone(), rows, found.files.params, &watch)?;
        let size = ParamsSize { bytes, host_bytes: host_bytes(srs.h.len() as u64) + on_gpus.pinned_bytes() };
        Ok((Params { srs, r1cs, on_gpus }, size))
    }

    /// The form for the CPU, and the constraint system.
    fn load_on_host(
        &self,
        circuit: CircuitId,
        params: &Path,
        watch: &Watch<'_>,
    ) -> Result<(Arc<Srs>, Arc<R1cs>), String> {
        let r1cs = self.r1cs(circuit)?;
        srs::check_layout(params).map_err(|e| e.to_string())?.fits(&r1cs)?;
        let srs = self.library.load_watched(circuit, self.settings.arithmetic, watch).map_err(|e| e.to_string())?;
        Ok((Arc::new(srs), Arc::new(r1cs)))
    }

    /// Host memory that the parameters of a circuit will take, in bytes, as far as their file tells.
    pub(super) fn reckoned_bytes(&self, circuit: CircuitId) -> u64 {
        let Some(layout) = self.layout(circuit) else { return 0 };
        let mut pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        let pinned = pinned.entry(circuit).or_insert_with(|| self.gpus.pinned_bytes(&shape(&layout), Rows::Planes));
        host_bytes(layout.sections[1].points) + *pinned
    }
}

/// Tells the log how far a load is, when another tenth of a file has been read.
fn in_tenths(circuit: CircuitId) -> impl Fn(u64, u64) + Sync {
    let told = AtomicU64::new(0);
    move |done, of| {
        let tenths = 10 * done / of.max(1);
        if told.swap(tenths, Ordering::Relaxed) < tenths {
            tracing::info!(%circuit, "loading parameters: {} % of {} MB", 10 * tenths, of / 1_000_000);
        }
    }
}

/// Host memory of parameters on the CPU: the points of `h`, of two coordinates of 64 bytes in the wider arithmetic. The
/// others and the constraint system are mapped.
fn host_bytes(h_points: u64) -> u64 {
    128 * h_points
}

/// A circuit as its parameter file shows it, for an estimate of memory before the circuit itself is read. Its domain has as
/// many rows as it can, and its entries are not known: they take no memory where rows come with the witness.
fn shape(layout: &srs::Layout) -> Shape {
    let [inputs, h, l, a, b, _] = layout.sections.map(|section| section.points as usize);
    let rows = h + 1;
    Shape {
        inputs,
        aux: l,
        rows,
        log_n: rows.next_power_of_two().ilog2(),
        entries: [0, 0],
        coefficients: 0,
        a_points: a,
        b_points: b,
        room: Room::for_bits(inputs + l, rows),
    }
}

#[cfg(test)]
mod tests {
    use cuzk_gpu::srs::{Layout, Section};

    use super::*;

    #[test]
    fn a_parameter_file_tells_the_shape_of_its_circuit() {
        let lengths = [40, (1 << 22) - 1, 2_685_673, 2_600_000, 685_521, 685_521];
        let layout =
            Layout { sections: lengths.map(|points| Section { name: "", offset: 0, points, point_bytes: 96 }) };
        let shape = shape(&layout);
        assert_eq!((shape.inputs, shape.aux, shape.rows, shape.log_n), (40, 2_685_673, 1 << 22, 22));
        assert_eq!((shape.a_points, shape.b_points), (2_600_000, 685_521));
    }
}
