//! Dead code elimination: results that nothing reads are not computed.

use crate::graph::Role;
use crate::graph::draft::Draft;
use crate::ops::Call;

/// Applies the rule wherever it fits.
pub fn apply(draft: &mut Draft) {
    // Backwards, because removing a step may leave its inputs without readers.
    for n in draft.numbers().rev() {
        if is_dead(draft, n) {
            draft.remove(n);
        }
    }
}

/// Whether a step only writes temporaries that nothing reads.
fn is_dead(draft: &Draft, n: usize) -> bool {
    let Some(step) = draft.step(n) else { return false };
    let is_read =
        |block: u32| draft.role(block) != Role::Temporary || !draft.readers(block).is_empty();
    may_be_left_out(&step.call) && !step.outputs.iter().any(|output| is_read(output.block))
}

/// Whether an operation only writes its outputs, and cannot fail because of its inputs' values.
fn may_be_left_out(call: &Call) -> bool {
    !call.effects.host && call.effects.state.is_empty() && !call.kind.family().may_fail()
}
