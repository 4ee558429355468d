//! A graph as a Python object.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::super::tensor::{self, Handle};
use super::super::{device, exit, op};
use super::recording::{PyRecording, views};
use crate::device::heap;
use crate::engine::{self, Compared, Executable, Kept};
use crate::ops::View;

/// What it takes at most to describe a graph, an operation.
const JSON_BYTES_A_NODE: usize = 12 << 10;

/// A step that was recorded, analysed and planned, and can be replayed.
#[pyclass(name = "Graph", module = "singa_rs._core", frozen)]
pub(super) struct PyGraph {
    /// In memory of its own: Python aligns objects to 16 bytes, which it asks more than.
    graph: Box<Executable>,
}

impl PyGraph {
    pub(super) fn new(graph: Executable) -> Self {
        PyGraph { graph: Box::new(graph) }
    }

    /// Whether it may run on these arguments.
    pub(super) fn accepts(&self, arguments: &[View]) -> bool {
        self.graph.check_arguments(arguments).is_ok() && self.graph.fits(arguments)
    }

    /// Runs the graph once; the results, each a new tensor.
    pub(super) fn results<'py>(
        &self,
        py: Python<'py>,
        arguments: &[View],
    ) -> PyResult<Vec<Bound<'py, Handle>>> {
        let results = self.replay(py, arguments)?;
        results.into_iter().map(|view| tensor::make(py, view)).collect()
    }

    /// Keeps Python's lock where the run is short and need not wait: to give it away and take it
    /// back would cost more.
    fn replay(&self, py: Python<'_>, arguments: &[View]) -> PyResult<Vec<View>> {
        let engine = engine::of(self.graph.device())?;
        let at_once = self.graph.is_short().then(|| engine.try_run()).flatten();
        let done = match at_once {
            Some(run) => self.graph.run(engine, run, arguments),
            None => exit::detach(py, || self.graph.run(engine, engine.run()?, arguments)),
        };
        done.map_err(op::exception)
    }
}

