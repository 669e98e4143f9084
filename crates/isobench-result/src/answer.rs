//! The answer of a comparison: which level to use, with which strategy, what it costs and what it
//! buys; or why the run can't tell.
//!
//! | module | concept |
//! |---|---|
//! | `evidence` | what the rounds of each level show about safety |
//! | `price` | what one level costs against another: told apart, the same, or open |
//! | `choice` | which of the levels without damage to use |
//! | `rules` | the table of rules that lead from it to a recommendation |
//! | `brief` | the same in the few lines of a terminal |
//! | `reasons` | what stands beside it: conflicts, waits, lost work, what isn't known |
//! | `words` | cost and damage in words |
//! | `given` | the answer as it is saved |
//!
//! Not here: the sentences about each level (`text/sentences`), the table.

mod brief;
mod choice;
mod evidence;
mod given;
mod price;
mod reasons;
mod rules;
mod words;

use std::borrow::Cow;

use crate::diagnosis::diagnoses;
use crate::document::{Cell, Document};
use crate::durability;
use crate::numbers::counted;
use crate::view::Line;
use crate::words::capital;
use evidence::{Evidence, SafetyEvidence, measured};
use rules::{RULES, decide};

pub use brief::{Brief, Finding, brief, finding};
pub use evidence::factors;
pub use given::given;
pub use rules::OWN_CONDITION;
pub use words::times;

/// The answer to the question of a comparison, in words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The name of the rule that decided; of several combinations, that of the first.
    pub rule: &'static str,
    /// A few sentences, of which the first is the answer itself.
    pub headline: Vec<String>,
    /// What the answer rests on, in a sentence; `None` if nothing was measured.
    pub basis: Option<String>,
    /// The reasons, a sentence each: what the other levels cost and what they spend it on, and what
    /// isn't known.
    pub reasons: Vec<Line>,
}

impl Answer {
    /// The headline as one text.
    pub fn text(&self) -> String {
        self.headline.join(" ")
    }
}

/// Answers from a summarised document. Where several numbers of clients (or other factors) were
/// compared, there is an answer for each.
pub fn answer(document: &Document) -> Answer {
    let groups: Vec<Evidence<'_>> = measured(document);
    let mut answer = match groups.as_slice() {
        _ if !document.complete => of_part(document, &groups),
        [] => Answer {
            rule: "nothing measured",
            headline: vec!["Nothing was measured.".to_owned()],
            ..Answer::default()
        },
        _ if durability::is_settled(document) => Answer {
            rule: "durability",
            headline: durability::headline(document),
            basis: None,
            reasons: reasons::caveats(document),
        },
        [group] => of_group(group),
        several => of_several(document, several),
    };
    answer.basis = basis(document, &groups);
    let diagnoses = diagnoses(document).into_iter().map(|diagnosis| Line::plain(diagnosis.sentence));
    answer.reasons.extend(diagnoses);
    answer.reasons.extend(durability::sentences(document));
    answer
}

/// The cells that the answer recommends: of each combination of the other factors one, several if their
/// costs can't be told apart, or none. None where something happened to the server, which isn't what
/// levels are chosen by.
pub fn recommended(document: &Document) -> Vec<&Cell> {
    if !document.complete || durability::is_settled(document) {
        return Vec::new();
    }
    measured(document).iter().flat_map(|group| decide(group).1.recommended).collect()
}

/// True if more rounds could change what is recommended: levels without damage are neither told apart
/// by their cost nor shown to be alike. Of a summarised document.
pub fn is_open(document: &Document) -> bool {
    !durability::is_settled(document) && measured(document).iter().any(|group| decide(group).1.open)
}

/// The names of the rules, in the order in which they are tried.
pub fn answer_rules() -> Vec<&'static str> {
    ["incomplete", "durability"].into_iter().chain(RULES.iter().map(|rule| rule.name)).collect()
}

