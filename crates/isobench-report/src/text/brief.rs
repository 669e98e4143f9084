//! The report on one screen: the answer, a table of one phrase a row, one witness, how sure that is,
//! and where the rest is.
//!
//! Not here: the report with all details (`text`), and the answer itself (`isobench_result::answer`).

use isobench_result::answer::{Brief, Finding, brief, finding};
use isobench_result::diagnosis::{Diagnosis, diagnoses};
use isobench_result::document::{Cell, Document, RatioToFirst, are_alike};
use isobench_result::durability;
use isobench_result::factor::{Factor, varying};
use isobench_result::numbers::{MISSING, counted, optional, short, whole_percent};
use isobench_result::phrases::is_about_turns;
use isobench_result::rounds::{groups, settings_name};
use isobench_result::view::tried::{AtLevel, masked, notes_of_untried, tried, wrong_outcomes};
use isobench_result::view::{Emphasis, Entry, Heading, Line, Row, Table};
use isobench_result::words::{capital, distinct};

use super::layout::{self, Spans, wrap_line};
use super::short::shortened;
use super::{Extent, Terminal, experiment, header, histories, precision, seen, sentences, witness};

/// The indentation of everything below the first lines.
const INDENT: usize = 2;

/// The width of the labels below the table.
const LABEL: usize = 10;

/// The narrowest column of phrases.
const LEAST_PHRASE: usize = 14;

/// The widest one.
const MOST_PHRASE: usize = 44;

/// The most remedies, and the most things that an original missed.
const FEW: usize = 2;

/// The blocks of the report for a terminal, with `width` in place of its own.
pub fn blocks(document: &Document, width: usize, terminal: Terminal) -> Vec<Vec<Spans>> {
    let header = header::brief(document, width);
    let short = shortened(document);
    let document = short.as_ref().unwrap_or(document);
    let (said, tried) = (brief(document), tried(document));
    let mut blocks = vec![header, missed(document, width), answer(&said, width)];
    if !document.cells.is_empty() {
        blocks.push(indented(table(document, width.saturating_sub(INDENT), terminal.unicode)));
        blocks.push(paragraphs(&results(document), width));
    }
    let mut shown = proof(document, &said, &tried, width);
    if terminal.extent == Extent::Audit && shown.is_empty() {
        shown = indented(plain(histories::witness(document, width.saturating_sub(INDENT))));
    }
    blocks.push(shown);
    blocks.push(notes(document, said, &tried, width, terminal));
    blocks
}

fn indented(lines: Vec<Spans>) -> Vec<Spans> {
    let indent = || Line::plain(" ".repeat(INDENT));
    let line = |line: Spans| if line.is_empty() { line } else { [vec![indent()], line].concat() };
    lines.into_iter().map(line).collect()
}

fn paragraphs(sentences: &[Line], width: usize) -> Vec<Spans> {
    let width = width.saturating_sub(INDENT);
    indented(sentences.iter().flat_map(|line| wrap_line(line, width, INDENT)).collect())
}

/// The answer; its first sentence is the headline.
fn answer(said: &Brief, width: usize) -> Vec<Spans> {
    let sentences = &said.answer;
    let line = |(number, text): (usize, &String)| match number {
        0 => Line { text: text.clone(), emphasis: Emphasis::Headline },
        _ => Line::plain(text),
    };
    paragraphs(&sentences.iter().enumerate().map(line).collect::<Vec<_>>(), width)
}

/// What a published experiment missed, and which of its results came out again.
fn missed(document: &Document, width: usize) -> Vec<Spans> {
    let Some(text) = experiment::describe(document) else { return Vec::new() };
    let mut lines = vec![Line::plain(text.title)];
    let missed: Vec<&str> = text.missed.iter().take(FEW).map(String::as_str).collect();
    if !missed.is_empty() {
        lines.push(Line::plain(format!("What the original missed: {}", missed.join(" "))));
    }
    lines.extend(text.verdict.map(Line::plain));
    paragraphs(&lines, width)
}

/// The table: a row for each cell, with one phrase on its data.
fn table(document: &Document, width: usize, unicode: bool) -> Vec<Spans> {
    let vary = varying(document);
    let none: &[Factor] = &[];
    for count in (2..=ALL.len()).rev() {
        for (factors, headings) in [(vary.as_slice(), none), (none, vary.as_slice())] {
            let made = made(document, (factors, headings), &ALL[..count], Some(width), unicode);
            if let Some(table) = made.filter(|table| layout::fits(table, width)) {
                return layout::table(&table, width);
            }
        }
    }
    let table = made(document, (none, &vary), &ALL, None, unicode);
    table.map_or_else(Vec::new, |table| layout::table(&table, width))
}

