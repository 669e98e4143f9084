//! Random numbers: the generator, its distributions, the streams of a run, hashes and permutations.

mod distribution;
mod hash;
mod permute;
mod prng;
mod streams;

pub(crate) use distribution::check_range;
pub(crate) use hash::{fnv1a, murmur2};
pub(crate) use permute::permute;
pub use prng::Prng;
pub use streams::Streams;