/// Of a comparison that ended early nothing is recommended: what is missing might have been better.
fn of_part(document: &Document, groups: &[Evidence<'_>]) -> Answer {
    let nothing = if groups.is_empty() { "Nothing was measured" } else { "No level is recommended" };
    let headline =
        format!("{nothing}, because the comparison is INCOMPLETE: {}.", incomplete_reason(document));
    let cells: Vec<&Cell> = groups.iter().flat_map(|group| &group.candidates).map(|it| it.cell).collect();
    Answer {
        rule: "incomplete",
        headline: vec![headline],
        basis: None,
        reasons: reasons::lost(document, &cells).into_iter().chain(reasons::caveats(document)).collect(),
    }
}

fn of_group(evidence: &Evidence<'_>) -> Answer {
    let (rule, decision) = decide(evidence);
    let mut reasons = reasons::of(evidence, &decision.recommended);
    reasons.extend(reasons::caveats(evidence.document));
    Answer { rule, headline: decision.sentences, basis: None, reasons }
}

/// An answer to more combinations would be a table, which the report has anyway.
const MOST: usize = 12;

fn of_several(document: &Document, groups: &[Evidence<'_>]) -> Answer {
    let decided: Vec<_> = groups.iter().map(decide).collect();
    let names: Vec<String> = decided
        .iter()
        .map(|(_, decision)| {
            let names = decision.recommended.iter().map(|cell| evidence::name(document, cell));
            names.collect::<Vec<_>>().join(" or ")
        })
        .collect();
    let same = names.windows(2).all(|pair| pair[0] == pair[1]);
    let all = groups.len();
    let headline = match names[0].as_str() {
        "" if same => format!("No level is recommended in any of the {all} combinations."),
        name if same => format!("Use {name}, in all {all} combinations."),
        _ => format!("Which level to use differs between the {all} combinations."),
    };
    let place = |group: &Evidence<'_>| capital(&factors(document, group.candidates[0].cell));
    let said = |(group, (_, decision)): (&Evidence<'_>, &(&str, rules::Decision<'_>))| {
        Line::plain(format!("{}: {}", place(group), decision.sentences.join(" ")))
    };
    let mut reasons: Vec<Line> = groups.iter().zip(&decided).take(MOST).map(said).collect();
    if all > MOST {
        let more = counted((all - MOST) as u64, "more combination");
        reasons.push(Line::plain(format!("The table has {more}.")));
    }
    let cells: Vec<&Cell> = groups.iter().flat_map(|group| &group.candidates).map(|it| it.cell).collect();
    reasons.extend(reasons::lost(document, &cells));
    reasons.extend(reasons::caveats(document));
    Answer { rule: decided[0].0, headline: vec![headline], basis: None, reasons }
}

/// What the answer rests on: the histories and the rounds.
fn basis(document: &Document, groups: &[Evidence<'_>]) -> Option<String> {
    let cells = || groups.iter().flat_map(|group| &group.candidates).map(|candidate| candidate.cell);
    let most = cells().map(|cell| cell.summary.rounds).max().filter(|rounds| *rounds > 0)?;
    let least = cells().map(|cell| cell.summary.rounds).min()?;
    let rounds = if least == most {
        counted(most.into(), "round")
    } else {
        format!("{least} to {} of each row", counted(most.into(), "complete round"))
    };
    let verdicts = || cells().filter_map(|cell| cell.summary.verdict.as_ref());
    let committed = verdicts().map(|verdict| verdict.committed).fold(0, u64::saturating_add);
    let doubtful = groups
        .iter()
        .any(|group| group.with(|it| matches!(it, SafetyEvidence::Withheld(_))).next().is_some());
    let witnessed = verdicts().any(|verdict| !verdict.kinds.is_empty());
    let proof = if witnessed {
        "Anomalies are proven; their absence is not."
    } else {
        "That no anomaly was found is no proof that there is none."
    };
    let seen = if groups.iter().any(|group| !group.unseen().is_empty()) {
        ", as far as their statements could be tracked"
    } else {
        ""
    };
    Some(match committed {
        0 => format!("Based on {rounds}; no history was recorded."),
        _ if doubtful => format!("Based on {rounds}; a verdict is withheld."),
        committed => {
            format!("Based on {rounds} and {}{seen}. {proof}", counted(committed, "checked transaction"))
        }
    })
    .filter(|_| !document.cells.is_empty())
}

/// The reason why a comparison ended early.
fn incomplete_reason(document: &Document) -> Cow<'_, str> {
    let reason = document.incomplete_reason.as_deref().unwrap_or("it ended before its time");
    // The whole of it is above the answer.
    let line = reason.lines().next().unwrap_or_default();
    match line.char_indices().nth(LONGEST_REASON) {
        Some((end, _)) => Cow::Owned(format!("{}…", &line[..end])),
        None => Cow::Borrowed(line),
    }
}

/// The most characters of a reason in a headline.
const LONGEST_REASON: usize = 300;