/// A column of figures: its heading, whether the document has it, and its entry.
struct Column {
    heading: fn(&Document) -> Heading,
    when: fn(&Document) -> bool,
    entry: fn(&Cell) -> Entry,
}

/// The columns of figures; those that matter least last.
const ALL: [Column; 8] = [
    Column {
        heading: |_| Heading::new("tx/s", "", true),
        when: |_| true,
        entry: |cell| optional(cell.summary.tps.mean).into(),
    },
    Column {
        heading: |document| against(document, |cell| cell.summary.ratio.as_ref()),
        when: |document| compares(document, |cell| cell.summary.ratio.as_ref(), |cell| cell.level.name()),
        entry: |cell| change(cell.summary.ratio.as_ref(), &cell.level.name()),
    },
    Column {
        heading: |document| against(document, |cell| cell.summary.strategy_ratio.as_ref()),
        when: |document| {
            !document.cells.iter().any(|cell| cell.summary.setting_ratio.is_some())
                && compares(
                    document,
                    |cell| cell.summary.strategy_ratio.as_ref(),
                    |cell| cell.strategy().to_owned(),
                )
        },
        entry: |cell| change(cell.summary.strategy_ratio.as_ref(), cell.strategy()),
    },
    Column {
        heading: |document| against(document, |cell| cell.summary.setting_ratio.as_ref()),
        when: |document| compares(document, |cell| cell.summary.setting_ratio.as_ref(), settings_name),
        entry: |cell| change(cell.summary.setting_ratio.as_ref(), &settings_name(cell)),
    },
    Column {
        heading: |_| Heading::new("down", "", true),
        when: durability::is_settled,
        entry: |cell| {
            durability::silence(cell).map_or(MISSING.to_owned(), |s| format!("{} s", short(s))).into()
        },
    },
    Column {
        heading: |_| Heading::new("p99", "", true),
        when: |document| !durability::is_settled(document),
        entry: |cell| {
            cell.summary.latency_ms.p99.map_or(MISSING.to_owned(), |ms| format!("{} ms", short(ms))).into()
        },
    },
    Column {
        heading: |_| Heading::new("retried", "", true),
        when: |document| document.cells.iter().any(|cell| cell.summary.conflict_ratio > 0.0),
        entry: |cell| format!("{} %", whole_percent(cell.summary.conflict_ratio)).into(),
    },
    Column {
        heading: |_| Heading::new("acked/s", "", true),
        when: |document| document.cells.iter().any(|cell| cell.summary.acknowledged_tps.is_some()),
        entry: |cell| optional(cell.summary.acknowledged_tps.unwrap_or(cell.summary.tps).mean).into(),
    },
];

/// The table with these columns; `None` if phrases have no room in this width.
fn made(
    document: &Document,
    (factors, headings): (&[Factor], &[Factor]),
    columns: &[Column],
    width: Option<usize>,
    unicode: bool,
) -> Option<Table> {
    let columns: Vec<&Column> = columns.iter().filter(|column| (column.when)(document)).collect();
    let mut titles = vec![Heading::new("", "", false)];
    titles.extend(factors.iter().map(Factor::heading));
    titles.push(Heading::new("level", "", false));
    titles.extend(columns.iter().map(|column| (column.heading)(document)));
    let before = titles.len();
    titles.push(Heading::new("data", "", false));
    let mut rows = Vec::new();
    let mut phrases = Vec::new();
    for group in groups(document) {
        if !headings.is_empty() {
            let said: Vec<String> = headings.iter().map(|factor| factor.said(group[0])).collect();
            rows.push(Row::Heading(said.join(", ")));
        }
        for cell in &group {
            let Finding { right, phrase } = finding(document, cell);
            let mut entries = vec![mark(right, unicode)];
            entries.extend(factors.iter().map(|factor| Entry::from(factor.value(cell))));
            entries.push(cell.level.name().into());
            entries.extend(columns.iter().map(|column| (column.entry)(cell)));
            rows.push(Row::Entries(entries));
            phrases.push(phrase);
        }
    }
    let mut table = Table { columns: titles, rows };
    let last = table.columns.pop()?;
    let room = match width {
        Some(width) => {
            // Two blanks between columns, of which that width has one.
            let room = width.checked_sub(layout::least_width(&table) + before + 1)?.min(MOST_PHRASE);
            if room < LEAST_PHRASE {
                return None;
            }
            room
        }
        None => usize::MAX,
    };
    table.columns.push(last);
    let mut phrases = phrases.into_iter();
    for row in &mut table.rows {
        let Row::Entries(entries) = row else { continue };
        let phrase = phrases.next().unwrap_or_default();
        let lines = layout::wrap(&phrase.text, room, 1).into_iter();
        entries.push(Entry::Stack(
            lines.map(|text| Entry::Text(Line { text, emphasis: phrase.emphasis })).collect(),
        ));
    }
    Some(table)
}

