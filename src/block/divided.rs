//! Blocks whose elements are divided among processes: each has a share, and no memory for the whole.

use std::any::Any;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use super::Block;
use crate::error::{Error, Result, locked};

/// Where the elements of a divided block are. All blocks that a parameter has had share one of
/// these, so that what points to an earlier one finds the present elements.
pub struct Divided(Mutex<Place>);

/// A place in a unit, several blocks that are divided together.
#[derive(Clone)]
pub struct Place {
    /// This process's share of the unit.
    pub share: Arc<Block>,
    /// What gathers the unit, which lives as long as a block of it.
    pub unit: Arc<dyn Any + Send + Sync>,
    /// A number that no other unit has.
    pub number: u64,
    /// Which of the unit's blocks it is.
    pub index: usize,
}

impl Divided {
    /// The present place.
    pub fn place(&self) -> Place {
        locked(&self.0).clone()
    }

    fn set(&self, place: Place) {
        let mut now = locked(&self.0);
        let before = std::mem::replace(&mut *now, place);
        drop(now);
        drop(before); // after releasing the lock, since dropping may run code
    }
}

impl Block {
    /// Where its elements are, if they are divided.
    pub fn divided(&self) -> Option<&Divided> {
        self.divided.get().map(|found| &**found)
    }

    /// Leaves the block's elements to a unit. Its memory, if it has some, is not read again. Returns
    /// a block of its size without memory, which tensors are to be pointed to.
    pub fn divide(&self, place: &Place) -> Arc<Block> {
        let divided = self.divided.get_or_init(|| Arc::new(Divided(Mutex::new(place.clone()))));
        divided.set(place.clone());
        let made = Block::new(&self.device, self.bytes);
        made.account.store(self.account.load(Relaxed), Relaxed);
        made.divided.get_or_init(|| divided.clone());
        made
    }

    /// How many writes have been submitted to it; to the share of a divided block, of which the
    /// numbers of units are apart.
    pub fn version(&self) -> u64 {
        match self.divided() {
            None => self.version.load(Relaxed),
            Some(divided) => {
                let place = divided.place();
                (place.number << 40).wrapping_add(place.share.version())
            }
        }
    }

    /// Refuses to have memory for a block that is divided.
    ///
    /// # Errors
    /// [`Error::Graph`].
    pub fn check_whole(&self) -> Result<()> {
        crate::ensure!(
            self.divided.get().is_none(),
            Error::graph(
                "tensor",
                "its elements have been divided among ranks since; record the step again"
            )
        );
        Ok(())
    }
}
