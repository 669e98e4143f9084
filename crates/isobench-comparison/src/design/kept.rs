//! The part of a plan that works on existing tables of the user's: which schema, and what is refused
//! there.
//!
//! Not here: the announcement to the user (`announcement.rs`), and entering the schema
//! (`target.rs`).

use isobench_database::InitOptions;
use isobench_plan::Plan;

use super::values::wrong;
use crate::failure::Outcome;
use crate::setup::Setup;
use crate::workload::Sources;

/// Existing tables of the user's.
#[derive(Debug, Clone)]
pub struct Kept {
    /// SQL that puts their rows back before each cell.
    pub reset: Option<Setup>,
}

impl Kept {
    /// Returns the user's tables, if the plan names their schema.
    ///
    /// # Errors
    /// An option is missing, or contradicts another one, or the scripts aren't the user's.
    pub fn of(plan: &Plan, sources: &Sources, tables: &InitOptions) -> Outcome<Option<Kept>> {
        let Some(schema) = &plan.schema else {
            if plan.keep_data == Some(true) {
                return Err(wrong("keep-data", NEEDS_SCHEMA));
            }
            return match plan.reset {
                Some(_) => Err(wrong("reset", NEEDS_SCHEMA)),
                None => Ok(None),
            };
        };
        if schema.is_empty() {
            return Err(wrong("schema", "the name is empty"));
        }
        if plan.keep_data != Some(true) {
            return Err(wrong(
                "schema",
                format!(
                    "the scripts change what is in schema \"{schema}\" for good; add --keep-data if the data there may \
                     stay as the scripts leave them"
                ),
            ));
        }
        if plan.setup.is_some() {
            return Err(wrong(
                "setup",
                "makes tables, but with --schema they are there already; leave it out (--reset FILE.sql puts rows \
                back)",
            ));
        }
        if sources.checked().is_some() || sources.has_builtin() {
            return Err(wrong(
                "schema",
                format!(
                    "workload {} writes tables of its own names, which may be yours there; give scripts of your own \
                     (-w FILE), or leave --schema out",
                    sources.name()
                ),
            ));
        }
        if !as_made(tables) {
            return Err(wrong(
                "schema",
                "the options of pgbench's tables (--fillfactor, --foreign-keys and so on) need tables that isobench \
                 makes; leave them out",
            ));
        }
        let reset = plan.reset.as_deref().map(|file| Setup::read("reset", file)).transpose()?;
        Ok(Some(Kept { reset }))
    }
}

/// Of an option that means something with a schema only.
const NEEDS_SCHEMA: &str = "is about tables of your own, but no --schema names where they are; without it, tables are \
    made anew for each cell";

/// Returns whether the options ask for nothing but a scale.
pub(super) fn as_made(options: &InitOptions) -> bool {
    let plain = InitOptions { scale: options.scale, quiet: options.quiet, ..InitOptions::default() };
    *options == plain
}
