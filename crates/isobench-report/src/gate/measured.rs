//! The questions of a comparison: whether it is complete, what levels promise, and requirements.

use isobench_result::require::name_of;
use isobench_result::{
    AnomalyFound, BrokenPromise, Cell, Document, Durability, RequirementResult, Round, Verdict,
};

use super::{Answer, Finding, Place, Question, Rule, Severity};

/// The questions of a summarised document with its requirements.
pub fn of_document(document: &Document) -> Vec<Question> {
    let question = |name: String, answer| Question { name, seconds: 0.0, answer };
    let workload = document.cells.first().map_or("", |cell| cell.workload.as_str());
    let complete = match &document.incomplete_reason {
        Some(why) => Answer::Failed(format!("the comparison is incomplete: {why}")),
        None => Answer::Nothing("all that was planned was measured".to_owned()),
    };
    let mut questions = vec![question("the comparison is complete".to_owned(), complete)];
    for cell in document.cells.iter().filter(|cell| !cell.calibration) {
        let seconds = cell.rounds.iter().map(|round| round.seconds).sum();
        let name = format!("{}: keeps what is promised", name_of(document, cell));
        questions.push(Question { name, seconds, answer: promises(cell) });
    }
    let swept = document.sweeps.iter().flat_map(|sweep| &sweep.tried).any(|step| step.broken);
    if swept {
        let wrong = finding(
            Rule::INVARIANT,
            workload,
            "an invariant doesn't hold at a rate that was tried".to_owned(),
        );
        questions.push(question("the search for the highest rate".to_owned(), Answer::Wrong(vec![wrong])));
    }
    for required in &document.requirements {
        questions.extend(requirement(required, workload).map(|(name, answer)| question(name, answer)));
    }
    questions
}

/// A question for each cell that a threshold concerns; one if the reason concerns all.
fn requirement<'a>(
    required: &'a RequirementResult,
    workload: &'a str,
) -> impl Iterator<Item = (String, Answer)> + 'a {
    let threshold = required.requirement.to_string();
    let unmet = move |why: String| Answer::Wrong(vec![finding(Rule::REQUIREMENT, workload, why)]);
    let whole = required.reason.is_some() || required.cells.is_empty();
    let of_all = whole.then(|| {
        let answer = if required.met { Answer::Nothing("met".to_owned()) } else { unmet(required.found()) };
        (threshold.clone(), answer)
    });
    let cells = required.cells.iter().filter(move |_| !whole).map(move |cell| {
        let answer = if cell.met {
            Answer::Nothing(format!("met: {}", cell.describe()))
        } else {
            unmet(format!("{threshold}: {}", cell.describe()))
        };
        (format!("{threshold}: {}", cell.cell), answer)
    });
    of_all.into_iter().chain(cells)
}

/// What the levels of a cell promise.
fn promises(cell: &Cell) -> Answer {
    let mut found: Vec<Finding> = Vec::new();
    if cell.breaks_promise() {
        found.extend(cell.rounds.iter().filter_map(|round| round.verdict.as_ref()).flat_map(broken));
        found.dedup_by(|one, other| one.rule == other.rule);
        if found.is_empty() {
            found.push(finding(
                Rule::INVARIANT,
                &cell.workload,
                "a history shows what the level excludes".to_owned(),
            ));
        }
    }
    for round in &cell.rounds {
        let violated = round.invariants.iter().filter(|one| one.held == Some(false) && one.promised);
        for invariant in violated {
            let detail =
                if invariant.detail.is_empty() { String::new() } else { format!(": {}", invariant.detail) };
            found.push(finding(
                Rule::INVARIANT,
                &cell.workload,
                format!("\"{}\" doesn't hold{detail}", invariant.name),
            ));
        }
    }
    if cell.durability() == Some(Durability::Broken) {
        let lost = cell.settled(|round| round.settlement.lost).unwrap_or(0);
        found.push(finding(
            Rule::LOST_COMMITS,
            &cell.workload,
            format!("{lost} acknowledged commits are lost, or failed ones are there"),
        ));
    }
    if !found.is_empty() {
        return Answer::Wrong(found);
    }
    let verdicts = || cell.rounds.iter().filter_map(|round| round.verdict.as_ref());
    let settled =
        cell.rounds.iter().filter_map(|round| round.faults.as_ref()?.settlement.withheld.as_deref());
    let withheld = verdicts().flat_map(|verdict| &verdict.withheld).map(|one| one.reason.as_str());
    if let Some(why) = withheld.chain(settled).next() {
        return Answer::Open(Finding::undecided(&cell.workload, format!("no verdict: {why}")));
    }
    let checked = |round: &Round| {
        round.verdict.is_some() || round.invariants.iter().any(|invariant| invariant.held.is_some())
    };
    let rounds = cell.rounds.iter().filter(|round| checked(round)).count();
    if rounds == 0 {
        return Answer::Open(Finding::undecided(&cell.workload, "nothing was checked"));
    }
    Answer::Nothing(format!("no broken promise in {rounds} checked rounds, which proves nothing"))
}

