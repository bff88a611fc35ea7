//! The native witness, compared value for value with that of the circuit's gadgets, on real inputs of every variant.

use cuzk_synth::{porep::PorepTask, sample::ALL};

#[test]
fn native_witnesses_are_those_of_the_gadgets() {
    for sample in ALL {
        let task = PorepTask::check(sample.c1, &sample.claims).expect("a good sample");
        assert!(task.is_native(), "{}", sample.name);
        let (native, gadgets) = (task.witness(0).expect("values"), task.witness_by_gadgets(0).expect("values"));
        assert_eq!(native.inputs(), gadgets.inputs(), "{}", sample.name);
        assert_eq!(native.num_aux(), gadgets.num_aux(), "{}", sample.name);
        let differs = (0..native.num_aux()).find(|&i| native.aux(i) != gadgets.aux(i));
        assert_eq!(differs, None, "{}: the first variable that differs", sample.name);
        assert!(native == gadgets, "{}", sample.name);
    }
}
