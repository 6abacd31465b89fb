//! A small hash that is the same on every machine and in every version.

/// FNV-1a of 64 bits: every single changed byte changes it.
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Returns the shard of a text, below the number of shards; stable everywhere.
pub fn shard(text: &str, shards: u32) -> u32 {
    // The remainder of a u32 fits one.
    (fnv1a(text.as_bytes()) % u64::from(shards.max(1))) as u32
}
