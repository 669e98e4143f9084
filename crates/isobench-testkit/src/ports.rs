//! Addresses for tests that listen.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// The ports of this process begin somewhere above this one.
const FIRST: u16 = 15_000;

/// The ports at which those of processes begin, at most.
const BEGINNINGS: u32 = 15_000;

/// Addresses on loopback that are free. Their ports are below those that the system gives to connections,
/// one of which could otherwise be taken by somebody who tries to connect to it.
pub fn free_addresses(number: usize) -> Vec<String> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = FIRST + u16::try_from(std::process::id().wrapping_mul(31) % BEGINNINGS).unwrap_or_default();
    let ports = std::iter::repeat_with(|| first + NEXT.fetch_add(1, Ordering::Relaxed));
    let addresses = ports.map(|port| format!("127.0.0.1:{port}"));
    addresses.filter(|address| TcpListener::bind(&address[..]).is_ok()).take(number).collect()
}
