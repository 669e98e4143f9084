//! The result document and all that is made of it, by the example documents in `examples/`.

mod answers;
mod browser;
mod conclusions;
mod diagnosis;
mod document;
mod examples;
mod golden;
mod html;
mod metric_trend;
mod pair;
mod require;
mod rules;
mod trend;
