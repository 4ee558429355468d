//! Helpers for tests.

/// A hash of some texts, the same on every machine.
pub fn fingerprint(texts: impl IntoIterator<Item = String>) -> u64 {
    // FNV-1a (Fowler, Noll, Vo).
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    texts.into_iter().flat_map(String::into_bytes).fold(0xcbf2_9ce4_8422_2325, mix)
}
