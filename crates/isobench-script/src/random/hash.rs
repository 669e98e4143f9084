//! The hash functions of expressions: FNV-1a and `MurmurHash2`, both over the eight bytes of an
//! integer.

/// FNV-1a, with the seed mixed into the offset basis.
///
/// Source: <http://www.isthe.com/chongo/tech/comp/fnv/>; pgbench manual, `hash_fnv1a`.
pub(crate) fn fnv1a(value: u64, seed: u64) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    value
        .to_le_bytes()
        .into_iter()
        .fold(OFFSET_BASIS ^ seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// `MurmurHash64A` of one eight-byte block.
///
/// Source: Austin Appleby, <https://sites.google.com/site/murmurhash/>; pgbench manual,
/// `hash_murmur2`.
pub(crate) fn murmur2(value: u64, seed: u64) -> u64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    const LENGTH: u64 = 8;
    let mix = |bits: u64| (bits ^ (bits >> SHIFT)).wrapping_mul(MULTIPLIER);
    let block = mix(value.wrapping_mul(MULTIPLIER));
    let hash = (seed ^ LENGTH.wrapping_mul(MULTIPLIER) ^ block).wrapping_mul(MULTIPLIER);
    let hash = mix(hash);
    hash ^ (hash >> SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_s_examples() {
        assert_eq!(murmur2(10, 5432).cast_signed(), -5_817_877_081_768_721_676);
        assert_eq!(fnv1a(10, 5432).cast_signed(), -7_793_829_335_365_542_153);
    }
}
