//! Scripts as programs, on a real server: the server reads their statements.

mod flows;
mod proved;
mod readings;
mod support;
mod templates;
mod touched;
mod understood;
