//! `isobench observe`: what a verdict on scripts would see of each statement. The scripts aren't run.
//!
//! Not here: which columns show rows (`isobench_observation`), and the list (`isobench_report`).

use isobench_comparison::{Design, Failure, Outcome, Preview, Resolved, Target, catalog, preview};
use isobench_database::InitOptions;
use isobench_plan::Plan;
use isobench_report::{statements, wrap};
use isobench_result::ObservedStatement;
use isobench_result::document::Tracked;
use isobench_runner::Control;
use serde::Serialize;

use crate::destination::{Kind, PREVIEW_FORMAT, check_file};
use crate::interrupt;
use crate::options::ObserveOptions;
use crate::output::{self, is_stream, say};
use crate::servers::{Stage, Wanted, stage};

/// The widest list.
const WIDEST: usize = 80;

/// The narrowest list.
const NARROWEST: usize = 40;

/// Prints what would be seen of the statements of each workload.
///
/// # Errors
/// Wrong options, an error in a script, no server, or one whose rows don't show their writers.
pub fn observe(options: &ObserveOptions) -> Outcome {
    let plan = options.plan().ok_or_else(|| {
        Failure::setup("which scripts? Name them: --file FILE, -b NAME, or -w with a workload or a file")
    })?;
    if let Some(path) = &options.json {
        check_file("--json", path, Kind::Preview)?;
    }
    // No clients run here.
    let plan = Plan { clients: Some(vec![1]), ..plan };
    let plan = Resolved::of(&plan, None, Plan::default(), &InitOptions::default())?;
    let (connection, embedded) = (&options.connection, &options.embedded);
    let wanted = Wanted { connection, embedded, standby: None, alters: false };
    let Stage { design, targets, control } = stage(plan, &wanted, &|_| {}, &|_| {})?;
    interrupt::end_soon(&control)?;
    targets.into_iter().try_for_each(|mut target| {
        let looked = interrupt::blame(&control, look(&design, &mut target, &control));
        let looked = looked.and_then(|previews| deliver(options, &target, &previews));
        let closed = target.close(false);
        looked.and(closed)
    })
}

/// Makes the tables of each workload, unless they are there, and looks at its statements.
fn look(design: &Design, target: &mut Target, control: &Control) -> Outcome<Vec<Preview>> {
    if !target.standby && design.schema().is_none() {
        target.claim_namespace(&say)?;
    }
    let site = target.site();
    let mut previews = Vec::new();
    for work in &design.works {
        if control.urgency() > isobench_runner::Urgency::None {
            return Err(Failure::Incomplete("interrupted".to_owned()));
        }
        for note in work.tables.make(&site)? {
            eprintln!("note: {note}");
        }
        let catalog = catalog(&site, [])?.ok_or_else(|| {
            Failure::setup(format!(
                "rows of {} {} don't show who wrote them, so statements are sent as written there; lines --@ in the \
                 scripts say what they read and write",
                target.database.product.name, target.database.version
            ))
        })?;
        let workload = work.workload(design.seed(), &site.database)?;
        previews.push(preview(work.sources.name(), work.strategy.clone(), workload, &site, &catalog)?);
    }
    Ok(previews)
}

fn deliver(options: &ObserveOptions, target: &Target, previews: &[Preview]) -> Outcome {
    let takes_stdout = options.json.as_deref().is_some_and(is_stream);
    let printed = output::tell(&text(options, previews), takes_stdout);
    if let Some(path) = &options.json {
        let document = Document {
            format: PREVIEW_FORMAT,
            format_version: 1,
            product: target.database.product.name,
            version: &target.database.version,
            workloads: previews.iter().map(Previewed::of).collect(),
        };
        let text =
            serde_json::to_string_pretty(&document).map_err(|error| Failure::Output(error.to_string()))?;
        output::save(path, &(text + "\n"))?;
    }
    printed
}

fn text(options: &ObserveOptions, previews: &[Preview]) -> String {
    let width = output::width().clamp(NARROWEST, WIDEST);
    let mut blocks = Vec::new();
    for preview in previews {
        let sent = options.sent.then_some(preview.sent.as_slice());
        let mut block = statements(&preview.observation, sent, width);
        for line in wrap(recorded(preview), width, 0) {
            block += &(line + "\n");
        }
        blocks.push(block);
    }
    let unknown = |statement: &ObservedStatement| {
        statement.dark.iter().any(|sentence| sentence.contains("there is no table "))
    };
    let missing = previews.iter().flat_map(|preview| &preview.observation.statements).any(unknown);
    if missing && options.schema.is_none() && options.setup.is_none() {
        let hint = "Tables of your own: --setup FILE.sql makes them, or --schema NAME is where they are on a server \
                    that is named.";
        blocks.push(wrap(hint, width, 0).join("\n") + "\n");
    }
    blocks.join("\n")
}

/// How a comparison would record the workload, in a sentence.
fn recorded(preview: &Preview) -> &'static str {
    let any = preview.observation.statements.iter().any(|statement| !statement.tables.is_empty());
    match (preview.recorded, any) {
        ("rows", _) => "compare judges it by these rows.",
        ("annotations", true) => {
            "compare judges it by the lines --@ of its scripts and sends every statement as written, because they \
             describe statements that show no rows."
        }
        ("annotations", false) => {
            "compare judges it by the lines --@ of its scripts, because no statement shows rows."
        }
        _ => "compare gives no verdict on it, because no statement shows rows.",
    }
}

/// The result as JSON.
#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    format_version: u32,
    product: &'static str,
    version: &'a str,
    workloads: Vec<Previewed<'a>>,
}

#[derive(Serialize)]
struct Previewed<'a> {
    workload: &'a str,
    recorded: &'static str,
    /// The number of statements that touch rows.
    on_rows: usize,
    /// The number of them that are tracked wholly.
    tracked_wholly: usize,
    /// The number of further ones that are if a value that isn't known before is 0, the OFFSET.
    tracked_wholly_on_condition: usize,
    statements: Vec<Statement<'a>>,
}

#[derive(Serialize)]
struct Statement<'a> {
    #[serde(flatten)]
    seen: &'a ObservedStatement,
    sent: &'a str,
}

impl Previewed<'_> {
    fn of(preview: &Preview) -> Previewed<'_> {
        let statements = preview.observation.statements.iter().zip(&preview.sent);
        let Tracked { wholly, on_condition, on_rows } = preview.observation.tracked();
        Previewed {
            workload: &preview.observation.workload,
            recorded: preview.recorded,
            on_rows,
            tracked_wholly: wholly,
            tracked_wholly_on_condition: on_condition,
            statements: statements.map(|(seen, sent)| Statement { seen, sent }).collect(),
        }
    }
}
