//! A group of processes, and the thread that exchanges for this one.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, Builder, ThreadId};
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::buffers::Buffers;
use super::counted::Counted;
use super::reduce::Runner;
use super::{Exchange, Fault, Signature, Transport};
use crate::device::ending;
use crate::dtype::DType;
use crate::error::{Error, Result, locked};

/// How often a thread that waits looks after something else.
const PATIENCE: Duration = Duration::from_millis(50);

/// An exchange with this rank's elements, row-major.
#[derive(Clone, Debug)]
pub struct Request<B = Vec<u8>> {
    /// What is exchanged.
    pub exchange: Exchange,
    /// The type of the elements.
    pub dtype: DType,
    /// How many elements each rank gives, or receives where it gives none.
    pub count: usize,
    /// Those of this rank.
    pub bytes: B,
}

impl Request<Vec<&[u8]>> {
    /// The same with the bytes in one buffer; what is missing to `count` elements are zeros.
    fn joined(self, buffers: &Buffers) -> Request {
        let Request { exchange, dtype, count, bytes: parts } = self;
        let given = parts.iter().map(|part| part.len()).sum::<usize>();
        let mut bytes = buffers.take(if given > 0 { count * dtype.size() } else { 0 });
        let mut rest = &mut bytes[..];
        for part in parts {
            let (place, after) = rest.split_at_mut(part.len());
            place.copy_from_slice(part);
            rest = after;
        }
        rest.fill(0);
        Request { exchange, dtype, count, bytes }
    }
}

/// See the module's documentation. Dropped, it closes after what was started.
pub struct Group {
    number: u64,
    rank: usize,
    size: usize,
    /// The process that joined: one that it forks has no such thread.
    process: u32,
    /// Whether recorded steps of ranks are not compared.
    ignores_steps: AtomicBool,
    /// How many bytes this rank has given to others.
    sent: Arc<AtomicU64>,
    shared: Arc<Shared>,
}

/// What callers and the thread share.
struct Shared {
    /// Locked by whoever runs the next command; None once the group is closed.
    transport: Mutex<Option<Box<dyn Transport>>>,
    buffers: Buffers,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    commands: VecDeque<Command>,
    /// By slot: the exchanges that were started and not finished.
    results: FxHashMap<u32, Started>,
    /// How many were started.
    tickets: u64,
    /// The recorded step to which the next exchange belongs as its first.
    entered: Option<Arc<Signature>>,
    is_closed: bool,
    has_ended: bool,
}

struct Started {
    by: ThreadId,
    /// Tells it from those that were started in the same slot before.
    ticket: u64,
    /// None until it is done.
    result: Option<Result<Vec<u8>, Fault>>,
}

enum Command {
    Exchange { slot: u32, ticket: u64, request: Request, step: Option<Arc<Signature>> },
    Timeout(Duration),
    Fail(String),
}

