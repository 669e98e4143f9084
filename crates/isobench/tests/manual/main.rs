//! The manual is held against the program: its links resolve, its options exist, its examples
//! compute what they say.
//!
//! Nothing here needs a server. `ISOBENCH_BLESS=1` writes the option lists of
//! `docs/reference/commands.md` anew.

mod commands;
mod language;
mod links;
mod markdown;
mod plan_file;
mod plans;
mod result_format;
