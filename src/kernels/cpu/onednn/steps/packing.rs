//! A kernel in two parts: one packs an input into a layout that only oneDNN knows, and the other
//! reads the packed input.

use std::ops::Range;
use std::sync::Arc;

use super::{Layout, Location, Step, Steps, Tensor};
use crate::device::ALIGNMENT;
use crate::kernels::Packing;

/// The steps that pack an input into a layout of oneDNN's own.
#[derive(Clone)]
pub(super) struct Packed {
    input: usize,
    steps: Range<usize>,
    /// The offset of the packed input in scratch memory.
    at: usize,
    bytes: usize,
}

impl Packed {
    /// The corresponding place in the kernel that reads the packed input.
    fn moved(&self, place: Location) -> Location {
        match place {
            Location::Scratch(at) if at == self.at => Location::Input(self.input),
            Location::Scratch(at) if at > self.at => Location::Scratch(at - self.room()),
            other => other,
        }
    }

    /// The corresponding place in the kernel that packs the input.
    fn alone(&self, place: Location) -> Location {
        match place {
            Location::Scratch(at) if at == self.at => Location::Output(0),
            Location::Input(_) => Location::Input(0),
            other => other,
        }
    }

    fn room(&self) -> usize {
        self.bytes.next_multiple_of(ALIGNMENT)
    }
}

impl Steps {
    /// Notes that the steps from `first` on packed a tensor, if they did.
    pub(super) fn note_packed(&mut self, of: &Tensor, layout: &Layout, at: Location, first: usize) {
        if let (Location::Input(input), Layout::Packed(..), Location::Scratch(at)) =
            (of.place, layout, at)
        {
            let (steps, bytes) = (first..self.steps.len(), layout.bytes(self.library));
            self.packed = Some(Packed { input, steps, at, bytes });
        }
    }

    /// The steps that pack an input, and those that use it, if an input is packed.
    pub fn packing(&self) -> Option<Packing> {
        let packed = self.packed.as_ref()?;
        let is_packing = |n: usize| packed.steps.contains(&n);
        let pack = self.part(is_packing, |place| packed.alone(place), self.reserved);
        let left = self.reserved - packed.room();
        let rest = self.part(|n| !is_packing(n), |place| packed.moved(place), left);
        let (input, bytes) = (packed.input, packed.bytes);
        Some(Packing { input, bytes, pack: Arc::new(pack), rest: Arc::new(rest) })
    }

    /// Some of the steps, with their places mapped.
    fn part(
        &self,
        is_in: impl Fn(usize) -> bool,
        name: impl Fn(Location) -> Location,
        reserved: usize,
    ) -> Steps {
        let chosen = self.steps.iter().enumerate().filter(|(n, _)| is_in(*n));
        let renamed = chosen.map(|(_, step)| {
            let places = step.places.iter().map(|&place| name(place)).collect();
            Step { places, ..step.clone() }
        });
        let steps: Vec<Step> = renamed.collect();
        let is_scratch = |place: &Location| matches!(place, Location::Scratch(_));
        let uses = steps.iter().any(|step| step.places.iter().any(is_scratch));
        Steps {
            steps,
            reserved: if uses { reserved } else { 0 },
            packed: None,
            library: self.library,
            width: self.width,
        }
    }
}
