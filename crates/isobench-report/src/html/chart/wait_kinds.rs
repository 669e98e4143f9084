//! The hatching and colour of each wait event: the same in every figure and in every report.
//!
//! Not here: what is drawn of them.

use super::legend::LegendEntry;

/// What sessions do on the server, as far as it has a hatching of its own.
struct WaitKind {
    /// Its name in legends.
    name: &'static str,
    /// The types of wait events, as the server names them.
    types: &'static [&'static str],
    /// The event; empty for all of the types that no other kind has.
    event: &'static str,
}

/// The first hatching of waits; those before are outcomes.
const FIRST: usize = 5;

/// The kinds in the order of their hatchings, which is that in which they are stacked: work first,
/// idle last. Source: PostgreSQL manual, "Wait Event Types".
static KINDS: [WaitKind; 9] = [
    WaitKind { name: "working (CPU)", types: &["CPU"], event: "" },
    WaitKind { name: "waiting for the client (Client)", types: &["Client"], event: "" },
    WaitKind { name: "Lock/transactionid", types: &["Lock"], event: "transactionid" },
    WaitKind { name: "Lock/tuple", types: &["Lock"], event: "tuple" },
    WaitKind { name: "other locks (Lock)", types: &["Lock"], event: "" },
    WaitKind { name: "lightweight locks (LWLock)", types: &["LWLock"], event: "" },
    WaitKind { name: "disk (IO)", types: &["IO"], event: "" },
    WaitKind { name: "other waits", types: &[], event: "" },
    WaitKind { name: "idle", types: &["idle"], event: "" },
];

/// The place of what no other kind has.
const REST: usize = 7;

/// All hatchings of waits, in the order in which they are stacked.
pub fn order() -> impl Iterator<Item = usize> {
    FIRST..FIRST + KINDS.len()
}

/// The hatching of an event.
pub fn kind_of(kind: &str, event: &str) -> usize {
    let of_type = |known: &WaitKind| known.types.contains(&kind);
    let exact = KINDS.iter().position(|known| of_type(known) && known.event == event);
    let any = || KINDS.iter().position(|known| of_type(known) && known.event.is_empty());
    FIRST + exact.or_else(any).unwrap_or(REST)
}

/// The meaning of a hatching.
pub fn meaning(kind: usize) -> &'static str {
    kind.checked_sub(FIRST).and_then(|place| KINDS.get(place)).map_or("", |known| known.name)
}

/// The legend of these hatchings, in the order in which they are stacked.
pub fn entries(shown: &[usize]) -> Vec<LegendEntry> {
    let used = order().filter(|kind| shown.contains(kind));
    used.map(|kind| LegendEntry { kind, name: meaning(kind).to_owned(), meaning: String::new() }).collect()
}

/// "Lock/tuple", or the type alone where it has no events.
pub fn name_of(kind: &str, event: &str) -> String {
    match (kind, event) {
        ("CPU", _) => meaning(FIRST).to_owned(),
        (kind, "") => kind.to_owned(),
        (kind, event) => format!("{kind}/{event}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_the_same_hatching_whatever_else_was_seen() {
        for (kind, event, name) in [
            ("CPU", "", "working (CPU)"),
            ("Client", "ClientRead", "waiting for the client (Client)"),
            ("Lock", "transactionid", "Lock/transactionid"),
            ("Lock", "tuple", "Lock/tuple"),
            ("Lock", "relation", "other locks (Lock)"),
            ("LWLock", "WALWrite", "lightweight locks (LWLock)"),
            ("IO", "WalSync", "disk (IO)"),
            ("IPC", "ProcarrayGroupUpdate", "other waits"),
            ("Timeout", "SpinDelay", "other waits"),
            ("idle", "", "idle"),
            ("", "", "other waits"),
        ] {
            assert_eq!(meaning(kind_of(kind, event)), name, "{kind}/{event}");
        }
    }
}
