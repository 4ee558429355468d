//! Checks of the tensors given to an operation, and whether it may write them in place.

use crate::device::Device;
use crate::error::{Error, Result};
use crate::ops::{Call, Family, Meta, View};
use crate::view;

/// Checks that all tensors are on one device.
pub fn device(family: &dyn Family, device: &Device, views: &[View]) -> Result<()> {
    let same = views.iter().all(|v| v.block.device().id() == device.id());
    let message = || format!("all tensors must be on {device:?}");
    crate::ensure!(same, Error::device(family.name(), message()));
    Ok(())
}

/// Checks the tensors that are given as outputs.
pub fn outputs(op: &Call, name: &'static str, inputs: &[View], given: &[View]) -> Result<()> {
    let (got, want) = (given.len(), op.outputs.len());
    crate::ensure!(got == want, Error::arity(name, got, want));
    for (o, (made, given)) in op.outputs.iter().zip(given).enumerate() {
        output(name, made, given)?;
        let fits = op.state_of(o).is_none_or(|i| given.is_same(&inputs[i]));
        let want = || format!("for output {o} the input that it updates");
        crate::ensure!(fits, Error::value(name, "another tensor", want()));
    }
    Ok(())
}

fn output(name: &'static str, made: &Meta, given: &View) -> Result<()> {
    let want = || format!("an output of shape {}", made.shape);
    crate::ensure!(given.meta.shape == made.shape, Error::shape(name, [&given.meta.shape], want()));
    let want = || format!("an output of dtype {}", made.dtype);
    crate::ensure!(given.meta.dtype == made.dtype, Error::dtype(name, [given.meta.dtype], want()));
    let repeats = view::repeats(&given.meta);
    crate::ensure!(
        !repeats,
        Error::value(name, "an expanded output", "each element in a place of its own")
    );
    Ok(())
}

/// Whether the outputs cannot be written directly: one has strides that the operation does not
/// support, or overlaps another output or an input in a way that the operation does not allow.
pub fn runs_apart(op: &Call, family: &dyn Family, inputs: &[View], given: &[View]) -> bool {
    let strides_fit = |o: usize| family.any_output_strides() || *given[o].meta == *op.outputs[o];
    let shares = |o: usize, i: usize| {
        let pair = &(i, o);
        let may = op.effects.state.contains(pair) || family.in_place().contains(pair);
        given[o].overlaps(&inputs[i]) && !(may && given[o].is_same(&inputs[i]))
    };
    (0..given.len()).any(|o| {
        !strides_fit(o)
            || (0..inputs.len()).any(|i| shares(o, i))
            || (0..o).any(|earlier| given[o].overlaps(&given[earlier]))
    })
}

/// The inputs that overlap another input that the operation updates, and so must be read from
/// copies.
///
/// # Errors
/// [`Error::Value`] if both are updated.
pub fn shared_with_state(family: &dyn Family, inputs: &[View]) -> Result<Vec<usize>> {
    let state = family.effects().state;
    let is_state = |i: usize| state.iter().any(|pair| pair.0 == i);
    let mut shared = Vec::new();
    for &(s, _) in state {
        let overlaps = |&i: &usize| i != s && s < inputs.len() && inputs[i].overlaps(&inputs[s]);
        for i in (0..inputs.len()).filter(overlaps) {
            let got = || format!("inputs {s} and {i} in the same memory");
            let want = "memory of its own for each input that is updated";
            crate::ensure!(!is_state(i), Error::value(family.name(), got(), want));
            shared.push(i);
        }
    }
    Ok(shared)
}
