//! Regions on rayon's threads, for systems without libgomp.

use std::sync::{Arc, Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::region::Region;
use super::{Error, Result};

/// Runs a region on `threads` threads.
pub fn parallel(region: &Region, threads: usize) -> Result<()> {
    let parts = region.parts.min(threads);
    pool(threads)?.scope(|scope| {
        for thread in 0..parts {
            scope.spawn(move |_| region.run(thread, parts));
        }
    });
    Ok(())
}

/// The pool, rebuilt if the team's size has changed.
fn pool(threads: usize) -> Result<Arc<ThreadPool>> {
    static POOL: Mutex<Option<Arc<ThreadPool>>> = Mutex::new(None);
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pool) = pool.as_ref().filter(|p| p.current_num_threads() == threads) {
        return Ok(pool.clone());
    }
    let builder = ThreadPoolBuilder::new().num_threads(threads);
    let made = builder.thread_name(|i| format!("singa_rs {i}")).build().map_err(|error| {
        Error::Device { op: "parallel".into(), message: format!("cannot start threads: {error}") }
    })?;
    Ok(pool.insert(Arc::new(made)).clone())
}
