//! A temporary replication slot, and reading from it in bounded pieces.

use std::thread;
use std::time::{Duration, Instant};

use isobench_pgwire::{Connection, SqlState};

use super::assembly::Assembler;
use super::collector::Collector;
use super::error::WalError;
use super::test_decoding::Lines;
use super::transaction::WalTransaction;
use super::{WalLsn, WalPlugin, pgoutput, publication};
use crate::error::Error;
use crate::execute::query;

/// The number of messages after which the server ends a batch, at the end of a transaction. It
/// keeps a batch in a temporary file.
const BATCH: usize = 50_000;
/// The largest piece of a message in an answer, in bytes. It is sent in twice as many.
const PIECE: usize = 8 << 10;
/// The number of pieces in an answer, which thus has at most 32 MiB.
const PIECES: usize = 2_048;
/// The time between two looks at how far the log has been written.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Turns what a plugin gives into transactions.
#[derive(Debug)]
pub(crate) enum Decoder {
    /// The messages of `pgoutput`.
    Messages(Assembler),
    /// The lines of `test_decoding`.
    Lines(Lines),
}

impl Decoder {
    fn collector(&self) -> &Collector {
        match self {
            Decoder::Messages(assembler) => assembler.collector(),
            Decoder::Lines(lines) => lines.collector(),
        }
    }

    fn take(&mut self, message: &[u8]) -> Result<Option<WalTransaction>, WalError> {
        match self {
            Decoder::Messages(assembler) => assembler.take(pgoutput::decode(message)?),
            Decoder::Lines(lines) => lines.take(message),
        }
    }

    /// The query for the changes up to a place: as bytes, in `data`.
    fn changes(&self, slot: &str, upto: &WalLsn) -> String {
        let from = |function: &str, options: &str| {
            format!(
                "pg_catalog.{function}('{slot}', '{}', {BATCH}, {options}) WITH ORDINALITY AS change",
                upto.0
            )
        };
        match self {
            Decoder::Messages(_) => {
                from(
                    "pg_logical_slot_get_binary_changes",
                    &format!("'proto_version', '1', 'publication_names', '{}'", publication::NAME),
                ) + " (lsn, xid, data, number)"
            }
            // OFFSET keeps the server from converting a text once for each of its pieces.
            Decoder::Lines(_) => {
                from(
                    "pg_logical_slot_get_changes",
                    "'include-xids', 'on', 'include-timestamp', 'off', 'skip-empty-xacts', 'on'",
                ) + " (lsn, xid, text, number), \
                 LATERAL (SELECT pg_catalog.convert_to(text, 'UTF8') AS data OFFSET 0) AS converted"
            }
        }
    }
}

/// Makes a temporary slot, which ends with the session, and returns its name.
///
/// # Errors
/// [`WalError::Open`], [`WalError::NotAllowed`], [`WalError::NoSlots`], [`WalError::NoPlugin`], or an
/// error of the server or the connection.
pub(crate) fn make(conn: &mut Connection, plugin: WalPlugin, patience: Duration) -> Result<String, WalError> {
    // Names are unique in the whole server, as are numbers of sessions.
    let create = format!(
        "SELECT slot_name FROM pg_catalog.pg_create_logical_replication_slot(\
         'isobench_wal_' || pg_catalog.pg_backend_pid(), '{}', temporary => true)",
        plugin.name()
    );
    let create = create.as_str();
    let limit = format!("SET statement_timeout = {}", patience.as_millis().clamp(1, 2_147_483_647));
    conn.execute(&limit).map_err(|error| Error::of(error, &limit))?;
    let name = conn.value(create).map_err(|error| Error::of(error, create));
    let name = name.map_err(|error| match error.code() {
        Some(SqlState::QUERY_CANCELED) => WalError::Open { patience },
        Some(SqlState::CONFIGURATION_LIMIT_EXCEEDED) => WalError::NoSlots(error.to_string()),
        Some(SqlState::UNDEFINED_FILE) => WalError::NoPlugin { plugin: plugin.name(), error },
        _ => WalError::of_rights(plugin, error),
    })?;
    conn.execute("SET statement_timeout = 0").map_err(Error::from)?;
    name.ok_or_else(|| answer(create, "no name"))
}

