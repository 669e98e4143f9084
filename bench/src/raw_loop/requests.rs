//! The raw loop's requests: pgbench's two scripts, encoded once, with a ten-digit field for each
//! number.
//!
//! Numbers are padded with zeros, which both SQL and text parameters accept, so a request keeps its
//! length and a new number is written in place as ten bytes.

/// `-M`: the query mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// One `Query` message.
    Simple,
    /// `Bind`, `Execute` and `Sync` of a statement prepared before the clock starts.
    Prepared,
}

/// A script of pgbench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Workload {
    /// One `SELECT` by key.
    SelectOnly,
    /// Three updates, a select and an insert in a transaction block.
    TpcbLike,
}

/// The scripts; `:name` is a [`Variable`].
const SELECT_ONLY: &[&str] = &["SELECT abalance FROM pgbench_accounts WHERE aid = :aid;"];
const TPCB_LIKE: &[&str] = &[
    "BEGIN;",
    "UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;",
    "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;",
    "UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;",
    "UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;",
    "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);",
    "END;",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variable {
    Aid,
    Bid,
    Tid,
    Delta,
}

/// The names of the variables and the number of values of each at scale 1. (Only aid, bid and tid
/// grow with the scale; delta is never negative here, which makes no difference to the server.)
const VARIABLES: [(&str, Variable, u32, bool); 4] = [
    ("aid", Variable::Aid, 100_000, true),
    ("bid", Variable::Bid, 1, true),
    ("tid", Variable::Tid, 10, true),
    ("delta", Variable::Delta, 5_000, false),
];

const WIDTH: usize = 10;
const ZEROS: [u8; WIDTH] = [b'0'; WIDTH];

/// The messages that a client sends before the clock starts and while it runs.
#[derive(Clone, Debug)]
pub struct Requests {
    /// Prepares the statements; empty in simple mode.
    pub preparation: Vec<u8>,
    /// One for each statement of the script.
    pub requests: Vec<Request>,
}

/// An encoded request with the positions of its numbers.
#[derive(Clone, Debug)]
pub struct Request {
    bytes: Vec<u8>,
    fields: Vec<(usize, Variable)>,
}

impl Request {
    /// Writes new numbers to their positions; the bytes are ready to send.
    pub fn fill(&mut self, digits: &mut Digits) -> &[u8] {
        for (at, variable) in &self.fields {
            digits.write(*variable, &mut self.bytes[*at..*at + WIDTH]);
        }
        &self.bytes
    }
}

/// A source of numbers: xorshift, with the same seed in every run.
#[derive(Clone, Debug)]
pub struct Digits {
    state: u64,
    scale: u32,
}

impl Digits {
    /// Numbers for tables of this scale.
    pub fn new(scale: u32) -> Digits {
        Digits { state: 0x9E37_79B9_7F4A_7C15, scale: scale.max(1) }
    }

    fn write(&mut self, variable: Variable, place: &mut [u8]) {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let (_, _, values, scaled) = VARIABLES[variable as usize];
        let values = u64::from(values) * u64::from(if scaled { self.scale } else { 1 });
        let mut number = self.state % values + 1;
        for digit in place.iter_mut().rev() {
            *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
            number /= 10;
        }
    }
}

/// The start-up packet.
pub fn start_up(user: &str, database: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    with_length(&mut bytes, |bytes| {
        bytes.extend_from_slice(&[0, 3, 0, 0]);
        for text in ["user", user, "database", database] {
            bytes.extend_from_slice(text.as_bytes());
            bytes.push(0);
        }
        bytes.push(0);
    });
    bytes
}

/// Encodes a script.
pub fn script(workload: Workload, mode: Mode) -> Requests {
    let statements = match workload {
        Workload::SelectOnly => SELECT_ONLY,
        Workload::TpcbLike => TPCB_LIKE,
    };
    let mut preparation = Vec::new();
    let requests = match mode {
        Mode::Simple => statements.iter().map(|statement| simple(statement)).collect(),
        Mode::Prepared => statements
            .iter()
            .enumerate()
            .map(|(number, statement)| prepared(number, statement, &mut preparation))
            .collect(),
    };
    if !preparation.is_empty() {
        sync(&mut preparation);
    }
    Requests { preparation, requests }
}

fn simple(statement: &str) -> Request {
    let mut request = Request { bytes: Vec::new(), fields: Vec::new() };
    let Request { bytes, fields } = &mut request;
    message(bytes, b'Q', |bytes| {
        for part in parts(statement) {
            match part {
                Part::Text(text) => bytes.extend_from_slice(text.as_bytes()),
                Part::Variable(variable) => {
                    fields.push((bytes.len(), variable));
                    bytes.extend_from_slice(&ZEROS);
                }
            }
        }
        bytes.push(0);
    });
    request
}

fn prepared(number: usize, statement: &str, preparation: &mut Vec<u8>) -> Request {
    let name = format!("P_{number}\0");
    let mut sql = String::new();
    let mut variables = Vec::new();
    for part in parts(statement) {
        match part {
            Part::Text(text) => sql.push_str(text),
            Part::Variable(variable) => {
                variables.push(variable);
                sql.push('$');
                sql.push_str(&variables.len().to_string());
            }
        }
    }
    message(preparation, b'P', |bytes| {
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(sql.as_bytes());
        bytes.extend_from_slice(&[0, 0, 0]);
    });
    let mut request = Request { bytes: Vec::new(), fields: Vec::new() };
    let Request { bytes, fields } = &mut request;
    message(bytes, b'B', |bytes| {
        bytes.push(0);
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(&[0, 0]);
        bytes.extend_from_slice(&u16::try_from(variables.len()).unwrap_or(u16::MAX).to_be_bytes());
        for variable in variables {
            bytes.extend_from_slice(&[0, 0, 0, 10]);
            fields.push((bytes.len(), variable));
            bytes.extend_from_slice(&ZEROS);
        }
        bytes.extend_from_slice(&[0, 0]);
    });
    message(bytes, b'E', |bytes| bytes.extend_from_slice(&[0; 5]));
    sync(bytes);
    request
}

enum Part<'a> {
    Text(&'a str),
    Variable(Variable),
}

fn parts(statement: &str) -> Vec<Part<'_>> {
    let mut pieces = statement.split(':');
    let mut parts = vec![Part::Text(pieces.next().unwrap_or_default())];
    for piece in pieces {
        let known =
            VARIABLES.iter().find_map(|(name, variable, ..)| Some((piece.strip_prefix(name)?, *variable)));
        let (rest, variable) = known.map_or((piece, None), |(rest, variable)| (rest, Some(variable)));
        parts.extend(variable.map(Part::Variable));
        parts.push(Part::Text(rest));
    }
    parts
}