/// The anomalies of a history that a level excludes.
fn broken(verdict: &Verdict) -> Vec<Finding> {
    let of_levels = verdict.mixed.iter().flat_map(|mixed| &mixed.broken);
    let of_levels = of_levels.map(|BrokenPromise { promise, anomaly }| (anomaly, promise.clone()));
    let of_all = verdict.anomalies.iter().filter(|anomaly| anomaly.breaks_promise);
    let promised = verdict.promised.clone().unwrap_or_default();
    let all = of_all.map(|anomaly| (anomaly, format!("promised: {promised}")));
    all.chain(of_levels).map(|(anomaly, promise)| excluded(anomaly, &promise)).collect()
}

fn excluded(anomaly: &AnomalyFound, promise: &str) -> Finding {
    let AnomalyFound { name, known_as, witness, statements, .. } = anomaly;
    let mut places: Vec<Place> = Vec::new();
    for place in statements.iter().flatten().map(|text| Place::read(text)) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    Finding {
        rule: Rule::of_anomaly(known_as, format!("{known_as} ({name}), which the level excludes.")),
        severity: Severity::Error,
        message: format!("{known_as} ({name}) in the recorded history; {promise}"),
        witness: witness.clone(),
        places,
    }
}

/// A finding about a workload, which may be a script.
fn finding(rule: Rule, workload: &str, message: String) -> Finding {
    Finding {
        rule,
        severity: Severity::Error,
        message,
        witness: Vec::new(),
        places: vec![Place::of(workload)],
    }
}

#[cfg(test)]
mod tests {
    use isobench_isolation::{EffectiveLevel, Level};
    use isobench_result::{CellLevel, Client, Invariant, Plan, RequiredCell, Server, Withheld, judge};
    use isobench_stats::{LatencyHistogram, Ledger};

    use super::*;

    fn document() -> Document {
        let mut document = Document::new(Server::default(), Client::default(), Plan::default());
        let level = CellLevel::new(Some(Level::Serializable), EffectiveLevel::Standard(Level::Serializable));
        let mut cell = Cell::new("orders", level);
        let second = std::time::Duration::from_secs(1);
        let (ledger, latency) = (Ledger::default(), LatencyHistogram::default());
        cell.rounds.push(Round::from_ledger(1, &ledger, &latency, second, Vec::new()));
        document.cells = vec![cell];
        document.complete = true;
        document.incomplete_reason = None;
        document
    }

    fn promise(document: &Document) -> Answer {
        let name = "serializable: keeps what is promised";
        let questions = of_document(document);
        questions.into_iter().find(|one| one.name == name).expect("a question").answer
    }

    #[test]
    fn a_broken_promise_is_named_and_a_withheld_verdict_is_open() {
        let mut document = document();
        assert!(matches!(promise(&document), Answer::Open(_)), "nothing was checked");
        document.cells[0].rounds[0].verdict = Some(Verdict::default());
        assert!(matches!(promise(&document), Answer::Nothing(_)));
        let withheld = vec![Withheld { reason: "it is empty".to_owned(), doubtful: false }];
        document.cells[0].rounds[0].verdict = Some(Verdict { withheld, ..Verdict::default() });
        assert!(matches!(promise(&document), Answer::Open(one) if one.message == "no verdict: it is empty"));
        let skew = AnomalyFound {
            name: "G2-item".to_owned(),
            known_as: "write skew".to_owned(),
            breaks_promise: true,
            statements: vec![vec!["on_call.sql:4: SELECT 1".to_owned()]],
            ..AnomalyFound::default()
        };
        let other = AnomalyFound { known_as: "lost update".to_owned(), ..AnomalyFound::default() };
        let verdict = Verdict { kept: Some(false), anomalies: vec![skew, other], ..Verdict::default() };
        document.cells[0].rounds[0].verdict = Some(verdict);
        document.cells[0].rounds[0].invariants =
            vec![Invariant::checked("one is on call", false, "2 aren't")];
        let Answer::Wrong(found) = promise(&document) else { panic!("it is broken") };
        let rules: Vec<&str> = found.iter().map(|one| one.rule.id.as_ref()).collect();
        assert_eq!(rules, ["write-skew", "invariant"]);
        assert_eq!(found[0].places[0], Place::read("on_call.sql:4: SELECT 1"));
    }

    #[test]
    fn each_cell_of_a_requirement_is_a_question() {
        let mut document = document();
        let requirement = "anomalies == 0".parse().expect("a requirement");
        document.requirements = judge(&document, &[requirement]);
        let of_requirement = |document: &Document| of_document(document).pop().expect("a question");
        let unknown = of_requirement(&document);
        assert_eq!(unknown.name, "anomalies == 0: serializable");
        assert!(
            matches!(&unknown.answer, Answer::Wrong(one) if one[0].rule == Rule::REQUIREMENT),
            "{unknown:?}"
        );
        let met = RequiredCell {
            cell: "serializable".to_owned(),
            value: Some(0.0),
            met: true,
            ..RequiredCell::default()
        };
        document.requirements[0].cells = vec![met];
        document.requirements[0].met = true;
        assert!(matches!(of_requirement(&document).answer, Answer::Nothing(_)));
        document.complete = false;
        document.incomplete_reason = Some("interrupted".to_owned());
        document.requirements = judge(&document, &[document.requirements[0].requirement.clone()]);
        let questions = of_document(&document);
        assert!(matches!(&questions[0].answer, Answer::Failed(why) if why.contains("interrupted")));
        assert!(
            matches!(questions.last().expect("one").answer, Answer::Wrong(_)),
            "an incomplete result meets none"
        );
    }
}
