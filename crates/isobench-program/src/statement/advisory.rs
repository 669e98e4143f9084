//! Advisory locks that are held until the transaction ends.
//!
//! To a transaction that waits for one it is a row lock: `SELECT pg_advisory_xact_lock(…)` locks a row that nothing
//! else is done with (PostgreSQL manual, "Advisory Lock Functions"). Locks that a session may give back
//! earlier, or that aren't waited for, protect nothing by themselves, and are left out; so are those in
//! statements that do anything else, whose snapshot is older than the lock.

use std::fmt::Write as _;

use isobench_robustness::Strength;
use isobench_script::Slot;
use isobench_sql::{Output, Value};

use super::Statement;
use super::operand::{INT2, INT4, INT8};

/// The functions that take them, of one number or of two, by OID (`pg_proc.dat`).
const EXCLUSIVE: [u32; 2] = [3089, 3093];
const SHARED: [u32; 2] = [3090, 3094];

/// An advisory lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AdvisoryLock {
    /// Its arguments, with `$1`, `$2`, … in place of variables.
    pub key: String,
    /// The variables, in order.
    pub variables: Vec<Slot>,
    /// How strong it is, as a row lock.
    pub strength: Strength,
    /// Its number is made of the texts of the variables, rather than their numbers.
    pub of_texts: bool,
}

impl Statement<'_> {
    /// The advisory locks that the statement takes, if it does nothing else: anything else may leave its only row out,
    /// and then the functions aren't called.
    pub(crate) fn advisory_locks(&self) -> Vec<AdvisoryLock> {
        let Ok(bound) = &self.bound else { return Vec::new() };
        if !bound.shape.one_row || !bound.relations.is_empty() {
            return Vec::new();
        }
        let locks = bound.outputs.iter().map(|output| self.advisory_lock(output));
        locks.collect::<Option<Vec<_>>>().unwrap_or_default()
    }

    /// Equal arguments are equal locks. Others may be, too: then transactions wait for each other, which does no harm.
    fn advisory_lock(&self, output: &Output) -> Option<AdvisoryLock> {
        let (function, arguments) = output.call.as_ref()?;
        let strength = match function {
            exclusive if EXCLUSIVE.contains(exclusive) => Strength::Update,
            shared if SHARED.contains(shared) => Strength::Share,
            _ => return None,
        };
        let (mut key, mut variables) = (String::new(), Vec::new());
        for (place, argument) in arguments.iter().enumerate() {
            key.push_str(if place > 0 { ", " } else { "" });
            self.note_argument(argument, &mut key, &mut variables)?;
        }
        let of_texts = key.contains(['(', ':', '\'']);
        Some(AdvisoryLock { key, variables, strength, of_texts })
    }

    fn note_argument(&self, argument: &Value, key: &mut String, variables: &mut Vec<Slot>) -> Option<()> {
        match argument {
            Value::Parameter(number) => {
                variables.push(self.variable(*number)?);
                let _ = write!(key, "${}", variables.len());
            }
            Value::Constant { of_type: INT2 | INT4 | INT8, bytes } => {
                let _ = write!(key, "{}", i64::from_le_bytes(bytes.as_slice().try_into().ok()?));
            }
            // Variables may be substituted in the texts of its constants.
            Value::Computed { text, parameters } if self.literals.is_empty() => {
                let before = variables.len();
                for number in parameters {
                    variables.push(self.variable(*number)?);
                }
                let mut parts = text.split('$');
                key.push_str(parts.next()?);
                for part in parts {
                    let digits = part.bytes().take_while(u8::is_ascii_digit).count();
                    let number: usize = part[..digits].parse().ok()?;
                    let _ = write!(key, "${}{}", before + number, &part[digits..]);
                }
            }
            _ => return None,
        }
        Some(())
    }
}
