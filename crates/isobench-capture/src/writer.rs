//! Lines, written.

use std::collections::HashMap;
use std::io::{self, Write};

use serde::Serialize;

use crate::record::{Column, Header, Record};

/// The most bytes of texts whose numbers are remembered. An application that writes values into its
/// texts has no end of them; beyond this a text may be written again, with another number.
const MOST: usize = 64 << 20;

/// Writes a capture. Nothing is buffered here.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    texts: HashMap<String, u32>,
    /// The number of the next text.
    next_text: u32,
    /// The bytes of the texts whose numbers are known.
    known: usize,
    columns: HashMap<Vec<Column>, u32>,
    line: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// It can't be written.
    pub fn begin(out: W, header: &Header) -> io::Result<Writer<W>> {
        let mut writer = Writer {
            out,
            texts: HashMap::new(),
            next_text: 0,
            known: 0,
            columns: HashMap::new(),
            line: Vec::new(),
        };
        writer.line(header)?;
        Ok(writer)
    }

    /// The number of a text, which is written if it is new.
    ///
    /// # Errors
    /// It can't be written.
    pub fn text(&mut self, sql: &str) -> io::Result<u32> {
        if let Some(number) = self.texts.get(sql) {
            return Ok(*number);
        }
        if self.known + sql.len() > MOST {
            self.texts.clear();
            self.known = 0;
        }
        let number = self.next_text;
        self.next_text = number.checked_add(1).ok_or_else(|| io::Error::other("too many texts"))?;
        self.known += sql.len();
        self.texts.insert(sql.to_owned(), number);
        self.line(&Numbered::Text { number, sql })?;
        Ok(number)
    }

    /// The number of the description of columns, which is written if it is new.
    ///
    /// # Errors
    /// It can't be written.
    pub fn columns(&mut self, columns: &[Column]) -> io::Result<u32> {
        if let Some(number) = self.columns.get(columns) {
            return Ok(*number);
        }
        let number = u32::try_from(self.columns.len()).map_err(io::Error::other)?;
        self.columns.insert(columns.to_owned(), number);
        self.line(&Numbered::Columns { number, columns })?;
        Ok(number)
    }

    /// Writes a record.
    ///
    /// # Errors
    /// It can't be written.
    pub fn record(&mut self, record: &Record) -> io::Result<()> {
        self.line(record)
    }

    /// The output.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Passes on what the output itself has buffered.
    ///
    /// # Errors
    /// It can't be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// A line in one call, so that a file that breaks off has whole lines before its end.
    fn line(&mut self, content: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, content)?;
        self.line.push(b'\n');
        self.out.write_all(&self.line)
    }
}

/// What has a number.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Numbered<'a> {
    Text { number: u32, sql: &'a str },
    Columns { number: u32, columns: &'a [Column] },
}
