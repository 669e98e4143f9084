//! A result file that is cut, damaged or of a newer format: read as far as it goes, with a sentence
//! for whatever is missing.
//!
//! [`Document::from_json`] stays strict, so that nobody takes half a result for a whole one by
//! accident. Not here: reading JSON that ends in the middle (`partial`).

mod partial;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::document::{
    Cell, Client, Document, DocumentError, FORMAT, FORMAT_VERSION, Plan, Round, Server, migrate,
};
use crate::numbers::counted;
use crate::summarise::summarise;
use partial::Partial;

/// The document, its cells, a cell, its rounds: what is kept though it isn't whole. A round is
/// whole or is left out.
const KEPT_DEPTH: usize = 4;

/// Parts of a round without which its counts are still the ones that were measured.
static SPARE_PARTS: [&str; 8] =
    ["order", "verdict", "client_cpu_s", "connect_s", "warmup", "series", "client", "server"];

/// Reads a result document as far as it goes, and says what is missing, a sentence each; none if it
/// is whole.
///
/// If anything is missing, the sentences stand in `warnings`, too, so that every rendering shows
/// them, and the document is not `complete`. Rounds are the ones that were saved, but for parts of
/// which a sentence says that they are missing.
///
/// # Errors
/// [`DocumentError`], if the text isn't the begin of a result at all.
pub fn rescue(text: &str) -> Result<(Document, Vec<String>), DocumentError> {
    let strict = match Document::from_json(text) {
        Ok(document) => return Ok((document, Vec::new())),
        Err(error @ DocumentError::NotAResult { .. }) => return Err(error),
        Err(error) => error,
    };
    let Partial { value, broken } = partial::read(text, KEPT_DEPTH);
    let found = match (value, broken.as_ref()) {
        (Some(Value::Object(found)), _) if found.get("format") == Some(&json!(FORMAT)) => found,
        (_, Some(_)) => return Err(broken.map_or_else(not_a_result, DocumentError::Malformed)),
        (_, None) => return Err(not_a_result()),
    };
    let mut missing = Missing::default();
    if let Some(error) = &broken {
        missing.cut(error);
    }
    let document = missing.document(found, &strict);
    Ok((document, missing.sentences))
}

fn not_a_result() -> DocumentError {
    DocumentError::NotAResult { found: "missing".to_owned() }
}

/// What is missing, so far.
#[derive(Default)]
struct Missing {
    sentences: Vec<String>,
    /// Why the document isn't complete, in few words.
    reasons: Vec<&'static str>,
}

impl Missing {
    fn say(&mut self, sentence: impl Into<String>) {
        self.sentences.push(sentence.into());
    }

    /// Says what can't be read, which is damage unless a better reason is known.
    fn lose(&mut self, sentence: impl Into<String>) {
        if self.reasons.is_empty() {
            self.reasons.push("the file is damaged");
        }
        self.say(sentence);
    }

    fn cut(&mut self, error: &serde_json::Error) {
        if error.is_eof() {
            self.reasons.push("the file is truncated");
            self.say(format!(
                "The file is truncated: it ends in line {}. What came after is lost.",
                error.line()
            ));
        } else {
            self.reasons.push("the file is damaged");
            self.say(format!("The file is damaged ({error}). What comes after that place is left out."));
        }
    }

    fn document(&mut self, found: Map<String, Value>, strict: &DocumentError) -> Document {
        let mut found = self.present(found);
        let cells = found.remove("cells");
        let empty = || Document::new(Server::default(), Client::default(), Plan::default());
        let mut base = serde_json::to_value(empty()).unwrap_or_default();
        for (name, value, error) in merge::<Document>(&mut base, found) {
            let refused = match (name.as_str(), value) {
                ("server", Value::Object(members)) => merge::<Server>(&mut base["server"], members),
                ("client", Value::Object(members)) => merge::<Client>(&mut base["client"], members),
                ("plan", Value::Object(members)) => merge::<Plan>(&mut base["plan"], members),
                _ => {
                    self.lose(format!("`{name}` can't be read: {error}."));
                    continue;
                }
            };
            for (member, _, error) in refused {
                self.lose(format!("`{name}.{member}` can't be read: {error}."));
            }
        }
        // What `merge` leaves can be read.
        let mut document = serde_json::from_value(base).unwrap_or_else(|_| empty());
        document.format_version = FORMAT_VERSION;
        self.cells(cells, &mut document);
        self.absent(&document);
        if self.sentences.is_empty() {
            // What can't do without a member got the default.
            self.lose(format!("Something is missing: {strict}."));
        }
        self.mark(&mut document);
        summarise(&mut document);
        document
    }

