//! The checksum of what is saved.

/// A hash that is the same everywhere and forever (64-bit FNV-1a). Every change of a single byte
/// changes it.
pub struct Checksum(u64);

impl Default for Checksum {
    fn default() -> Self {
        Checksum(0xcbf2_9ce4_8422_2325)
    }
}

impl Checksum {
    /// The checksum of these bytes.
    pub fn of(bytes: &[u8]) -> [u8; 8] {
        let mut sum = Checksum::default();
        sum.add(bytes);
        sum.bytes()
    }

    /// Adds bytes that follow the earlier ones.
    pub fn add(&mut self, bytes: &[u8]) {
        let mix = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        self.0 = bytes.iter().fold(self.0, mix);
    }

    /// The checksum of all bytes added, as it is written.
    pub fn bytes(&self) -> [u8; 8] {
        self.0.to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::Checksum;

    #[test]
    fn it_is_fnv_1a() {
        assert_eq!(Checksum::of(b""), 0xcbf2_9ce4_8422_2325u64.to_le_bytes());
        assert_eq!(Checksum::of(b"foobar"), 0x8594_4171_f739_67e8u64.to_le_bytes());
        let mut parts = Checksum::default();
        ["foo", "", "bar"].iter().for_each(|part| parts.add(part.as_bytes()));
        assert_eq!(parts.bytes(), Checksum::of(b"foobar"));
    }
}
