//! Text in shared memory.

use std::fmt;

use crate::comm::fault::shorten;

/// The first `N` bytes of a text.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Text<const N: usize> {
    length: u32,
    bytes: [u8; N],
}

impl<const N: usize> From<&str> for Text<N> {
    fn from(text: &str) -> Self {
        let (text, mut bytes) = (shorten(text, N), [0; N]);
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Text { length: text.len() as u32, bytes }
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = (self.length as usize).min(N);
        f.write_str(&String::from_utf8_lossy(&self.bytes[..length]))
    }
}

#[cfg(test)]
mod tests {
    use super::Text;

    #[test]
    fn texts_are_cut_between_characters() {
        let cut = |text: &str| Text::<5>::from(text).to_string();
        assert_eq!(["", "abc", "abcdef", "abcdé"].map(cut), ["", "abc", "abcde", "abcd"]);
    }
}
