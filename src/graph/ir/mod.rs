//! What is recorded: queues of operations, drafts of them, and their serialised form.

pub mod checksum;
pub mod draft;
pub mod export;
pub mod origin;
pub mod queue;
pub(crate) mod saved;
