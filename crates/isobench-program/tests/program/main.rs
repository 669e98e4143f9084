//! Scripts as programs, on a real server: the server reads their statements.

mod beyond;
mod flows;
mod held;
mod proved;
mod readings;
mod support;
mod templates;
mod touched;
mod understood;
