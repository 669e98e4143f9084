//! Lines, read.

use std::io::{self, BufRead};

use serde::Deserialize;

use crate::record::{Column, FORMAT, Header, Record, Statement};

/// Why a capture can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Reading failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is something else.
    #[error("this is no capture: its first line isn't a header that isobench record has written")]
    NoCapture,
    /// The format is another one.
    #[error(
        "the capture has format {0}, but this isobench reads format {FORMAT}: use the isobench that recorded it"
    )]
    Format(u32),
    /// A line isn't as it should be, and it isn't the last one.
    #[error("line {line}: {why}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What is wrong.
        why: String,
    },
}

/// Reads a capture, record by record.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    header: Header,
    texts: Vec<String>,
    columns: Vec<Vec<Column>>,
    line: u64,
    buffer: Vec<u8>,
    ended: bool,
}

/// A line after the first one, read.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Numbered {
    Text { number: u32, sql: String },
    Columns { number: u32, columns: Vec<Column> },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Numbered(Numbered),
    Record(Record),
}

/// Just the version, which any format has.
#[derive(Deserialize)]
struct Version {
    isobench_capture: u32,
}

impl<R: BufRead> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// Reading fails, the file is no capture, or it has another format.
    pub fn begin(mut input: R) -> Result<Reader<R>, ReadError> {
        let mut buffer = Vec::new();
        input.read_until(b'\n', &mut buffer)?;
        let version: Version = serde_json::from_slice(&buffer).map_err(|_| ReadError::NoCapture)?;
        if version.isobench_capture != FORMAT {
            return Err(ReadError::Format(version.isobench_capture));
        }
        let header = serde_json::from_slice(&buffer)
            .map_err(|error| ReadError::Line { line: 1, why: error.to_string() })?;
        Ok(Reader { input, header, texts: Vec::new(), columns: Vec::new(), line: 1, buffer, ended: false })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The next record; `None` at the end, or before a last line that breaks off.
    ///
    /// # Errors
    /// Reading fails, or a line isn't as it should be.
    pub fn next_record(&mut self) -> Result<Option<Record>, ReadError> {
        loop {
            self.buffer.clear();
            self.input.read_until(b'\n', &mut self.buffer)?;
            if self.buffer.last() != Some(&b'\n') {
                return Ok(None);
            }
            self.line += 1;
            let line = self.line;
            let wrong = |why: String| ReadError::Line { line, why };
            let content: Line =
                serde_json::from_slice(&self.buffer).map_err(|error| wrong(error.to_string()))?;
            let unknown = |what: &str, number: u32| wrong(format!("{what} {number} comes out of order"));
            match content {
                Line::Numbered(Numbered::Text { number, sql }) => {
                    if number as usize != self.texts.len() {
                        return Err(unknown("text", number));
                    }
                    self.texts.push(sql);
                }
                Line::Numbered(Numbered::Columns { number, columns }) => {
                    if number as usize != self.columns.len() {
                        return Err(unknown("description", number));
                    }
                    self.columns.push(columns);
                }
                Line::Record(record) => {
                    if let Record::Statement(statement) = &record {
                        self.require_known(statement)
                            .map_err(|(what, number)| wrong(format!("{what} {number} isn't there")))?;
                    }
                    self.ended = matches!(record, Record::Ended(_));
                    return Ok(Some(record));
                }
            }
        }
    }

    /// The number of the line of the last record, from 1; the header's is the first.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// A text, by a number that a record has.
    ///
    /// # Panics
    /// If no record that was read has this number.
    pub fn text(&self, number: u32) -> &str {
        &self.texts[number as usize]
    }

    /// The columns of an answer, by a number that a record has.
    ///
    /// # Panics
    /// If no record that was read has this number.
    pub fn columns(&self, number: u32) -> &[Column] {
        &self.columns[number as usize]
    }

    /// True if the last record was the one that ends a capture; after the last record, false means that
    /// the file breaks off.
    pub fn ended(&self) -> bool {
        self.ended
    }

    fn require_known(&self, statement: &Statement) -> Result<(), (&'static str, u32)> {
        if statement.text as usize >= self.texts.len() {
            return Err(("text", statement.text));
        }
        let columns = statement.answers.iter().filter_map(|answer| answer.columns);
        let unknown = columns.into_iter().find(|number| *number as usize >= self.columns.len());
        unknown.map_or(Ok(()), |number| Err(("description", number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Answer, Datum, End, Opened, Source};
    use crate::writer::Writer;

    fn header() -> Header {
        Header {
            isobench_capture: FORMAT,
            isobench: "0.1.0".to_owned(),
            began: "2026-11-26T10:00:00Z".to_owned(),
            source: Source::Protocol,
            redacted: false,
        }
    }

    fn statement(text: u32, columns: u32) -> Statement {
        let values = vec![vec![
            Some(Datum::Text("7".to_owned())),
            None,
            Some(Datum::Hex { hex: "00ff".to_owned() }),
            Some(Datum::Hash { hash: "ab".to_owned(), bytes: 3 }),
        ]];
        let answer = Answer { columns: Some(columns), rows: 1, values, ..Answer::default() };
        Statement {
            session: 1,
            at: 5,
            text,
            answers: vec![answer],
            status: Some('T'),
            ..Statement::default()
        }
    }

    /// A capture with two statements of one text.
    fn written() -> (Vec<u8>, Vec<Record>) {
        let mut out = Vec::new();
        let mut writer = Writer::begin(&mut out, &header()).unwrap();
        let text = writer.text("SELECT a, b FROM t").unwrap();
        let columns = vec![Column { name: "a".to_owned(), table: 9, number: 1, type_oid: 23 }];
        let columns = writer.columns(&columns).unwrap();
        let records = vec![
            Record::Opened(Opened { session: 1, ..Opened::default() }),
            Record::Statement(statement(text, columns)),
            Record::Statement(statement(writer.text("SELECT a, b FROM t").unwrap(), columns)),
            Record::Ended(End { at: 9, why: None }),
        ];
        for record in &records {
            writer.record(record).unwrap();
        }
        (out, records)
    }

    fn read(bytes: &[u8]) -> (Vec<Record>, bool) {
        let mut reader = Reader::begin(bytes).unwrap();
        let mut records = Vec::new();
        while let Some(record) = reader.next_record().unwrap() {
            records.push(record);
        }
        (records, reader.ended())
    }

    #[test]
    fn what_is_written_is_read() {
        let (bytes, records) = written();
        assert_eq!(read(&bytes), (records, true));
        assert_eq!(bytes.split(|byte| *byte == b'\n').count(), 7 + 1, "a text is written once");
        let mut reader = Reader::begin(&bytes[..]).unwrap();
        reader.next_record().unwrap();
        reader.next_record().unwrap();
        assert_eq!((reader.text(0), reader.columns(0)[0].table), ("SELECT a, b FROM t", 9));
    }

    #[test]
    fn a_capture_that_breaks_off_is_read_up_to_its_end() {
        let (bytes, records) = written();
        for length in bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1..bytes.len() {
            let (found, ended) = read(&bytes[..length]);
            assert_eq!(found, records[..found.len()]);
            assert!(!ended && found.len() < records.len(), "{length}");
        }
    }

    #[test]
    fn other_files_and_formats_are_refused() {
        for (text, why) in [
            ("", "this is no capture"),
            ("SELECT 1;\n", "this is no capture"),
            ("{\"isobench_capture\": 2, \"shape\": 1}\n", "has format 2, but this isobench reads format 1"),
        ] {
            let error = Reader::begin(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        let header = serde_json::to_string(&header()).unwrap();
        for (line, why) in [
            ("{\"statement\":{\"session\":1,\"at\":1,\"took\":1,\"text\":0}}", "line 2: text 0 isn't there"),
            ("{\"text\":{\"number\":1,\"sql\":\"\"}}", "line 2: text 1 comes out of order"),
            ("{\"other\":1}", "line 2: "),
        ] {
            let text = format!("{header}\n{line}\n");
            let mut reader = Reader::begin(text.as_bytes()).unwrap();
            let error = reader.next_record().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