/// Makes sure that everything committed so far is in the log, even if its sessions didn't wait for
/// that (`synchronous_commit`), and returns the place behind it.
///
/// On a server of our own that takes a message in the log. Other readers of a user's log might pass it
/// on, so there the server's writer is waited for, which a commit wakes up.
///
/// # Errors
/// [`WalError::Unwritten`], or an error of the server or the connection.
pub(crate) fn end_of_log(
    conn: &mut Connection,
    plugin: WalPlugin,
    patience: Duration,
) -> Result<WalLsn, WalError> {
    let place = "SELECT pg_catalog.pg_current_wal_insert_lsn()";
    let mark = match plugin {
        // This transaction's commit is flushed, and everything before it.
        WalPlugin::Pgoutput => "SELECT pg_catalog.pg_logical_emit_message(true, 'isobench', '')",
        // The commit of a transaction with a number lies behind the place that is asked for in it.
        WalPlugin::TestDecoding => "BEGIN; SELECT pg_catalog.pg_current_xact_id()",
    };
    conn.execute(mark).map_err(|error| Error::of(error, mark))?;
    let lsn = conn.value(place).map_err(|error| Error::of(error, place))?;
    let lsn = lsn.map(WalLsn).ok_or_else(|| answer(place, "nothing"))?;
    if plugin == WalPlugin::TestDecoding {
        conn.execute("COMMIT").map_err(Error::from)?;
        let written = format!("SELECT pg_catalog.pg_current_wal_flush_lsn() >= '{}'", lsn.0);
        let begun = Instant::now();
        while conn.value(&written).map_err(|error| Error::of(error, &written))?.as_deref() != Some("t") {
            if begun.elapsed() > patience {
                return Err(WalError::Unwritten { patience });
            }
            thread::sleep(LOOK_EVERY);
        }
    }
    Ok(lsn)
}

/// Reads transactions up to a place, and passes each of them on.
///
/// # Errors
/// The log can't be decoded, a transaction is too large, or an error of the server or the
/// connection. What was read is lost then.
pub(crate) fn read(
    conn: &mut Connection,
    slot: &str,
    upto: &WalLsn,
    decoder: &mut Decoder,
    take: &mut dyn FnMut(WalTransaction),
) -> Result<(), WalError> {
    while read_batch(conn, slot, upto, decoder, take)? >= BATCH {}
    Ok(())
}

/// Reads a batch, and returns its number of messages.
fn read_batch(
    conn: &mut Connection,
    slot: &str,
    upto: &WalLsn,
    decoder: &mut Decoder,
    take: &mut dyn FnMut(WalTransaction),
) -> Result<usize, WalError> {
    // The server gives a message as one value of up to 1 GB, so it is cut into pieces there. The
    // function is executed once, at the first FETCH.
    let declare = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY; \
         DECLARE isobench_wal NO SCROLL CURSOR FOR \
         SELECT number, start, length(data), encode(substring(data FROM start + 1 FOR {PIECE}), 'hex') \
         FROM {}, pg_catalog.generate_series(0, greatest(length(data) - 1, 0), {PIECE}) AS piece (start)",
        decoder.changes(slot, upto)
    );
    conn.execute(&declare).map_err(|error| Error::of(error, &declare))?;
    let fetch = format!("FETCH {PIECES} FROM isobench_wal");
    let mut messages = Messages::default();
    loop {
        let rows = query(conn, &fetch)?.rows;
        for row in &rows {
            let Some(message) = messages.take(row, decoder.collector().limit())? else { continue };
            if let Some(transaction) = decoder.take(message)? {
                take(transaction);
            }
        }
        if rows.len() < PIECES {
            break;
        }
    }
    conn.execute("COMMIT").map_err(Error::from)?;
    messages.at_rest()?;
    decoder.collector().at_rest()?;
    Ok(messages.count)
}

