//! The findings as XML, as `JUnit` writes it: a test for each level, which fails if the commands race at it.

use isobench_comparison::{Failure, Outcome};
use isobench_race::{Finding, LevelReport, RaceError, Report};
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

/// What came of commands.
pub(super) struct Tested<'a> {
    pub(super) report: &'a Report,
    pub(super) commands: &'a [String],
    pub(super) problem: Option<&'a RaceError>,
}

impl Tested<'_> {
    /// Its tests, with those that fail, say nothing, and are in error.
    fn counts(&self) -> [usize; 4] {
        let levels = &self.report.levels;
        let problems = usize::from(self.problem.is_some());
        let failures = levels.iter().filter(|level| level.races()).count();
        let skipped = levels.iter().filter(|level| is_skipped(level)).count();
        [levels.len() + problems, failures, skipped, problems]
    }
}

/// Writes the tests of reports.
///
/// # Errors
/// The XML can't be written, which no text leads to.
pub(super) fn render(tested: &[Tested<'_>]) -> Outcome<String> {
    let unwritten = |error: std::io::Error| Failure::Output(format!("--junit: {error}"));
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    let mut counts = [0; 4];
    for of_one in tested.iter().map(Tested::counts) {
        counts.iter_mut().zip(of_one).for_each(|(sum, number)| *sum += number);
    }
    let [tests, failures, skipped, errors] = counts.map(|number| number.to_string());
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None))).map_err(unwritten)?;
    writer
        .create_element("testsuite")
        .with_attribute(("name", "isobench race"))
        .with_attribute(("tests", tests.as_str()))
        .with_attribute(("failures", failures.as_str()))
        .with_attribute(("skipped", skipped.as_str()))
        .with_attribute(("errors", errors.as_str()))
        .write_inner_content(|writer| {
            for Tested { report, commands, problem } in tested {
                let pair = clean(&commands.join(" | "));
                for level in &report.levels {
                    case(writer, level, &pair)?;
                }
                if let Some(problem) = problem {
                    let inner = |writer: &mut Writer<Vec<u8>>| {
                        writer
                            .create_element("error")
                            .with_attribute(("message", clean(&problem.to_string()).as_str()))
                            .write_empty()?;
                        Ok(())
                    };
                    element(writer, &pair, "0").write_inner_content(inner)?;
                }
            }
            Ok(())
        })
        .map_err(unwritten)?;
    let mut bytes = writer.into_inner();
    bytes.push(b'\n');
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn is_skipped(level: &LevelReport) -> bool {
    !level.races() && level.is_inconclusive()
}

fn element<'w>(
    writer: &'w mut Writer<Vec<u8>>,
    name: &str,
    time: &str,
) -> quick_xml::writer::ElementWriter<'w, Vec<u8>> {
    writer
        .create_element("testcase")
        .with_attribute(("classname", "race"))
        .with_attribute(("name", name))
        .with_attribute(("time", time))
}

fn case(writer: &mut Writer<Vec<u8>>, level: &LevelReport, pair: &str) -> std::io::Result<()> {
    let time = format!("{:.3}", level.serial_seconds + level.seconds);
    let test = element(writer, &format!("{}: {pair}", level.level), &time);
    let race = level.findings.iter().find(|finding| finding.verdict.is_race() && finding.repeated);
    if let Some(finding) = race {
        test.write_inner_content(|writer| {
            let message =
                format!("{} in schedule {} {}", finding.verdict.name(), finding.schedule, finding.why);
            writer
                .create_element("failure")
                .with_attribute(("message", clean(message.trim()).as_str()))
                .with_attribute(("type", finding.verdict.name()))
                .write_text_content(BytesText::new(&clean(&statements(finding))))?;
            Ok(())
        })?;
    } else if is_skipped(level) {
        let message = "no schedule says whether the commands race";
        test.write_inner_content(|writer| {
            writer.create_element("skipped").with_attribute(("message", message)).write_empty()?;
            Ok(())
        })?;
    } else {
        test.write_empty()?;
    }
    Ok(())
}

/// The statements in their order, and the differences.
fn statements(finding: &Finding) -> String {
    let steps = finding.steps.iter().map(|step| format!("{}: {}", step.command, step.sql));
    let differences = finding.differences.iter().map(|one| {
        let name = [one.table.as_str(), &one.row, &one.column].into_iter().filter(|part| !part.is_empty());
        let name = name.collect::<Vec<_>>().join(" ");
        format!("{name}: {}; after {}: {}", one.here, finding.nearest, one.serial)
    });
    steps.chain(differences).collect::<Vec<_>>().join("\n")
}

/// A text without the characters that XML can't hold (XML 1.0, §2.2).
fn clean(text: &str) -> String {
    let held =
        |c: &char| matches!(c, '\t' | '\n' | '\r') || (*c >= ' ' && !matches!(c, '\u{fffe}' | '\u{ffff}'));
    text.chars().filter(held).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use isobench_race::{Count, Verdict};

    #[test]
    fn a_level_is_a_test() {
        let finding = Finding {
            verdict: Verdict::WrongState,
            why: String::new(),
            schedule: "A1,B".to_owned(),
            first: 1,
            times: 1,
            repeated: true,
            steps: Vec::new(),
            answers: Vec::new(),
            nearest: "A;B".to_owned(),
            differences: Vec::new(),
        };
        let level = |name: &str| LevelReport { level: name.to_owned(), ..LevelReport::default() };
        let stuck = vec![Count { verdict: Verdict::NotInterleaved, schedules: 1 }];
        let report = Report {
            levels: vec![
                LevelReport { findings: vec![finding], ..level("read committed") },
                LevelReport { planned: 1, tried: 1, verdicts: stuck, ..level("repeatable read") },
                level("serializable"),
            ],
            ..Report::default()
        };
        let commands = ["echo '<a>&\u{1}'".to_owned(), "b".to_owned()];
        let problem = Some(&RaceError::Interrupted);
        let first = Tested { report: &report, commands: &commands, problem };
        let other = Report { levels: vec![level("read committed")], ..Report::default() };
        let second = Tested { report: &other, commands: &commands, problem: None };
        let xml = render(&[first, second]).expect("XML");
        for expected in [
            "tests=\"5\" failures=\"1\" skipped=\"1\" errors=\"1\"",
            "name=\"read committed: echo &apos;&lt;a&gt;&amp;&apos; | b\"",
            "<failure message=\"wrong state in schedule A1,B\" type=\"wrong state\">",
            "<skipped message=",
            "<error message=\"interrupted\"/>",
        ] {
            assert!(xml.contains(expected), "{expected} is missing in\n{xml}");
        }
    }
}
