//! Every layout of a result, and the rules that are tested by one, by the example documents of
//! `isobench-result`.

mod browser;
mod diagnosis;
mod document;
#[path = "../../../isobench-result/tests/result/examples/mod.rs"]
mod examples;
mod golden;
mod html;
mod pair;
mod rules;
mod size;
mod tables;
mod trend;
