//! What is concluded from example documents: summaries, flags, the answer, thresholds.
//!
//! Not here: every layout, and what is tested by one, such as the rules of the answer
//! (`isobench-report`).

mod answers;
mod columns;
mod conclusions;
mod examples;
mod require;
