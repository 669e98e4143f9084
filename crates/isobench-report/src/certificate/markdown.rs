//! The certificate as GitHub-flavoured Markdown, for an issue. It has the steps of all that isn't prevented.

use isobench_probe::{CellOutcome, SpecOutcome};
use maud::html;

use super::{
    AtLevel, Certificate, LEGEND, METHOD, OfAnomaly, SPECIFICATIONS, Shown, Specifications, Table, is_bad,
};
use crate::markdown::escape;

/// How the text begins, invisibly.
pub const MARKDOWN_START: &str = "<!-- isobench: certificate -->\n";

/// Writes the text.
pub fn write(certificate: &Certificate<'_>) -> String {
    let Certificate { title, generator, levels, witnesses, specs, limitations } = certificate;
    let mut blocks = vec![
        format!("{MARKDOWN_START}# {}", escape(title)),
        format!("{METHOD} Made by {}.", escape(generator)),
        LEGEND.map(|(mark, meaning)| format!("- **{mark}** {meaning}.")).join("\n"),
    ];
    blocks.extend(levels.iter().flat_map(of_level));
    blocks.push("## Witnesses".to_owned());
    blocks.extend(witnesses.iter().flat_map(of_anomaly));
    blocks.extend(specs.iter().flat_map(specifications));
    blocks.extend((!limitations.is_empty()).then(|| "## Known limitations".to_owned()));
    for known in limitations {
        let (product, seen_in) = (&known.product, known.seen_in.join(", "));
        let line = format!("{product} (seen in {seen_in}): {}. In two psql sessions:", known.why);
        blocks.extend([escape(&line), fenced(&known.reproduction)]);
    }
    blocks.join("\n\n") + "\n"
}

fn of_level(level: &AtLevel<'_>) -> Vec<String> {
    let heading = format!("## {}", escape(level.level));
    let answers = level.answers.iter().map(|answer| escape(answer));
    [heading].into_iter().chain(answers).chain(level.tables.iter().map(table)).collect()
}

fn table(table: &Table<'_>) -> String {
    let servers =
        |servers: &Vec<&str>| servers.iter().map(|name| escape(name)).collect::<Vec<_>>().join("<br>");
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let titles = table.columns.iter().map(|column| servers(&column.servers));
    let titles: Vec<String> = [table.what.to_owned()].into_iter().chain(titles).collect();
    let rule = titles.iter().map(|_| "---".to_owned()).collect();
    let mut lines = vec![line(titles), line(rule)];
    for (number, (name, _)) in table.rows.iter().enumerate() {
        let marks = table
            .marks(number)
            .map(|mark| if is_bad(mark) { format!("**{mark}**") } else { mark.to_owned() });
        lines.push(line([escape(name)].into_iter().chain(marks).collect()));
    }
    lines.join("\n")
}

fn of_anomaly(anomaly: &OfAnomaly<'_>) -> Vec<String> {
    let mut blocks = vec![
        format!("### {}", escape(&anomaly.label)),
        format!("An instance of the standard's phenomenon: {}.", anomaly.phenomenon),
    ];
    for Shown { outcome, steps, places } in &anomaly.shown {
        let (word, how) = outcome.words();
        let text = format!("{how}. {places}");
        blocks.push(match outcome {
            CellOutcome::Prevented(_) => format!("- **{word}**: {}", escape(&text)),
            _ => folded(word, &text, steps),
        });
    }
    blocks
}

fn specifications(specs: &Specifications<'_>) -> Vec<String> {
    let mut blocks = vec!["## Specifications".to_owned(), escape(SPECIFICATIONS), table(&specs.table)];
    for (server, spec) in &specs.shown {
        let why = match &spec.outcome {
            SpecOutcome::Failed(why) => format!(": {why}"),
            _ => String::new(),
        };
        blocks.push(folded(spec.mark(), &format!("{}, {server}{why}", spec.name), &spec.output));
    }
    blocks
}

/// A text below a fold. The line that is always shown is HTML, in which Markdown means nothing.
fn folded(word: &str, line: &str, text: &str) -> String {
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let summary = html! { summary { b { (word) } ": " (line) } }.into_string();
    format!("<details>{summary}\n\n{}\n\n</details>", fenced(text))
}

/// A block of code that no line of the text ends.
fn fenced(text: &str) -> String {
    let runs = text.split(|letter| letter != '~').map(str::len).max().unwrap_or(0);
    let fence = "~".repeat(runs.max(2) + 1);
    format!("{fence}text\n{}\n{fence}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_text_ends_its_block() {
        assert_eq!(fenced("a\n"), "~~~text\na\n~~~");
        assert_eq!(fenced("~~~~\nb"), "~~~~~text\n~~~~\nb\n~~~~~");
    }
}