impl Group {
    /// Starts the thread that owns the transport.
    pub(super) fn start(number: u64, transport: Box<dyn Transport>) -> Result<Arc<Group>> {
        let (rank, size) = (transport.rank(), transport.size());
        let sent = Arc::<AtomicU64>::default();
        let counted: Box<dyn Transport> = Box::new(Counted::new(transport, sent.clone()));
        let (transport, buffers) = (Mutex::new(Some(counted)), Buffers::default());
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { transport, buffers, state, changed });
        let own = shared.clone();
        let begun = Builder::new().name("singa_rs comm".into()).spawn(move || own.work());
        let refused = |error: std::io::Error| {
            Error::device("open a communicator", format!("its thread cannot be started: {error}"))
        };
        begun.map_err(refused)?;
        let (process, ignores_steps) = (process::id(), AtomicBool::new(false));
        Ok(Arc::new(Group { number, rank, size, process, ignores_steps, sent, shared }))
    }

    /// What [`super::group`] finds it by.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// This process's number.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of processes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// How many bytes this rank has given to others in exchanges that are done: each byte once for
    /// each rank that receives it.
    pub fn bytes_sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }

    /// Starts an exchange, whose result [`Group::finish`] waits for under the same slot. What was
    /// started there before, in a step that then failed, is forgotten.
    ///
    /// # Errors
    /// [`Error::Exchange`] if the group is closed, or another thread is using the slot.
    pub fn begin(&self, slot: u32, request: Request<Vec<&[u8]>>) -> Result<()> {
        self.check_process(&request.exchange)?;
        let request = request.joined(&self.shared.buffers);
        let mut state = self.shared.lock();
        let refused = |message: &str| Err(fault(&request.exchange, message.into()));
        if state.is_closed {
            return refused("the communicator is closed");
        }
        let by = thread::current().id();
        let is_busy = |one: &Started| one.by != by && one.result.is_none();
        if state.results.get(&slot).is_some_and(is_busy) {
            return refused("another thread is running the same exchange");
        }
        state.tickets += 1;
        let (ticket, step) = (state.tickets, state.entered.take());
        state.results.insert(slot, Started { by, ticket, result: None });
        state.commands.push_back(Command::Exchange { slot, ticket, request, step });
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Waits for the exchange that was started under this slot, of which `take` gets the result, so
    /// many bytes.
    ///
    /// # Errors
    /// [`Error::Exchange`] with what went wrong, or if nothing was started under this slot.
    pub fn finish(
        &self,
        slot: u32,
        exchange: &Exchange,
        want: usize,
        take: impl FnOnce(&[u8]),
    ) -> Result<()> {
        self.check_process(exchange)?;
        let mut state = self.shared.lock();
        let done = loop {
            let missing = || fault(exchange, "it was not started".into());
            let started = state.results.get_mut(&slot).ok_or_else(missing)?;
            if let Some(done) = started.result.take() {
                break done;
            }
            let left = || fault(exchange, "the communicator is closed".into());
            crate::ensure!(!state.has_ended, left());
            ending::check()?;
            state = self.shared.help_or_wait(state);
        };
        state.results.remove(&slot);
        drop(state);
        let bytes = done.map_err(|found| fault(exchange, found.to_string()))?;
        let message = || format!("it gave {} bytes, and {want} were expected", bytes.len());
        crate::ensure!(bytes.len() == want, fault(exchange, message()));
        take(&bytes);
        self.shared.buffers.give_back(bytes);
        Ok(())
    }

    /// Forgets what was started under this slot, so that another thread may use it.
    pub fn forget(&self, slot: u32) {
        if !self.is_forked() {
            self.shared.lock().results.remove(&slot);
        }
    }

    /// Says that a recorded step begins. Its first exchange fails on all ranks if another one begins
    /// a step that was recorded for equal arguments and does other operations.
    pub fn enter(&self, step: &Arc<Signature>) {
        if !self.ignores_steps.load(Relaxed) && !self.is_forked() {
            self.shared.lock().entered = Some(step.clone());
        }
    }

    /// From here on this rank may run other recorded steps than the others.
    pub fn ignore_steps(&self) {
        self.ignores_steps.store(true, Relaxed);
    }

    /// Sets the longest that an exchange waits for other ranks.
    pub fn set_timeout(&self, timeout: Duration) {
        self.command(Command::Timeout(timeout));
    }

    /// Tells the other ranks that this one has failed.
    pub fn fail(&self, text: &str) {
        self.command(Command::Fail(text.into()));
    }

    /// Ends the thread, after what was started. Nothing in a process that was forked.
    pub fn close(&self) {
        if self.is_forked() {
            return;
        }
        self.shared.close();
        let mut state = self.shared.lock();
        while !state.has_ended {
            state = self.shared.wait(state);
        }
    }

    /// Whether this process was forked from the one that joined. Its locks may be held for ever by
    /// threads that it does not have.
    fn is_forked(&self) -> bool {
        process::id() != self.process
    }

    fn check_process(&self, exchange: &Exchange) -> Result<()> {
        let forked = || "this process was forked from the one that joined the others";
        crate::ensure!(!self.is_forked(), fault(exchange, forked().into()));
        Ok(())
    }

    fn command(&self, command: Command) {
        if self.is_forked() {
            return;
        }
        self.shared.lock().commands.push_back(command);
        self.shared.changed.notify_all();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_forked() {
            self.shared.close();
        }
    }
}

impl Shared {
    fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Runs commands until the group is closed.
    fn work(&self) {
        while self.is_asked() {
            self.advance(&mut self.transport());
        }
        drop(self.transport().take());
        self.lock().has_ended = true;
        self.changed.notify_all();
    }

    /// Waits for a command; false after the last one of a closed group.
    fn is_asked(&self) -> bool {
        let mut state = self.lock();
        while state.commands.is_empty() && !state.is_closed {
            let (waited, time) =
                self.changed.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner);
            state = waited;
            if time.timed_out() {
                drop(state);
                // What it finds, the next exchange returns.
                drop(self.transport().as_mut().map(|transport| transport.idle()));
                state = self.lock();
            }
        }
        !state.commands.is_empty()
    }

    /// Runs the next command, if there is one.
    fn advance(&self, transport: &mut Option<Box<dyn Transport>>) {
        let Some(transport) = transport else { return };
        let command = self.lock().commands.pop_front();
        match command {
            None => {}
            Some(Command::Timeout(timeout)) => transport.set_timeout(timeout),
            Some(Command::Fail(text)) => transport.fail(&text),
            Some(Command::Exchange { slot, ticket, request, step }) => {
                let mut runner = Runner { transport: &mut **transport, buffers: &self.buffers };
                let done = catch_unwind(AssertUnwindSafe(|| runner.run(request, step.as_deref())));
                let panicked = |_| Err(Fault::System("the exchange panicked".into()));
                let done = done.unwrap_or_else(panicked);
                let mut state = self.lock();
                let started = state.results.get_mut(&slot);
                if let Some(started) = started.filter(|one| one.ticket == ticket) {
                    started.result = Some(done);
                }
                drop(state);
                self.changed.notify_all();
            }
        }
    }

    /// Runs the next command on this thread if nobody does, which spares waking the other one; else
    /// waits.
    fn help_or_wait<'a>(&'a self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        if state.commands.is_empty() {
            return self.wait(state);
        }
        // Others take the transport first, then the state: here it is only tried.
        let mut transport = match self.transport.try_lock() {
            Ok(transport) => transport,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return self.wait(state),
        };
        drop(state);
        self.advance(&mut transport);
        drop(transport);
        self.lock()
    }

    fn transport(&self) -> MutexGuard<'_, Option<Box<dyn Transport>>> {
        locked(&self.transport)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, PATIENCE);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

fn fault(exchange: &Exchange, message: String) -> Error {
    Error::Exchange { op: "exchange".into(), message: format!("{}: {message}", exchange.name()) }
}
