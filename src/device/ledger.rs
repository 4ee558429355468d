//! The memory ledger of a device: how many bytes are held, and for what.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The purpose that memory is held for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Account {
    /// Trainable tensors.
    Parameters,
    /// Optimizer moments, running averages, generator states.
    States,
    /// The planned memory of graphs.
    Arena,
    /// Workspace of running kernels.
    Scratch,
    /// Cached results that graphs compute from tensors that rarely change.
    Constants,
    /// Every other live tensor: activations, gradients, results of calls.
    Results,
    /// Copies of arguments on their way to a device.
    Staging,
    /// Freed memory kept for the next allocation.
    Pool,
    /// Prepared kernels.
    Kernels,
}

impl Account {
    /// Every account, in the order in which they are reported.
    pub const ALL: [Account; 9] = [
        Account::Parameters,
        Account::States,
        Account::Arena,
        Account::Scratch,
        Account::Constants,
        Account::Results,
        Account::Staging,
        Account::Pool,
        Account::Kernels,
    ];

    /// The account's name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Account::Parameters => "parameters",
            Account::States => "states",
            Account::Arena => "arena",
            Account::Scratch => "scratch",
            Account::Constants => "constants",
            Account::Results => "results",
            Account::Staging => "staging",
            Account::Pool => "pool",
            Account::Kernels => "kernels",
        }
    }

    /// Whether its memory could be released at once: such memory is reserved, not in use.
    const fn is_cache(self) -> bool {
        matches!(self, Account::Pool | Account::Kernels)
    }

    /// The account with this number (the inverse of `as u8`).
    pub fn from_index(index: u8) -> Account {
        Account::ALL[index as usize]
    }
}

/// Bytes per account, and the peak of the bytes in use: all accounts but the pool and the kernels.
#[derive(Default, Debug)]
pub struct Ledger {
    accounts: [AtomicUsize; Account::ALL.len()],
    in_use: AtomicUsize,
    peak: AtomicUsize,
}

impl Ledger {
    /// Adds `bytes` to `account`.
    pub fn charge(&self, account: Account, bytes: usize) {
        self.accounts[account as usize].fetch_add(bytes, Relaxed);
        if !account.is_cache() {
            let now = self.in_use.fetch_add(bytes, Relaxed) + bytes;
            if now > self.peak.load(Relaxed) {
                self.peak.fetch_max(now, Relaxed);
            }
        }
    }

    /// Subtracts `bytes` from `account`.
    pub fn release(&self, account: Account, bytes: usize) {
        self.accounts[account as usize].fetch_sub(bytes, Relaxed);
        if !account.is_cache() {
            self.in_use.fetch_sub(bytes, Relaxed);
        }
    }

    /// Bytes in one account.
    pub fn balance(&self, account: Account) -> usize {
        self.accounts[account as usize].load(Relaxed)
    }

    /// Bytes in all accounts but the pool and the kernels.
    pub fn in_use(&self) -> usize {
        self.in_use.load(Relaxed)
    }

    /// Bytes in all accounts.
    pub fn reserved(&self) -> usize {
        self.in_use() + self.balance(Account::Pool) + self.balance(Account::Kernels)
    }

    /// The highest [`Ledger::in_use`] since the last [`Ledger::reset_peak`].
    pub fn peak(&self) -> usize {
        self.peak.load(Relaxed)
    }

    /// Starts a new measurement of the peak.
    pub fn reset_peak(&self) {
        self.peak.store(self.in_use(), Relaxed);
    }
}
