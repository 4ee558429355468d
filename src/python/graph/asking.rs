//! What asks for the operations that a thread records: the program, a layer, the gradient of an
//! operation, or what is done with gradients.

use std::cell::RefCell;
use std::sync::Arc;

use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use crate::engine::record;
use crate::graph::{Origin, Phase};

thread_local! {
    static ASKING: RefCell<Asking> = RefCell::new(Asking::new(1));
}

/// What asks for operations.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Asker {
    layer: Option<Arc<str>>,
    phase: Phase,
    /// The number of the origin whose line it has; 0 for the program's current line.
    at: u32,
}

/// The program itself, outside of models.
const PROGRAM: Asker = Asker { layer: None, phase: Phase::Forward, at: 0 };

/// All that have asked during a recording, and which one asks now.
struct Asking {
    askers: Vec<Asker>,
    places: FxHashMap<Asker, u32>,
    now: u32,
    /// The number of the first asker: no two recordings of a thread share numbers, so that what
    /// comes back after the end of one changes nothing in the next.
    first: u32,
}

impl Asking {
    fn new(first: u32) -> Self {
        Asking {
            askers: vec![PROGRAM],
            places: [(PROGRAM, 0)].into_iter().collect(),
            now: 0,
            first,
        }
    }

    fn place(&mut self, asker: &Asker) -> u32 {
        let next = self.askers.len() as u32;
        let place = *self.places.entry(asker.clone()).or_insert(next);
        if place == next {
            self.askers.push(asker.clone());
        }
        place
    }
}

/// Whether what asks now has a line other than the program's current one.
pub(super) fn has_line() -> bool {
    ASKING.with_borrow(|asking| asking.askers[asking.now as usize].at != 0)
}

/// The number of what asks now.
pub(super) fn number() -> u32 {
    ASKING.with_borrow(|asking| asking.first.wrapping_add(asking.now))
}

/// Attributes the operations that follow to a line, and to what asks now.
pub(super) fn set_line(line: &str) {
    set_origin(&now(), line.into());
}

/// Nothing asks any more: the recording has ended.
pub(super) fn forget() {
    ASKING.with_borrow_mut(|asking| {
        *asking = Asking::new(asking.first.wrapping_add(asking.askers.len() as u32));
    });
}

fn now() -> Asker {
    ASKING.with_borrow(|asking| asking.askers[asking.now as usize].clone())
}

fn set_origin(asker: &Asker, line: Arc<str>) {
    record::set_origin(Origin { line, layer: asker.layer.clone(), phase: asker.phase });
}

/// Another one asks from now on. Returns the number of the previous one; 0 if nothing is recorded.
fn begin(asker: impl FnOnce(Asker) -> Asker) -> u32 {
    if record::origin().is_none() {
        return 0;
    }
    let before = number();
    let next = asker(now());
    let place = ASKING.with_borrow_mut(|asking| asking.place(&next));
    ask(place);
    before
}

/// A layer asks for the operations that follow.
#[pyfunction]
fn begin_layer(path: &str) -> u32 {
    begin(|_| Asker { layer: Some(path.into()), phase: Phase::Forward, at: 0 })
}

/// The operations that follow compute the gradient of one with the number `origin()`. For 0, which
/// is that of an operation before the recording, they have the program's current line.
#[pyfunction]
fn begin_gradient(origin: u32) -> u32 {
    begin(|now| {
        let of = (origin != 0).then(|| record::origin_of(origin)).flatten();
        let at = if of.is_some() { origin } else { 0 };
        Asker { layer: of.map_or(now.layer, |of| of.layer), phase: Phase::Backward, at }
    })
}

/// The operations that follow do something with gradients, for the parameters of a layer or, for
/// None, of the one that asks now.
#[pyfunction]
fn begin_update(layer: Option<&str>) -> u32 {
    begin(|now| Asker { layer: layer.map(Into::into).or(now.layer), phase: Phase::Update, ..now })
}

/// What asked before asks again; nothing changes if that was in another recording.
#[pyfunction]
fn resume(number: u32) {
    let place = ASKING.with_borrow(|asking| {
        let place = number.wrapping_sub(asking.first);
        ((place as usize) < asking.askers.len()).then_some(place)
    });
    place.into_iter().for_each(ask);
}

fn ask(place: u32) {
    let asker = ASKING.with_borrow_mut(|asking| {
        asking.now = place;
        asking.askers[place as usize].clone()
    });
    if let Some(origin) = (asker.at != 0).then(|| record::origin_of(asker.at)).flatten() {
        set_origin(&asker, origin.line);
    }
}

/// The number of the origin of the last recorded operation; 0 if it has none.
#[pyfunction]
fn origin() -> u32 {
    record::origin().unwrap_or(0)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(begin_layer, module)?)?;
    module.add_function(wrap_pyfunction!(begin_gradient, module)?)?;
    module.add_function(wrap_pyfunction!(begin_update, module)?)?;
    module.add_function(wrap_pyfunction!(resume, module)?)?;
    module.add_function(wrap_pyfunction!(origin, module)?)
}
