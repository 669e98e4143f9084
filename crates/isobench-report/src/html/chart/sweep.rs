//! Figure: the search for the highest rate that keeps the latency limit: every rate that was tried.

use maud::{Markup, html};

use super::Figure;
use super::data::Data;
use super::frame::{ABOVE, BELOW, LINE, Plot, WIDTH, left_of, picture, text, width_of};
use super::marks::{path, series, tipped, u};
use super::scale::Scale;
use crate::csv::number;
use isobench_result::document::{Document, SweepResult, SweepStep};
use isobench_result::numbers::{counted, optional, percent, short};

const ID: &str = "sweep";
const TITLE: &str = "The highest rate that keeps the latency limit";

const HEIGHT: f64 = 110.0;

/// Draws the figure; `None` if nothing was searched for.
pub fn figure(document: &Document) -> Option<Figure> {
    let sweeps: Vec<&SweepResult> = document.sweeps.iter().filter(|sweep| !sweep.tried.is_empty()).collect();
    if sweeps.is_empty() {
        return None;
    }
    let mut drawn = Vec::new();
    let mut top = 0.0;
    for sweep in &sweeps {
        let (plot, height) = plot(sweep, &sweeps, top);
        drawn.push(plot);
        top += height;
    }
    let description =
        format!("{}.", sweeps.iter().map(|sweep| sentence(sweep)).collect::<Vec<_>>().join("; "));
    Some(Figure {
        id: ID,
        title: TITLE.to_owned(),
        caption: "Every rate that was tried, with the 99th percentile of the latency of what \
                  committed, from the scheduled start, logarithmic. Disc: at least 99 % of the \
                  transactions that were due committed within the limit; cross: fewer did. Dashed: \
                  the limit; upright line: the rate in a closed loop, where the search began."
            .to_owned(),
        svg: picture(ID, TITLE, top, &html! { @for plot in &drawn { (plot) } }),
        description,
        legend: String::new(),
        csv: data(&sweeps),
    })
}

/// The factors that were the same for all rates.
fn factors(sweep: &SweepResult) -> String {
    format!("{}, backoff {}", counted(sweep.clients.into(), "client"), sweep.backoff)
}

/// The outcome, in words.
fn found(sweep: &SweepResult) -> String {
    match (sweep.highest_kept, sweep.lowest_missed) {
        (Some(kept), Some(missed)) => format!("kept at {}, missed at {} per s", short(kept), short(missed)),
        (Some(kept), None) => format!("kept at {} per s, never missed", short(kept)),
        (None, Some(missed)) => format!("missed at {} per s already", short(missed)),
        (None, None) => "not found".to_owned(),
    }
}

fn sentence(sweep: &SweepResult) -> String {
    format!(
        "{}, {}: {}; limit {} ms; {} tried; in a closed loop {} per s",
        sweep.name(),
        factors(sweep),
        found(sweep),
        short(sweep.limit_ms),
        counted(sweep.tried.len() as u64, "rate"),
        short(sweep.capacity)
    )
}

fn plot(sweep: &SweepResult, all: &[&SweepResult], top: f64) -> (Markup, f64) {
    let upper = top + 2.0 * LINE + ABOVE;
    let edges = (upper, upper + HEIGHT);
    let tried = || all.iter().flat_map(|sweep| &sweep.tried);
    let latencies = tried().filter_map(|step| step.p99_ms).chain(all.iter().map(|sweep| sweep.limit_ms));
    let up = Scale::log(latencies, 1.3, edges.1, edges.0);
    let plot = Plot { left: left_of(&[(&up, 4)]), right: WIDTH - 8.0, top: edges.0, bottom: edges.1 };
    let rates = tried().map(|step| step.rate).chain(all.iter().map(|sweep| sweep.capacity));
    let along = Scale::from_zero(rates, plot.left, plot.right);
    let limit = up.at(sweep.limit_ms);
    let loops = along.at(sweep.capacity);
    let result = found(sweep);
    let marks = html! {
        (text("label", (0.0, top + 17.0), &sweep.name(), WIDTH - width_of(&result) - 10.0))
        (text("note", (0.0, top + LINE + 15.0), &factors(sweep), WIDTH))
        text class="end" x=(u(WIDTH)) y=(u(top + 17.0)) { (result) }
        (plot.rising(&up, 4, "p99, ms"))
        (plot.across(&along, &along.ticks(7), "transactions due per s"))
        (tipped("point", &format!("closed loop: {} per s", short(sweep.capacity)), &html! {
            line class="closed" x1=(u(loops)) x2=(u(loops)) y1=(u(plot.top)) y2=(u(plot.bottom)) {}
        }))
        line class="limit" x1=(u(plot.left)) x2=(u(plot.right)) y1=(u(limit)) y2=(u(limit)) {}
        text class="note halo" x=(u(plot.left + 4.0)) y=(u(limit - 5.0)) { "limit " (short(sweep.limit_ms)) " ms" }
        @for step in &sweep.tried { (drawn_step(step, &along, &up, &plot)) }
    };
    (series("sweep", &sentence(sweep), &marks), edges.1 - top + BELOW + 8.0)
}

fn drawn_step(step: &SweepStep, along: &Scale, up: &Scale, plot: &Plot) -> Markup {
    // What has no percentile lies at the upper edge: nearly nothing came through.
    let (x, y) = (along.at(step.rate), step.p99_ms.map_or(plot.top, |ms| up.at(ms)));
    let tip = format!(
        "{} per s: {} ({} within the limit, p99 {} ms)",
        short(step.rate),
        if step.kept { "kept" } else { "missed" },
        percent(step.within_limit),
        optional(step.p99_ms)
    );
    let mark = if step.kept {
        html! { circle class="kept" cx=(u(x)) cy=(u(y)) r="6" {} }
    } else {
        let stroke = |down: f64| path([Some((x - 5.0, y - down)), Some((x + 5.0, y + down))]);
        html! { path class="missed" d={ (stroke(5.0)) (stroke(-5.0)) } {} }
    };
    tipped("point", &tip, &mark)
}

fn data(sweeps: &[&SweepResult]) -> String {
    let mut data =
        Data::new(&["level", "clients", "backoff", "limit_ms", "rate", "within_limit", "p99_ms", "kept"]);
    for sweep in sweeps {
        for step in &sweep.tried {
            data.row(vec![
                sweep.name(),
                sweep.clients.to_string(),
                sweep.backoff.clone(),
                number(Some(sweep.limit_ms)),
                number(Some(step.rate)),
                number(Some(step.within_limit)),
                number(step.p99_ms),
                step.kept.to_string(),
            ]);
        }
    }
    data.finish()
}