fn sync(bytes: &mut Vec<u8>) {
    message(bytes, b'S', |_| ());
}

fn message(bytes: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    bytes.push(kind);
    with_length(bytes, body);
}

fn with_length(bytes: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let at = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    body(bytes);
    let length = u32::try_from(bytes.len() - at).unwrap_or(u32::MAX);
    bytes[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_has_its_row() {
        for (number, (_, variable, ..)) in VARIABLES.iter().enumerate() {
            assert_eq!(*variable as usize, number);
        }
    }

    #[test]
    fn a_simple_request_is_the_statement_with_ten_digits() {
        let mut requests = script(Workload::SelectOnly, Mode::Simple);
        assert!(requests.preparation.is_empty());
        let bytes = requests.requests[0].fill(&mut Digits::new(1));
        let text = String::from_utf8_lossy(&bytes[5..]);
        let aid = text.strip_prefix("SELECT abalance FROM pgbench_accounts WHERE aid = ").unwrap();
        let aid: u32 = aid.strip_suffix(";\0").unwrap().parse().unwrap();
        assert!((1..=100_000).contains(&aid));
    }

    #[test]
    fn numbers_stay_in_range_and_change() {
        let mut digits = Digits::new(3);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            let mut place = ZEROS;
            digits.write(Variable::Bid, &mut place);
            seen.insert(std::str::from_utf8(&place).unwrap().parse::<u32>().unwrap());
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn a_prepared_request_has_one_place_per_parameter() {
        let requests = script(Workload::TpcbLike, Mode::Prepared);
        let fields: Vec<_> = requests.requests.iter().map(|request| request.fields.len()).collect();
        assert_eq!(fields, [0, 2, 1, 2, 2, 4, 0]);
        let text = String::from_utf8_lossy(&requests.preparation);
        assert!(text.contains("VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP);"));
    }
}
