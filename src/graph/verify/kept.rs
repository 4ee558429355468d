//! Are constants, which are computed once, available when runs read them, and do they stay valid?

use super::recorded::Recorded;
use super::{Fault, Graph, Place, Role};
use crate::ops::Effects;

/// Checks the graph that computes constants once, for runs of another graph, which reads the `kept`
/// blocks. Blocks have the same numbers in both graphs.
pub(in crate::graph) fn kept(run: &Graph, constants: &Graph, kept: &[u32]) -> Result<(), Fault> {
    reads_what_stays(run, constants)?;
    writes_its_own(constants, kept)?;
    let recorded = Recorded::new(constants)?;
    for &block in kept {
        let fault = |what| Err(Fault::Kept { block, what });
        if run.is_written(block) {
            return fault("runs write it");
        }
        if run.roles()[block as usize] != Role::Captured {
            return fault("runs do not take it as memory that was there before");
        }
        if run.block_bytes(block) != constants.block_bytes(block) {
            return fault("runs take it to be of another size");
        }
        for place in inputs(run).filter(|place| place.block == block) {
            let what = "runs read bytes of it that nothing has written";
            recorded.blocks[block as usize].parts(place.byte_range(), |_, writer| {
                writer.map_or(Err(Fault::Kept { block, what }), |_| Ok(()))
            })?;
        }
    }
    Ok(())
}

/// Checks that what the constants are computed from is the same in every run.
fn reads_what_stays(run: &Graph, constants: &Graph) -> Result<(), Fault> {
    let was_there =
        |block: u32| matches!(constants.roles()[block as usize], Role::Captured | Role::Argument);
    for block in inputs(constants).map(|place| place.block).filter(|&block| was_there(block)) {
        let fault = |what| Err(Fault::Kept { block, what });
        if constants.roles()[block as usize] == Role::Argument {
            return fault("it is made of an argument");
        }
        if run.is_written(block) || constants.is_written(block) {
            return fault("what it is made of is written");
        }
    }
    Ok(())
}

/// Checks that the operations do nothing but compute the kept blocks and their intermediates.
fn writes_its_own(constants: &Graph, kept: &[u32]) -> Result<(), Fault> {
    for op in constants.ops() {
        for place in &op.outputs {
            let (block, role) = (place.block, constants.roles()[place.block as usize]);
            let is_own = role == Role::Temporary || role == Role::Slot && kept.contains(&block);
            crate::ensure!(is_own, Fault::Kept { block, what: "it is no tensor of its own" });
            let is_pure = op.call.effects == Effects::PURE;
            crate::ensure!(is_pure, Fault::Kept { block, what: "its operation has effects" });
        }
    }
    Ok(())
}

fn inputs(graph: &Graph) -> impl Iterator<Item = &Place> {
    graph.ops().iter().flat_map(|op| &op.inputs)
}
