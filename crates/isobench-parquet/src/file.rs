//! A Parquet file that is written row by row, a row group at a time.
//!
//! Not here: which columns there are.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Encoding, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};

use crate::{ColumnType, ExportError};

/// The start of the value of the key `format` in a file's metadata, by which a file of isobench's is
/// recognised; the table's name follows.
pub const FORMAT: &str = "isobench/parquet/";

/// Rows of a row group, which are in memory until it is written. `DuckDB`, which works on row groups in
/// parallel, advises 100,000 to a million ("Tips for working with Parquet files").
const ROWS: usize = 1 << 17;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// A count: 64 bits with sign.
    Integer,
    /// The same, with neighbours that are near one another.
    Progressing,
    /// A double.
    Number,
    /// True or false.
    Flag,
    /// Microseconds since 1970, UTC.
    Instant,
}

impl Kind {
    /// The type's name in SQL.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Text => "VARCHAR",
            Kind::Integer | Kind::Progressing => "BIGINT",
            Kind::Number => "DOUBLE",
            Kind::Flag => "BOOLEAN",
            Kind::Instant => "TIMESTAMP WITH TIME ZONE",
        }
    }

    fn physical(self) -> (Physical, Option<LogicalType>) {
        match self {
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Integer | Kind::Progressing => (Physical::INT64, None),
            Kind::Number => (Physical::DOUBLE, None),
            Kind::Flag => (Physical::BOOLEAN, None),
            Kind::Instant => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
        }
    }
}

/// A value of a row.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Text(ByteArray),
    Integer(i64),
    Number(f64),
    Flag(bool),
    Missing,
}

impl Value {
    pub(crate) fn text(text: String) -> Value {
        Value::Text(text.into_bytes().into())
    }

    pub(crate) fn count(count: u64) -> Value {
        Value::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

/// The values of a column that aren't written yet.
enum Values {
    Text(Vec<ByteArray>),
    Integer(Vec<i64>),
    Number(Vec<f64>),
    Flag(Vec<bool>),
}

/// A column of the row group that is being filled.
struct Column {
    values: Values,
    /// For each row 1 if it has a value, else 0 (Parquet's definition levels).
    present: Vec<i16>,
}

impl Column {
    fn new(kind: Kind) -> Column {
        let values = match kind {
            Kind::Text => Values::Text(Vec::new()),
            Kind::Integer | Kind::Progressing | Kind::Instant => Values::Integer(Vec::new()),
            Kind::Number => Values::Number(Vec::new()),
            Kind::Flag => Values::Flag(Vec::new()),
        };
        Column { values, present: Vec::new() }
    }

    /// A value of another type counts as missing, which a column that always has one refuses.
    fn push(&mut self, value: Value) {
        let present = match (&mut self.values, value) {
            (Values::Text(values), Value::Text(value)) => add(values, value),
            (Values::Integer(values), Value::Integer(value)) => add(values, value),
            (Values::Number(values), Value::Number(value)) => add(values, value),
            (Values::Flag(values), Value::Flag(value)) => add(values, value),
            _ => 0,
        };
        self.present.push(present);
    }

    fn write(&mut self, writer: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        let present = Some(self.present.as_slice());
        match (&mut self.values, writer) {
            (Values::Text(values), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                writer.write_batch(values, present, None)?;
                values.clear();
            }
            (Values::Integer(values), ColumnWriter::Int64ColumnWriter(writer)) => {
                writer.write_batch(values, present, None)?;
                values.clear();
            }
            (Values::Number(values), ColumnWriter::DoubleColumnWriter(writer)) => {
                writer.write_batch(values, present, None)?;
                values.clear();
            }
            (Values::Flag(values), ColumnWriter::BoolColumnWriter(writer)) => {
                writer.write_batch(values, present, None)?;
                values.clear();
            }
            _ => return Err(ParquetError::General("a column has two types".to_owned())),
        }
        self.present.clear();
        Ok(())
    }
}

/// Adds a value; returns its definition level.
fn add<T>(values: &mut Vec<T>, value: T) -> i16 {
    values.push(value);
    1
}

/// A Parquet file that is being written. Without [`TableFile::finish`] it isn't one.
pub(crate) struct TableFile<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Column>,
    /// Rows of the row group that isn't written yet.
    rows: usize,
    written: u64,
}

impl<W: Write + Send> TableFile<W> {
    /// A file of the table with this name, and these columns.
    pub(crate) fn new(name: &str, fields: &[ColumnType], output: W) -> Result<Self, ExportError> {
        let types = fields.iter().map(|&(name, kind, always)| {
            let (physical, logical) = kind.physical();
            let repetition = if always { Repetition::REQUIRED } else { Repetition::OPTIONAL };
            let column = Type::primitive_type_builder(name, physical).with_logical_type(logical);
            column.with_repetition(repetition).build().map(Arc::new)
        });
        let types = types.collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder(name).with_fields(types).build()?;
        let properties = fields.iter().fold(properties(name), |properties, &(name, kind, _)| {
            if kind == Kind::Progressing { properties.progressing(name) } else { properties }
        });
        let writer = SerializedFileWriter::new(output, Arc::new(schema), Arc::new(properties.build()))?;
        let columns = fields.iter().map(|(_, kind, _)| Column::new(*kind)).collect();
        Ok(TableFile { writer, columns, rows: 0, written: 0 })
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = Value>) -> Result<(), ExportError> {
        let mut row = row.into_iter();
        for column in &mut self.columns {
            column.push(row.next().unwrap_or(Value::Missing));
        }
        self.rows += 1;
        if self.rows == ROWS { self.write() } else { Ok(()) }
    }

    /// Writes what is in memory as a row group.
    fn write(&mut self) -> Result<(), ExportError> {
        let mut group = self.writer.next_row_group()?;
        let mut columns = self.columns.iter_mut();
        while let (Some(mut writer), Some(column)) = (group.next_column()?, columns.next()) {
            column.write(writer.untyped())?;
            writer.close()?;
        }
        group.close()?;
        self.written += self.rows as u64;
        self.rows = 0;
        Ok(())
    }

    /// Completes the file. Returns the number of its rows.
    pub(crate) fn finish(mut self) -> Result<u64, ExportError> {
        if self.rows > 0 {
            self.write()?;
        }
        self.writer.finish()?;
        Ok(self.written)
    }
}

fn properties(table: &str) -> WriterPropertiesBuilder {
    let format = KeyValue::new("format".to_owned(), format!("{FORMAT}{table}"));
    WriterProperties::builder()
        .set_created_by(concat!("isobench version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(vec![format]))
}

/// The encoding of columns that progress.
trait Progressing {
    fn progressing(self, column: &str) -> Self;
}

impl Progressing for WriterPropertiesBuilder {
    fn progressing(self, column: &str) -> Self {
        let path = ColumnPath::from(column);
        self.set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
    }
}