/// ✓ or ✗, or a question mark if neither is shown.
fn mark(right: Option<bool>, unicode: bool) -> Entry {
    match (right, unicode) {
        (Some(true), true) => "✓".into(),
        (Some(true), false) => "ok".into(),
        (Some(false), true) => Entry::grave("✗"),
        (Some(false), false) => Entry::grave("x"),
        (None, _) => Entry::Text(Line::caution("?")),
    }
}

/// True if some row isn't compared with itself only.
fn compares(
    document: &Document,
    ratio: fn(&Cell) -> Option<&RatioToFirst>,
    own: fn(&Cell) -> String,
) -> bool {
    document.cells.iter().any(|cell| ratio(cell).is_some_and(|ratio| ratio.to != own(cell)))
}

/// "against rc": the heading of a column of ratios.
fn against(document: &Document, ratio: fn(&Cell) -> Option<&RatioToFirst>) -> Heading {
    let to = distinct(document.cells.iter().filter_map(ratio).map(|ratio| ratio.to.as_str()));
    let to = match to.as_slice() {
        ["read uncommitted"] => "ru",
        ["read committed"] => "rc",
        ["repeatable read"] => "rr",
        ["serializable"] => "ser",
        [one] if one.chars().count() < 10 => one,
        _ => "first",
    };
    Heading::new(format!("against {to}"), "", false)
}

/// What a row is more or less than the first one, with the interval: "−41 % (−58 −18)".
fn change(ratio: Option<&RatioToFirst>, own: &str) -> Entry {
    const LARGE: f64 = 2.0;
    const UNKNOWN: f64 = 16.0;
    let Some(ratio) = ratio else { return MISSING.into() };
    if ratio.to == own {
        return MISSING.into();
    }
    let ends = ratio.low.zip(ratio.high);
    let share = |factor: f64| {
        let sign = if factor < 1.0 { "−" } else { "+" };
        format!("{sign}{}", whole_percent((factor - 1.0).abs()))
    };
    let large = |factor: f64| factor >= LARGE;
    let text = match ends {
        None if large(ratio.mean) => format!("{} × (?)", short(ratio.mean)),
        None => format!("{} % (?)", share(ratio.mean)),
        Some((low, high)) if high > UNKNOWN * low => "too few rounds".to_owned(),
        Some((low, high)) if !ratio.significant && large(high) => {
            format!("? ({} {} ×)", short(low), short(high))
        }
        Some((low, high)) if large(ratio.mean) || large(high) => {
            format!("{} × ({} {})", short(ratio.mean), short(low), short(high))
        }
        Some((low, high)) => {
            let sign = match ratio.significant {
                true => format!("{} %", share(ratio.mean)),
                false if are_alike((low, high)) => "≈".to_owned(),
                false => "?".to_owned(),
            };
            format!("{sign} ({} {})", share(low), share(high))
        }
    };
    text.into()
}

/// What is to be read below the table: rates that were searched for, transactions per minute, lost
/// commits.
fn results(document: &Document) -> Vec<Line> {
    let mut lines: Vec<Line> = precision::sweeps(document).into_iter().map(Line::plain).collect();
    lines.extend(sentences::per_minute(document).into_iter().map(Line::plain));
    let graver = |line: &Line| line.emphasis != Emphasis::Plain;
    lines.extend(durability::sentences(document).into_iter().filter(graver));
    lines
}

