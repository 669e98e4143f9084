//! Values of columns in a script's variables.

use std::fmt::Write as _;

use isobench_script::{Slot, TextPart};
use isobench_sql::{ColumnType, RelationId, Value};

use super::Statement;

/// A value of a column, as far as two may be known to be equal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operand {
    Variable(Slot),
    /// In a form in which equal values are the same text.
    Constant(String),
    /// A value computed from variables, with `$1`, `$2`, … in place of these.
    Computed(String, Vec<Slot>),
}

/// The text of a variable's value without blanks at its end ([`Operand::Computed`]).
pub(crate) const WITHOUT_BLANKS: &str = "$1::varchar(n)";

/// The types of constants, by OID (`pg_type.dat`).
pub(super) const INT8: u32 = 20;
pub(super) const INT2: u32 = 21;
pub(super) const INT4: u32 = 23;
const TEXT: u32 = 25;
const BPCHAR: u32 = 1042;
const VARCHAR: u32 = 1043;

impl Statement<'_> {
    /// A value that a column is compared with or set to, in the script's variables.
    pub(super) fn operand(&self, id: RelationId, column: i32, value: &Value) -> Option<Operand> {
        let slot = |number: &usize| self.variable(*number);
        let slots = |parameters: &[usize]| -> Option<Vec<Slot>> { parameters.iter().map(slot).collect() };
        match value {
            Value::Parameter(number) => slot(number).map(Operand::Variable),
            Value::Computed { text, parameters } if self.literals.is_empty() => {
                Some(Operand::Computed(text.clone(), slots(parameters)?))
            }
            // Variables may be substituted in its constants.
            Value::Computed { .. } => None,
            Value::WithoutBlanks(inner) => match self.operand(id, column, inner)? {
                Operand::Variable(slot) => Some(Operand::Computed(WITHOUT_BLANKS.to_owned(), vec![slot])),
                Operand::Constant(text) => (!text.ends_with(' ')).then_some(Operand::Constant(text)),
                Operand::Computed(..) => None,
            },
            Value::Constant { of_type, bytes } => {
                let relation = &self.catalog.relations[id];
                let known = relation.columns.iter().find(|known| known.number == column);
                // A system column is compared as text.
                self.constant(known.map_or(ColumnType::Scalar, |known| known.kind), *of_type, bytes)
            }
        }
    }

    /// A constant in a form in which equal values of the column's type are the same text, if it has one.
    fn constant(&self, kind: ColumnType, of_type: u32, bytes: &[u8]) -> Option<Operand> {
        match (kind, of_type) {
            (ColumnType::Integer, INT2 | INT4 | INT8) => {
                let width = match of_type {
                    INT2 => 2,
                    INT4 => 4,
                    _ => 8,
                };
                let number = i64::from_le_bytes(bytes.try_into().ok()?);
                // On a server of another byte order the rest isn't the sign.
                let bits = 64 - 8 * width;
                ((number << bits) >> bits == number).then(|| Operand::Constant(number.to_string()))
            }
            (_, TEXT | VARCHAR | BPCHAR) => {
                let text = std::str::from_utf8(bytes.get(4..)?).ok()?;
                let text = if of_type == BPCHAR { text.trim_end_matches(' ') } else { text };
                let has_variables = !self.literals.is_empty() && text.contains('$');
                match self.literals.get(text) {
                    Some(parts) => in_quotes(parts.as_deref()?),
                    None if has_variables || kind != ColumnType::Text => None,
                    None => Some(Operand::Constant(text.to_owned())),
                }
            }
            // A label's number.
            (ColumnType::Enum, _) if bytes.len() == 8 => {
                Some(Operand::Constant(format!("label {:?}", bytes.get(..4)?)))
            }
            _ => None,
        }
    }
}

/// The value of a literal in which variables are substituted: the only one as it is, or one that is computed from
/// them.
fn in_quotes(parts: &[TextPart]) -> Option<Operand> {
    if let [TextPart::Variable(slot)] = parts {
        return Some(Operand::Variable(*slot));
    }
    let (mut text, mut slots) = (String::new(), Vec::new());
    for part in parts {
        match part {
            // It would be taken for a variable.
            TextPart::Text(plain) if plain.contains('$') => return None,
            TextPart::Text(plain) => text.push_str(plain),
            TextPart::Variable(slot) => {
                slots.push(*slot);
                let _ = write!(text, "${}", slots.len());
            }
            TextPart::Parameter(_) => return None,
        }
    }
    Some(Operand::Computed(format!("'{text}'"), slots))
}
