//! The probe's specs on real servers, compared with PostgreSQL's isolation tester.

mod differential;
mod golden;
mod interleaving;
mod limits;
mod matrix;
mod mixed_levels;
mod ordinary_role;
mod split_schedules;
mod support;
