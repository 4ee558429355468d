use super::*;
use crate::device::cpu;
use crate::graph::testing::{Empty, Recorder};
use crate::ops::copy::Copy;

#[test]
fn user_code_between_two_steps_is_found() {
    let mut recorder = Recorder::default();
    let x = recorder.tensor(Role::Captured, 4);
    for host in [false, true, false, true, false] {
        let to = recorder.tensor(Role::Slot, 4);
        let like = Empty { kind: Copy.into(), updates: false, host, scratch: 0 };
        recorder.push_empty(&like, std::slice::from_ref(&x), &[to]);
    }
    let mut draft = Draft::new(cpu::device(), recorder.queue, recorder.roles);
    // Recorded operations have even numbers: user code runs in steps 2 and 6.
    let between = |draft: &Draft| {
        [(0, 2), (0, 3), (2, 6), (2, 7), (1, 8), (6, 8)].map(|(a, b)| draft.has_host_between(a, b))
    };
    assert_eq!(between(&draft), [false, true, false, true, true, false]);
    let moved = draft.step(2).unwrap().clone();
    draft.remove(2);
    assert_eq!(between(&draft), [false, false, false, true, true, false]);
    draft.replace(7, moved);
    assert_eq!(between(&draft), [false, false, false, true, true, true]);
}
