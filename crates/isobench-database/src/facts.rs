//! What there is to know of a server product: types of facts and what several products share. No
//! server, no behaviour.
//!
//! Not here: the products themselves (`products/`), and what is done with a fact (the files of the
//! same names one folder up).

pub mod abilities;
pub mod conflict;
pub mod dialect;
pub mod home;
pub mod level;
pub mod object;
pub mod promises;
pub mod settings;
pub mod waiting;