/// Joins pieces to messages.
#[derive(Debug, Default)]
struct Messages {
    /// The number of messages that have begun.
    count: usize,
    /// The length of the current one.
    length: usize,
    /// What has come of it.
    bytes: Vec<u8>,
}

impl Messages {
    /// Takes a piece: the number of its message from 1, its place in it, the message's length, and
    /// its bytes as hexadecimal digits. Returns a message when its last piece has come.
    fn take(&mut self, row: &[Option<String>], limit: usize) -> Result<Option<&[u8]>, WalError> {
        let [Some(number), Some(start), Some(length), Some(digits)] = row else {
            return Err(answer("FETCH", "an incomplete row"));
        };
        let int = |text: &String| text.parse::<usize>().map_err(|_| answer("FETCH", text));
        let (number, start, length) = (int(number)?, int(start)?, int(length)?);
        if start == 0 {
            self.at_rest()?;
            self.bytes.clear();
            self.length = length;
            self.count += 1;
        }
        if (number, start, length) != (self.count, self.bytes.len(), self.length) {
            return Err(WalError::Disorder("pieces of messages are out of order"));
        }
        if length > limit {
            return Err(WalError::TooLarge { xid: None, limit });
        }
        let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
        let bytes: Option<Vec<u8>> = pairs.iter().map(|pair| byte(*pair)).collect();
        self.bytes.extend(bytes.filter(|_| rest.is_empty()).ok_or_else(|| answer("FETCH", digits))?);
        Ok((self.bytes.len() == self.length).then_some(&self.bytes))
    }

    fn at_rest(&self) -> Result<(), WalError> {
        if self.bytes.len() == self.length { Ok(()) } else { Err(WalError::Disorder("a message has no end")) }
    }
}

fn byte(digits: [u8; 2]) -> Option<u8> {
    let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
    u8::try_from(high? * 16 + low?).ok()
}

fn answer(statement: &str, got: &str) -> WalError {
    /// The most characters shown of an answer.
    const SHOWN: usize = 100;
    let got = got.chars().take(SHOWN).collect();
    WalError::Server(Error::Answer { statement: statement.to_owned(), got })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(messages: &mut Messages, piece: [&str; 4]) -> Result<Option<Vec<u8>>, WalError> {
        let row = piece.map(|cell| Some(cell.to_owned()));
        messages.take(&row, 10).map(|message| message.map(<[u8]>::to_vec))
    }

    #[test]
    fn pieces_become_messages() {
        let mut messages = Messages::default();
        assert_eq!(feed(&mut messages, ["1", "0", "3", "00fF"]).unwrap(), None);
        assert!(messages.at_rest().is_err());
        assert_eq!(feed(&mut messages, ["1", "2", "3", "0a"]).unwrap(), Some(vec![0, 255, 10]));
        assert_eq!(feed(&mut messages, ["2", "0", "1", "01"]).unwrap(), Some(vec![1]));
        assert!(messages.at_rest().is_ok());
        assert_eq!(messages.count, 2);
    }

    #[test]
    fn other_pieces_are_errors() {
        for (first, second, expected) in [
            (["1", "0", "3", "00"], ["2", "0", "1", "00"], "a message has no end"),
            (["1", "0", "3", "00"], ["1", "2", "3", "00"], "out of order"),
            (["1", "0", "3", "00"], ["1", "1", "2", "00"], "out of order"),
            (["1", "0", "1", "00"], ["3", "0", "1", "00"], "out of order"),
            (["1", "0", "1", "00"], ["2", "0", "11", "00"], "more than the 10 bytes"),
            (["1", "0", "1", "00"], ["2", "0", "1", "0x"], "unexpected answer"),
            (["1", "0", "1", "00"], ["2", "0", "1", "000"], "unexpected answer"),
            (["1", "0", "1", "00"], ["2", "-1", "1", "00"], "unexpected answer"),
        ] {
            let mut messages = Messages::default();
            feed(&mut messages, first).unwrap();
            let error = feed(&mut messages, second).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let error = Messages::default().take(&[None], 10).unwrap_err().to_string();
        assert!(error.contains("incomplete"), "{error}");
    }
}
