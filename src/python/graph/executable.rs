//! A graph as a Python object.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::super::tensor::{self, Handle};
use super::super::{device, exit, op};
use super::recording::{PyRecording, views};
use crate::device::heap;
use crate::engine::{self, Compared, Executable, Kept};
use crate::ops::View;

/// The most that the description of a graph takes per operation.
const JSON_BYTES_A_NODE: usize = 12 << 10;

/// A step that has been recorded, analysed and planned, and can be replayed.
#[pyclass(name = "Graph", module = "singa_rs._core", frozen)]
pub(super) struct PyGraph {
    /// Shared with a step from a file, whose graph it is.
    graph: Arc<Executable>,
}

impl PyGraph {
    pub(super) fn new(graph: Arc<Executable>) -> Self {
        PyGraph { graph }
    }

    /// Whether the graph can run on these arguments.
    pub(super) fn accepts(&self, arguments: &[View]) -> bool {
        self.graph.admit(arguments).is_ok()
    }

    /// The tensors that the graph is to run on.
    fn admitted(&self, arguments: &[Bound<'_, Handle>]) -> PyResult<Vec<View>> {
        let arguments = views(arguments)?;
        self.graph.admit(&arguments)?;
        Ok(arguments)
    }

    /// Runs the graph once; returns the results, each a new tensor.
    pub(super) fn results<'py>(
        &self,
        py: Python<'py>,
        arguments: &[View],
    ) -> PyResult<Vec<Bound<'py, Handle>>> {
        let results = self.replay(py, arguments)?;
        results.into_iter().map(|view| tensor::make(py, view)).collect()
    }

    /// Keeps the GIL where the run is short and need not wait: releasing and retaking it would cost
    /// more.
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
    /// Runs the graph once; returns the results, each a new tensor.
    fn run<'py>(
        &self,
        py: Python<'py>,
        arguments: Vec<Bound<'py, Handle>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let arguments = self.admitted(&arguments)?;
        PyList::new(py, self.results(py, &arguments)?)
    }

    /// Why a run cannot be compared with one of the operations as `recorded`, a graph of the same
    /// recording; None where it can.
    fn obstacle(&self, recorded: &PyGraph) -> Option<String> {
        self.graph.obstacle(&recorded.graph)
    }

    /// Runs the graph without a trace, and then the operations as `recorded`; returns the results
    /// of the latter, and a description of what the graph computes differently, if anything.
    fn compare<'py>(
        &self,
        py: Python<'py>,
        recorded: &PyGraph,
        arguments: Vec<Bound<'py, Handle>>,
    ) -> PyResult<(Vec<Bound<'py, Handle>>, Option<String>)> {
        let arguments = self.admitted(&arguments)?;
        recorded.graph.admit(&arguments)?;
        let engine = engine::of(self.graph.device())?;
        let compare = || self.graph.compare(&recorded.graph, engine, engine.run()?, &arguments);
        let Compared { results, difference } = exit::detach(py, compare).map_err(op::exception)?;
        let results = results.into_iter().map(|view| tensor::make(py, view));
        Ok((results.collect::<PyResult<_>>()?, difference))
    }

    /// Checks the graph and its plan again, as at construction.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        Ok(exit::detach(py, || self.graph.graph().verify())?)
    }

    /// What is wrong with the requested graph, where this one runs the operations as recorded
    /// instead.
    #[getter]
    fn fault(&self) -> Option<String> {
        self.graph.fault().map(ToString::to_string)
    }

    /// The most bytes outside the arena that are saved at once while two runs are compared.
    #[getter]
    fn undo_bytes(&self) -> usize {
        self.graph.undo_bytes()
    }

    /// Mean seconds of the kernels alone, over `runs` consecutive runs: the cost of a run without
    /// the call from Python. The runs count as steps.
    fn time(
        &self,
        py: Python<'_>,
        arguments: Vec<Bound<'_, Handle>>,
        runs: usize,
    ) -> PyResult<f64> {
        let arguments = self.admitted(&arguments)?;
        let engine = engine::of(self.graph.device())?;
        let time = || self.graph.time(engine, engine.run()?, &arguments, runs);
        exit::detach(py, time).map_err(op::exception)
    }

    /// Mean seconds of each operation, and those of them in which the calling thread waited for
    /// others, in order, over `runs` consecutive runs on these arguments, or on zeros. Everything
    /// they write is restored afterwards; they are slower than other runs because of the clock
    /// readings.
    #[pyo3(signature = (arguments, runs))]
    fn profile(
        &self,
        py: Python<'_>,
        arguments: Option<Vec<Bound<'_, Handle>>>,
        runs: usize,
    ) -> PyResult<Vec<(f64, f64)>> {
        let arguments = arguments.map(|given| self.admitted(&given)).transpose()?;
        let engine = engine::of(self.graph.device())?;
        let profile = || self.graph.profile(engine, engine.run()?, arguments, runs);
        let timings = exit::detach(py, profile).map_err(op::exception)?;
        Ok(timings.iter().map(|timing| (timing.seconds, timing.waiting)).collect())
    }

    /// Whether the arguments share memory with each other as in the recording, and with none of the
    /// other tensors that the graph uses.
    fn fits(&self, arguments: Vec<Bound<'_, Handle>>) -> PyResult<bool> {
        Ok(self.graph.fits(&views(&arguments)?))
    }

    /// Makes tensors still held from an equal recording show this graph's runs from here on.
    fn adopt(&self, py: Python<'_>, recording: &PyRecording) -> PyResult<()> {
        let recording = recording.get("adopt")?;
        exit::detach(py, || self.graph.adopt(&recording));
        Ok(())
    }

    /// How many runs have completed.
    #[getter]
    fn runs(&self) -> u64 {
        self.graph.runs()
    }

    /// The number of operations.
    #[getter]
    fn nodes(&self) -> usize {
        self.graph.graph().ops().len()
    }

    /// The number of blocks that the operations use.
    #[getter]
    fn blocks(&self) -> usize {
        self.graph.graph().roles().len()
    }

    /// The most bytes live at once, over the values whose lifetime is within a run.
    #[getter]
    fn peak_bytes(&self) -> usize {
        self.graph.graph().peak_bytes()
    }

    /// A lower bound on the bytes of any plan for this order of operations.
    #[getter]
    fn lower_bound_bytes(&self) -> usize {
        self.graph.graph().lower_bound_bytes()
    }

    /// Bytes of the planned arena.
    #[getter]
    fn arena_bytes(&self) -> usize {
        self.graph.arena_bytes()
    }

    /// For operations that need not run in every run: their number, the bytes kept for their
    /// results, and how often they were computed.
    #[getter]
    fn constants(&self) -> (usize, usize, u64) {
        let Kept { operations, bytes, computed } = self.graph.constants();
        (operations, bytes, computed)
    }

    /// Bytes by account that a run needs, whether already allocated or not.
    fn memory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        device::accounts(py, &self.graph.memory())
    }

    /// Maps the `block_id` of every block that existed before the recording to its number.
    fn captured(&self) -> HashMap<usize, u32> {
        self.graph.captured_ids().into_iter().collect()
    }

    /// How many of the `changes` were caused by runs of the graph.
    #[getter]
    fn moves(&self) -> u64 {
        self.graph.moves()
    }

    /// How often a tensor object was rebound away from memory that the graph captured: a new
    /// recording might use another block.
    #[getter]
    fn departures(&self) -> u32 {
        self.graph.departures()
    }

    /// `block_id` of the blocks from before the recording that the run which just failed has
    /// written.
    fn written(&self) -> Vec<usize> {
        self.graph.written()
    }

    /// A summary in a few lines of text.
    fn summary(&self) -> String {
        self.graph.summary()
    }

    /// Nodes, blocks, edges, totals, the nodes' origins by number, and the numbers of the argument
    /// and result blocks.
    fn to_json(&self) -> PyResult<String> {
        heap::expect(self.nodes().saturating_mul(JSON_BYTES_A_NODE))?;
        let mut graph = self.graph.graph().to_json();
        graph["arguments"] = self.graph.argument_blocks().into();
        graph["results"] = self.graph.result_blocks().into();
        graph["origins"] = serde_json::json!(self.graph.origins());
        Ok(graph.to_string())
    }

    fn __repr__(&self) -> String {
        let graph = self.graph.graph();
        let (nodes, arena) = (graph.ops().len(), self.graph.arena_bytes());
        format!("Graph({nodes} operations, arena of {arena} bytes)")
    }
}