#[pymethods]
impl PyGraph {
    /// Runs the graph once; the results, each a new tensor.
    fn run<'py>(
        &self,
        py: Python<'py>,
        arguments: Vec<Bound<'py, Handle>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let arguments = views(&arguments)?;
        self.graph.check_arguments(&arguments)?;
        PyList::new(py, self.results(py, &arguments)?)
    }

    /// Why a run cannot be held against one of the operations as `recorded`, which is a graph of
    /// the same recording; None where it can.
    fn obstacle(&self, recorded: &PyGraph) -> Option<String> {
        self.graph.obstacle(&recorded.graph)
    }

    /// Runs the graph without a trace, and then the operations as `recorded`; the results of
    /// these, and what the graph makes otherwise, if anything.
    fn compare<'py>(
        &self,
        py: Python<'py>,
        recorded: &PyGraph,
        arguments: Vec<Bound<'py, Handle>>,
    ) -> PyResult<(Vec<Bound<'py, Handle>>, Option<String>)> {
        let arguments = views(&arguments)?;
        self.graph.check_arguments(&arguments)?;
        let engine = engine::of(self.graph.device())?;
        let compare = || self.graph.compare(&recorded.graph, engine, engine.run()?, &arguments);
        let Compared { results, difference } = exit::detach(py, compare).map_err(op::exception)?;
        let results = results.into_iter().map(|view| tensor::make(py, view));
        Ok((results.collect::<PyResult<_>>()?, difference))
    }

    /// Checks the graph and its plan once more, as when it was made.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        Ok(exit::detach(py, || self.graph.graph().verify())?)
    }

    /// What is wrong with the graph that was asked for, where this one is as recorded for that.
    #[getter]
    fn fault(&self) -> Option<String> {
        self.graph.fault().map(ToString::to_string)
    }

    /// Bytes that lie outside of the arena and that a run writes: what is saved while two runs are
    /// compared.
    #[getter]
    fn updated_bytes(&self) -> usize {
        self.graph.updated_bytes()
    }

    /// Mean seconds of the kernels alone, over `runs` runs in a row: what a run costs without the
    /// call from Python. The runs count as steps.
    fn time(
        &self,
        py: Python<'_>,
        arguments: Vec<Bound<'_, Handle>>,
        runs: usize,
    ) -> PyResult<f64> {
        let arguments = views(&arguments)?;
        self.graph.check_arguments(&arguments)?;
        let engine = engine::of(self.graph.device())?;
        let time = || self.graph.time(engine, engine.run()?, &arguments, runs);
        exit::detach(py, time).map_err(op::exception)
    }

    /// Mean seconds of each operation, in order, over `runs` runs in a row on these arguments, or
    /// on zeros. Afterwards all that they write is as it was; they are slower than others by the
    /// clock's reading.
    #[pyo3(signature = (arguments, runs))]
    fn profile(
        &self,
        py: Python<'_>,
        arguments: Option<Vec<Bound<'_, Handle>>>,
        runs: usize,
    ) -> PyResult<Vec<f64>> {
        let arguments = arguments.map(|given| views(&given)).transpose()?;
        arguments.as_ref().map_or(Ok(()), |given| self.graph.check_arguments(given))?;
        let engine = engine::of(self.graph.device())?;
        let profile = || self.graph.profile(engine, engine.run()?, arguments, runs);
        exit::detach(py, profile).map_err(op::exception)
    }

    /// Whether the arguments share memory with each other as in the recording, and none with
    /// what the graph knows otherwise.
    fn fits(&self, arguments: Vec<Bound<'_, Handle>>) -> PyResult<bool> {
        Ok(self.graph.fits(&views(&arguments)?))
    }

    /// The tensors that are still held of an equal recording show this graph's runs from now on.
    fn adopt(&self, py: Python<'_>, recording: &PyRecording) -> PyResult<()> {
        exit::detach(py, || recording.with("adopt", |recording| self.graph.adopt(recording)))
    }

    /// How often it has run to its end.
    #[getter]
    fn runs(&self) -> u64 {
        self.graph.runs()
    }

    /// How many operations it has.
    #[getter]
    fn nodes(&self) -> usize {
        self.graph.graph().nodes().len()
    }

    /// How many blocks they name.
    #[getter]
    fn blocks(&self) -> usize {
        self.graph.graph().roles().len()
    }

    /// The most bytes that what lives and dies within a run takes at once.
    #[getter]
    fn peak_bytes(&self) -> usize {
        self.graph.graph().peak_bytes()
    }

    /// What no plan for this order of operations can do without.
    #[getter]
    fn lower_bound_bytes(&self) -> usize {
        self.graph.graph().lower_bound_bytes()
    }

    /// Bytes of the planned arena.
    #[getter]
    fn arena_bytes(&self) -> usize {
        self.graph.arena_bytes()
    }

    /// Of what need not run in every run: the number of operations, the bytes that are kept, and
    /// how often they were computed.
    #[getter]
    fn constants(&self) -> (usize, usize, u64) {
        let Kept { operations, bytes, computed } = self.graph.constants();
        (operations, bytes, computed)
    }

    /// Bytes by account of what a run needs, whether it is there yet or not.
    fn memory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        device::accounts(py, &self.graph.memory())
    }

    /// `block_id` of every block that was there before the recording, with its number.
    fn captured(&self) -> HashMap<usize, u32> {
        self.graph.captured_ids().into_iter().collect()
    }

    /// How many of the `changes` were made by runs of the graph.
    #[getter]
    fn moves(&self) -> u64 {
        self.graph.moves()
    }

    /// How often a tensor object was pointed away from memory that the graph captured: a recording
    /// made now may use another block.
    #[getter]
    fn departures(&self) -> u32 {
        self.graph.departures()
    }

    /// `block_id` of the blocks that were there before, and that the run which just failed has
    /// written.
    fn written(&self) -> Vec<usize> {
        self.graph.written()
    }

    /// A few lines of text.
    fn summary(&self) -> String {
        self.graph.summary()
    }

    /// Nodes, blocks, edges, totals, the lines of the program that nodes have as origins, and the
    /// numbers of the arguments' and the results' blocks.
    fn to_json(&self) -> PyResult<String> {
        heap::expect(self.nodes().saturating_mul(JSON_BYTES_A_NODE))?;
        let mut graph = self.graph.graph().to_json();
        graph["arguments"] = self.graph.argument_blocks().into();
        graph["results"] = self.graph.result_blocks().into();
        graph["lines"] = self.graph.lines().iter().map(|line| &**line).collect();
        Ok(graph.to_string())
    }

    fn __repr__(&self) -> String {
        let graph = self.graph.graph();
        let (nodes, arena) = (graph.nodes().len(), self.graph.arena_bytes());
        format!("Graph({nodes} operations, arena of {arena} bytes)")
    }
}