/// The proof of a broken promise; else the shortest wrong outcome.
fn proof(document: &Document, said: &Brief, tried: &[AtLevel<'_>], width: usize) -> Vec<Spans> {
    let broken = sentences::broken(document);
    if !broken.is_empty() {
        return paragraphs(&broken.into_iter().take(1).map(Line::grave).collect::<Vec<_>>(), width);
    }
    let found = wrong_outcomes(tried);
    let Some((wrong, levels)) = found.first() else { return Vec::new() };
    let more = match found.len() - 1 {
        0 => String::new(),
        more => format!("; {more} more with --details"),
    };
    let answer = said.answer.join(" ");
    let named = wrong.broken.iter().all(|name| answer.contains(&format!("\"{name}\"")));
    let heading = format!("{}{more}", witness::heading(wrong, levels));
    let mut lines = paragraphs(&[Line::plain(heading)], width);
    let steps = witness::steps_and_end(wrong, &masked(tried), width.saturating_sub(INDENT));
    lines.extend(indented(plain(steps)));
    let conditions = witness::conditions(wrong).filter(|_| !named);
    lines.extend(paragraphs(
        &conditions.map(|text| Line::plain(format!("     {text}"))).into_iter().collect::<Vec<_>>(),
        width,
    ));
    lines
}

fn plain(lines: Vec<String>) -> Vec<Spans> {
    lines.into_iter().map(|line| vec![Line::plain(line)]).collect()
}

/// How sure the answer is, what to look at, what may help, and where the rest is.
fn notes(
    document: &Document,
    said: Brief,
    tried: &[AtLevel<'_>],
    width: usize,
    terminal: Terminal,
) -> Vec<Spans> {
    let is_audit = terminal.extent == Extent::Audit;
    let found = if is_audit { histories::anomalies(document) } else { Vec::new() };
    let mut sure: Vec<Line> = said.grounds.into_iter().map(Line::plain).collect();
    if !document.cells.is_empty() {
        // An audit isn't made to measure differences.
        sure.extend(precision::briefly(document).filter(|_| !is_audit).map(Line::plain));
        sure.extend(seen::prevented_ones(document).into_iter().map(Line::plain));
    }
    sure.extend(notes_of_untried(tried).into_iter().map(Line::plain));
    let (failures, remedies): (Vec<Diagnosis>, Vec<Diagnosis>) =
        diagnoses(document).into_iter().partition(Diagnosis::is_failure);
    let failures = failures.into_iter().map(|diagnosis| diagnosis.sentence);
    let doubts = said.doubts.into_iter().chain(failures).chain(flags(document));
    let mut doubts: Vec<Line> = doubts.map(Line::caution).collect();
    doubts.extend(sentences::faults(document).into_iter().map(Line::caution));
    let warnings = document.warnings.iter().filter(|text| !is_about_turns(text));
    doubts.extend(warnings.map(|text| Line::caution(text.clone())));
    let remedies: Vec<Line> =
        remedies.into_iter().take(FEW).map(|diagnosis| Line::plain(diagnosis.sentence)).collect();
    let more = if is_audit {
        "isobench audit --details, isobench check HISTORY, or the page"
    } else {
        "isobench report latest --details, or the page"
    };
    let more = vec![Line::plain(more)];
    let labelled = [
        ("Anomalies", found),
        ("How sure", sure),
        ("Warning", doubts),
        ("Cheaper", remedies),
        ("More", more),
    ];
    labelled.into_iter().flat_map(|(label, lines)| labelled_lines(label, &lines, width)).collect()
}

/// Sentences beside a label, each from a new line.
fn labelled_lines(label: &str, sentences: &[Line], width: usize) -> Vec<Spans> {
    let indent = INDENT + LABEL;
    let mut lines = Vec::new();
    for (number, sentence) in sentences.iter().enumerate() {
        for (row, mut line) in wrap_line(sentence, width.saturating_sub(indent), 0).into_iter().enumerate() {
            let head = if number == 0 && row == 0 { label } else { "" };
            line.insert(0, Line::plain(format!("{}{head:LABEL$}", " ".repeat(INDENT))));
            lines.push(line);
        }
    }
    lines
}

/// The rows whose numbers are to be doubted, each with its flags.
fn flags(document: &Document) -> Option<String> {
    let cells =
        document.cells.iter().filter(|cell| !cell.rounds.is_empty() && !cell.summary.flags.is_empty());
    let mut kinds: Vec<(&str, Vec<String>)> = Vec::new();
    for (flag, cell) in cells.flat_map(|cell| cell.summary.flags.iter().map(move |flag| (flag, cell))) {
        let (kind, name) = (flag.kind.name(), durability::name(document, cell));
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => kinds.push((kind, vec![name])),
        }
    }
    let said = |(kind, names): &(&str, Vec<String>)| match names.as_slice() {
        names if names.len() > FEW => format!("{kind} ({})", counted(names.len() as u64, "row")),
        names => format!("{kind} ({})", names.join("; ")),
    };
    let all: Vec<String> = kinds.iter().map(said).collect();
    (!all.is_empty()).then(|| format!("{}.", capital(&all.join(", "))))
}