    /// Brings a document of an older format to the present one; of a newer one, takes what is
    /// known.
    fn present(&mut self, found: Map<String, Value>) -> Map<String, Value> {
        let version = found.get("format_version").and_then(Value::as_u64).unwrap_or(1);
        if version > u64::from(FORMAT_VERSION) {
            self.reasons.push("a newer isobench wrote it");
            self.say(format!(
                "The file has format version {version}, but this isobench knows versions up to {FORMAT_VERSION}: what it doesn't \
                 know is left out. Use the isobench that wrote it or a newer one."
            ));
            return found;
        }
        match migrate::to_present(Value::Object(found), version) {
            Value::Object(found) => found,
            _ => Map::new(),
        }
    }

    fn cells(&mut self, cells: Option<Value>, document: &mut Document) {
        match cells {
            Some(Value::Array(cells)) => {
                for (index, cell) in cells.into_iter().enumerate() {
                    document.cells.extend(self.cell(index + 1, cell));
                }
            }
            Some(_) => self.lose("`cells` can't be read: it is no list."),
            None => {}
        }
    }

    fn cell(&mut self, place: usize, mut value: Value) -> Option<Cell> {
        let rounds = match value.get_mut("rounds").map(Value::take) {
            Some(Value::Array(rounds)) => rounds,
            _ => Vec::new(),
        };
        if let Some(members) = value.as_object_mut() {
            members.insert("rounds".to_owned(), json!([]));
            // It is computed from the rounds, and those may have become fewer.
            members.remove("summary");
        }
        let mut cell: Cell = match serde_json::from_value(value) {
            Ok(cell) => cell,
            Err(error) => {
                let rounds = counted(rounds.len() as u64, "round");
                self.lose(format!("Cell {place}, of which there is {rounds}, can't be read: {error}."));
                return None;
            }
        };
        let name = format!("{}, {}", cell.level.name(), counted(cell.clients.into(), "client"));
        for (index, round) in rounds.into_iter().enumerate() {
            cell.rounds.extend(self.round(&name, index + 1, round));
        }
        Some(cell)
    }

    fn round(&mut self, cell: &str, place: usize, mut value: Value) -> Option<Round> {
        if let Ok(round) = serde_json::from_value(value.clone()) {
            return Some(round);
        }
        let members = value.as_object_mut().into_iter();
        let parts: Map<String, Value> = members
            .flat_map(|members| SPARE_PARTS.iter().filter_map(|name| members.remove_entry(*name)))
            .collect();
        if let Err(error) = serde_json::from_value::<Round>(value.clone()) {
            self.lose(format!("{cell}: measurement {place} can't be read and is left out: {error}."));
            return None;
        }
        for (part, _, error) in merge::<Round>(&mut value, parts) {
            self.lose(format!(
                "{cell}: `{part}` of measurement {place} can't be read and is left out: {error}."
            ));
        }
        serde_json::from_value(value).ok()
    }

    /// Levels that were planned and have no cell.
    fn absent(&mut self, document: &Document) {
        let has = |level| document.cells.iter().any(|cell| cell.level.requested == Some(level));
        let absent: Vec<&str> =
            document.plan.levels().iter().filter(|level| !has(**level)).map(|level| level.name()).collect();
        if !absent.is_empty() {
            self.say(format!("Nothing is left of what was measured at {}.", absent.join(", ")));
        }
    }

    fn mark(&mut self, document: &mut Document) {
        document.complete = false;
        let before = document.incomplete_reason.take().into_iter();
        let reasons: Vec<String> = before.chain(self.reasons.iter().map(ToString::to_string)).collect();
        document.incomplete_reason = Some(reasons.join("; "));
        document.warnings.extend(self.sentences.iter().cloned());
    }
}

/// Sets the members of an object one by one, as long as it can be read as a `T`. Returns those with
/// which it can't.
fn merge<T: DeserializeOwned>(
    base: &mut Value,
    members: Map<String, Value>,
) -> Vec<(String, Value, serde_json::Error)> {
    let mut refused = Vec::new();
    for (name, value) in members {
        let mut with = base.clone();
        with[&name] = value.clone();
        match serde_json::from_value::<T>(with.clone()) {
            Ok(_) => *base = with,
            Err(error) => refused.push((name, value, error)),
        }
    }
    refused
}
