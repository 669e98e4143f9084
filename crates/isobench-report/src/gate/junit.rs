//! Questions as XML, as `JUnit` writes it: a test each, which fails if something is wrong.

use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use quick_xml::writer::ElementWriter;

use super::{Answer, Finding, Question, line};

/// How the element of all tests begins, by which a file of isobench's is recognized.
pub const JUNIT_START: &str = "<testsuite name=\"isobench ";

/// Renders the questions that a command was asked.
///
/// # Errors
/// The XML can't be written, which no text leads to.
pub fn junit(command: &str, questions: &[Question]) -> io::Result<String> {
    let count = |is: fn(&Answer) -> bool| questions.iter().filter(|one| is(&one.answer)).count().to_string();
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    writer
        .create_element("testsuite")
        .with_attribute(("name", format!("isobench {command}").as_str()))
        .with_attribute(("tests", questions.len().to_string().as_str()))
        .with_attribute(("failures", count(|one| matches!(one, Answer::Wrong(_))).as_str()))
        .with_attribute(("skipped", count(|one| matches!(one, Answer::Open(_))).as_str()))
        .with_attribute(("errors", count(|one| matches!(one, Answer::Failed(_))).as_str()))
        .write_inner_content(|writer| questions.iter().try_for_each(|one| case(writer, command, one)))?;
    let mut bytes = writer.into_inner();
    bytes.push(b'\n');
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn case(writer: &mut Writer<Vec<u8>>, command: &str, question: &Question) -> io::Result<()> {
    let test = writer
        .create_element("testcase")
        .with_attribute(("classname", command))
        .with_attribute(("name", attribute(&question.name).as_str()))
        .with_attribute(("time", format!("{:.3}", question.seconds).as_str()));
    test.write_inner_content(|writer| match &question.answer {
        Answer::Nothing(how_far) => {
            writer.create_element("system-out").write_text_content(BytesText::new(&clean(how_far)))?;
            Ok(())
        }
        Answer::Open(finding) => {
            said(writer, "skipped", &finding.message).write_empty()?;
            Ok(())
        }
        Answer::Failed(why) => {
            said(writer, "error", why).write_empty()?;
            Ok(())
        }
        Answer::Wrong(all) => {
            let first = all.first();
            let message = first.map_or("", |finding| &finding.message);
            let kind = first.map_or("", |finding| &finding.rule.id);
            said(writer, "failure", message)
                .with_attribute(("type", kind))
                .write_text_content(BytesText::new(&clean(&witnesses(all))))?;
            Ok(())
        }
    })?;
    Ok(())
}

fn said<'w>(writer: &'w mut Writer<Vec<u8>>, name: &'w str, message: &str) -> ElementWriter<'w, Vec<u8>> {
    writer.create_element(name).with_attribute(("message", attribute(message).as_str()))
}

/// What happens, of all findings.
fn witnesses(all: &[Finding]) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for (number, finding) in all.iter().enumerate() {
        if number > 0 {
            lines.extend(["", &finding.message]);
        }
        lines.extend(finding.witness.iter().map(String::as_str));
    }
    lines.join("\n")
}

/// A text in one line, for an attribute.
fn attribute(text: &str) -> String {
    clean(&line(text))
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
    use crate::gate::{Rule, Severity};

    #[test]
    fn a_question_is_a_test_whatever_its_texts_are() {
        let finding = Finding {
            rule: Rule::WRONG_STATE,
            severity: Severity::Error,
            message: "stock \"1\"\nnot 2".to_owned(),
            witness: vec!["T1 ]]> <b>".to_owned(), "\u{1}T2 &".to_owned()],
            places: Vec::new(),
        };
        let question = |name: &str, answer| Question { name: name.to_owned(), seconds: 1.5, answer };
        let questions = [
            question("echo '<a>&\u{1}' | b", Answer::Wrong(vec![finding.clone(), finding])),
            question("b", Answer::Open(Finding::undecided("b.sql", "not \u{ffff}tried"))),
            question("c", Answer::Nothing("3 < 4 interleavings".to_owned())),
            question("d", Answer::Failed("interrupted".to_owned())),
        ];
        let xml = junit("race", &questions).expect("XML");
        for expected in [
            JUNIT_START,
            "tests=\"4\" failures=\"1\" skipped=\"1\" errors=\"1\"",
            "classname=\"race\" name=\"echo &apos;&lt;a&gt;&amp;&apos; | b\" time=\"1.500\"",
            "<failure message=\"stock &quot;1&quot; not 2\" type=\"wrong-state\">T1 ]]&gt; &lt;b&gt;\nT2 &amp;\n\nstock",
            "<skipped message=\"not tried\"/>",
            "<system-out>3 &lt; 4 interleavings</system-out>",
            "<error message=\"interrupted\"/>",
        ] {
            assert!(xml.contains(expected), "{expected} is missing in\n{xml}");
        }
    }
}
