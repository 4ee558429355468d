use proptest::prelude::*;

use super::*;
use crate::device::cpu;
use crate::graph::testing::{Empty, Recorder};
use crate::ops::copy::Copy;

/// A draft of operations that read one block; some run user code.
fn drafted(hosts: &[bool]) -> Draft {
    let mut recorder = Recorder::default();
    let x = recorder.tensor(Role::Captured, 4);
    for &host in hosts {
        let to = recorder.tensor(Role::Slot, 4);
        let like = Empty { kind: Copy.into(), updates: false, host, scratch: 0 };
        recorder.push_empty(&like, std::slice::from_ref(&x), &[to]);
    }
    Draft::new(cpu::device(), recorder.queue, recorder.roles)
}

#[test]
fn user_code_between_two_steps_is_found() {
    let mut draft = drafted(&[false, true, false, true, false]);
    let between = |draft: &Draft| {
        [(0, 1), (0, 2), (1, 3), (0, 4), (3, 4)].map(|(a, b)| draft.has_host_between(a, b))
    };
    assert_eq!(between(&draft), [false, true, false, true, false]);
    let moved = draft.step(1).unwrap().clone();
    draft.remove(1);
    assert_eq!(between(&draft), [false, false, false, true, false]);
    draft.insert_after(3, moved);
    assert_eq!(between(&draft), [false, false, false, true, true]);
}

#[test]
fn steps_with_only_gaps_between_them_are_neighbours() {
    let mut draft = drafted(&[false; 4]);
    assert!(draft.is_right_before(0, 1) && !draft.is_right_before(0, 2));
    draft.remove(1);
    assert!(draft.is_right_before(0, 2) && !draft.is_right_before(2, 0));
    let step = draft.step(0).unwrap().clone();
    let new = draft.insert_after(1, step);
    assert!(!draft.is_right_before(0, 2) && draft.is_right_before(new, 2));
}

/// Checks that a draft has these steps and gaps, in this order, and knows who reads, writes and
/// runs user code.
fn check(draft: &Draft, order: &[usize]) {
    assert!(draft.numbers().eq(order.iter().copied()));
    let steps: Vec<usize> = order.iter().copied().filter(|&n| draft.step(n).is_some()).collect();
    assert!(draft.steps().map(|(n, _)| n).eq(steps.iter().copied()));
    let of = |uses: &dyn Fn(&Op) -> bool| -> Vec<usize> {
        steps.iter().copied().filter(|&n| uses(draft.step(n).unwrap())).collect()
    };
    for block in 0..draft.blocks() as u32 {
        let reads = of(&|op| op.inputs.iter().any(|place| place.block == block));
        let writes = of(&|op| op.outputs.iter().any(|place| place.block == block));
        assert!(draft.readers(block).iter().eq(reads) && draft.writers(block).iter().eq(writes));
    }
    assert!(draft.hosts.iter().eq(of(&|op| op.call.effects.host)));
    assert!(order.windows(2).all(|pair| draft.is_before(pair[0], pair[1])));
    assert!(order.windows(2).all(|pair| !draft.is_before(pair[1], pair[0])));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Long bursts at one place use up the labels there.
    #[test]
    fn steps_are_inserted_anywhere_any_number_of_times(
        hosts in prop::collection::vec(any::<bool>(), 1..8),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..6u8, 1..120usize), 1..12),
    ) {
        let mut draft = drafted(&hosts);
        let mut order: Vec<usize> = draft.numbers().collect();
        let step = |draft: &Draft| draft.steps().next().map(|(_, op)| op.clone());
        for (place, edit, count) in edits {
            let at = place.index(order.len());
            let mut n = order[at];
            let Some(op) = step(&draft) else { break };
            match edit {
                0 => draft.remove(n),
                1 => draft.replace(n, op),
                _ => for k in 0..count {
                    // Before or after one step, or after and before the one inserted last.
                    let (is_after, moves) = (edit % 2 == 0, edit >= 4);
                    let at = order.iter().position(|&other| other == n).unwrap();
                    let is_after = is_after ^ (moves && k % 2 == 1);
                    let new = match is_after {
                        true => draft.insert_after(n, op.clone()),
                        false => draft.insert_before(n, op.clone()),
                    };
                    order.insert(at + usize::from(is_after), new);
                    n = if moves { new } else { n };
                }
            }
            check(&draft, &order);
        }
        let finished = draft.finish().0;
        prop_assert_eq!(finished.ops().len(), draft.steps().count());
    }
}
