//! `isobench plans`: the published experiments that compare can repeat; doesn't need a server.
//!
//! Not here: the plans themselves, which are files in the folder `plans`.

use std::fmt::Write as _;
use std::path::Path;

use isobench_plan::{Experiment, PUBLISHED, Size, published, read};
use isobench_report::wrap;
use isobench_suggest::did_you_mean;

use crate::options::PlansOptions;
use crate::output;
use isobench_comparison::{Failure, Outcome};

/// Lists the plans, or prints the file of one.
///
/// # Errors
/// The name is unknown, or the output can't be written.
pub fn plans(options: &PlansOptions) -> Outcome {
    let Some(name) = &options.plan else { return output::print(&list()?) };
    let plan = published(name).ok_or_else(|| {
        let names: Vec<&str> = PUBLISHED.iter().map(|plan| plan.name).collect();
        Failure::setup(format!(
            "there is no plan \"{name}\"{}; there are {}",
            did_you_mean(name, names.iter().copied()),
            names.join(", ")
        ))
    })?;
    output::print(plan.text)
}

/// Returns the list, with the question, source and needs of each plan.
fn list() -> Outcome<String> {
    let mut text = String::from(
        "Published experiments, each repeated by isobench compare --plan NAME [--quick | --full]; isobench plans \
         NAME prints the file.\n",
    );
    for plan in &PUBLISHED {
        let options = read(Path::new(plan.name), Size::Quick).map_err(Failure::setup)?;
        let experiment = options.experiment.unwrap_or_default();
        // Writing to a String can't fail.
        let _ = write!(text, "\n{}", entry(plan.name, &experiment));
    }
    Ok(text)
}

/// Width of the output in columns.
const WIDTH: usize = 110;

fn entry(name: &str, experiment: &Experiment) -> String {
    let facts = [
        ("published", format!("{}; on {}", experiment.source, experiment.product)),
        ("quick", experiment.needs_quick.clone()),
        ("full", experiment.needs_full.clone()),
    ];
    let mut lines = vec![format!("{name}: {}", experiment.title)];
    for (what, fact) in facts {
        lines.extend(wrap(&format!("  {what:<9}  {fact}"), WIDTH, 13));
    }
    lines.join("\n") + "\n"
}
