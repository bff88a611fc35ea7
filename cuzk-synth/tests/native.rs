//! The native witness, compared value for value with that of the circuit's gadgets, on real inputs of every variant, and
//! on random ones of every sector size.

use cuzk_synth::{
    circuit::{CircuitId, SectorSize},
    porep::{self, PorepTask},
    sample::ALL,
};

#[test]
fn native_witnesses_are_those_of_the_gadgets() {
    for sample in ALL {
        let task = PorepTask::check(sample.c1, &sample.claims).expect("a good sample");
        let (native, gadgets) = (task.witness(0).expect("values"), task.witness_by_gadgets(0).expect("values"));
        assert_eq!(native.inputs(), gadgets.inputs(), "{}", sample.name);
        assert_eq!(native.num_aux(), gadgets.num_aux(), "{}", sample.name);
        let differs = (0..native.num_aux()).find(|&i| native.aux(i) != gadgets.aux(i));
        assert_eq!(differs, None, "{}: the first variable that differs", sample.name);
        assert!(native == gadgets, "{}", sample.name);
    }
}

#[test]
fn all_circuits_are_native() {
    for size in SectorSize::ALL {
        assert_eq!(porep::is_native(CircuitId::porep(size)), Ok(true), "{size:?}");
    }
}
