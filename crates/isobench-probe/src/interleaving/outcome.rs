//! The outcome of transactions that ran against each other, compared with those of serial orders.

use std::collections::BTreeSet;

use super::execution::{Answer, Ending, View};
use super::tables::{Changed, Delta, Row, WatchedTable};
use crate::event::Table;

/// What came of one run of some transactions.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Each transaction: what it sent, and the answers.
    pub views: Vec<View>,
    /// How each ended.
    pub endings: Vec<Ending>,
    /// What changed in the tables.
    pub delta: Delta,
    /// What had changed after further transactions, one after the other; `None` if none were run.
    pub later: Option<Delta>,
    /// The conditions that aren't met, by their indexes.
    pub broken: BTreeSet<usize>,
}

/// What differs between two runs of the same order, and so says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Masks {
    /// Columns of tables: indexes of table and column.
    pub columns: BTreeSet<(usize, usize)>,
    /// Columns of answers: transaction, command, column.
    answers: BTreeSet<(usize, usize, usize)>,
    /// Answers as a whole: transaction, command.
    whole: BTreeSet<(usize, usize)>,
    /// Statements: transaction, command.
    sent: BTreeSet<(usize, usize)>,
    /// Conditions.
    conditions: BTreeSet<usize>,
}

/// How an outcome relates to those of serial orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judgement {
    /// An order gives it.
    Serial,
    /// The tables are as an order leaves them, but no order gives a transaction the answers that it got.
    WrongAnswer,
    /// No order leaves the tables so.
    Damage,
}

impl Outcome {
    /// The transactions that committed and count in every order.
    pub fn committed(&self) -> Vec<usize> {
        self.ended(|view| !leaves_nothing(view))
    }

    /// The transactions that committed, declined and changed nothing: orders may leave them out.
    pub fn declined(&self) -> Vec<usize> {
        self.ended(leaves_nothing)
    }

    fn ended(&self, wanted: impl Fn(&View) -> bool) -> Vec<usize> {
        let done = |number: &usize| self.endings[*number] == Ending::Done && wanted(&self.views[*number]);
        (0..self.views.len()).filter(done).collect()
    }
}

fn leaves_nothing(view: &View) -> bool {
    view.declined && !view.wrote
}

impl Masks {
    /// True if values that an order doesn't determine go on into other columns or into statements, so
    /// that it may show only later what they are good for.
    pub fn matter_later(&self, tables: &[WatchedTable]) -> bool {
        let goes_on = |(table, column): &(usize, usize)| !tables[*table].by_itself[*column];
        !self.sent.is_empty() || self.columns.iter().any(goes_on)
    }

    /// Adds what differs between two runs of the same order. Returns false if they took different
    /// ways, so that nothing can be compared.
    #[must_use]
    pub fn learn(&mut self, one: &Outcome, other: &Outcome) -> bool {
        self.learn_tables(&one.delta, &other.delta);
        self.conditions.extend(one.broken.symmetric_difference(&other.broken));
        if let (Some(one), Some(other)) = (&one.later, &other.later) {
            self.learn_tables(one, other);
        }
        let ways = |outcome: &Outcome| -> Vec<Vec<usize>> {
            outcome.views.iter().map(|view| view.sent.iter().map(|(command, _)| *command).collect()).collect()
        };
        if ways(one) != ways(other) || one.endings != other.endings {
            return false;
        }
        for (number, (one, other)) in one.views.iter().zip(&other.views).enumerate() {
            for ((command, one), (_, other)) in one.sent.iter().zip(&other.sent) {
                if one != other {
                    self.sent.insert((number, *command));
                }
            }
            for ((command, one), (_, other)) in one.answers.iter().zip(&other.answers) {
                self.learn_answer(number, *command, one, other);
            }
        }
        true
    }

    fn learn_tables(&mut self, one: &Delta, other: &Delta) {
        let none = Changed::default();
        let tables: BTreeSet<usize> = one.tables.keys().chain(other.tables.keys()).copied().collect();
        for table in tables {
            let of = |delta: &Delta| delta.tables.get(&table).cloned().unwrap_or_else(|| none.clone());
            let (one, other) = (of(one), of(other));
            for (one, other) in [(&one.added, &other.added), (&one.removed, &other.removed)] {
                let width = one.iter().chain(other).map(Vec::len).max().unwrap_or(0);
                let differs = |column: &usize| values(one, *column) != values(other, *column);
                self.columns.extend((0..width).filter(differs).map(|column| (table, column)));
            }
        }
    }

    fn learn_answer(&mut self, number: usize, command: usize, one: &Answer, other: &Answer) {
        match (one, other) {
            (Answer::Rows { table: one, .. }, Answer::Rows { table: other, .. })
                if one.rows.len() == other.rows.len() =>
            {
                let differs = |column: &usize| values(&one.rows, *column) != values(&other.rows, *column);
                let columns = (0..one.columns.len()).filter(differs);
                self.answers.extend(columns.map(|column| (number, command, column)));
            }
            _ if one == other => {}
            _ => {
                self.whole.insert((number, command));
            }
        }
    }

    /// The difference without what is masked; rows that differ only there are the same.
    fn tables(&self, delta: &Delta) -> Delta {
        let mut shown = Delta::default();
        for (table, changed) in &delta.tables {
            let masked = |rows: &[Row]| -> Vec<Row> {
                let hide = |row: &Row| -> Row {
                    let value = |(column, value): (usize, &Option<String>)| {
                        if self.columns.contains(&(*table, column)) { None } else { value.clone() }
                    };
                    row.iter().enumerate().map(value).collect()
                };
                let mut rows: Vec<Row> = rows.iter().map(hide).collect();
                rows.sort();
                rows
            };
            let (mut removed, mut added) = (masked(&changed.removed), masked(&changed.added));
            removed.retain(|row| match added.iter().position(|other| other == row) {
                Some(place) => {
                    added.remove(place);
                    false
                }
                None => true,
            });
            if !removed.is_empty() || !added.is_empty() {
                shown.tables.insert(*table, Changed { removed, added });
            }
        }
        shown
    }

    /// What a transaction made of its answers, as far as it is determined: the answers themselves if
    /// it only reads, because they are all it is for; else the statements that it sent, into which
    /// it put those that it used.
    fn product(&self, number: usize, view: &View) -> Vec<(usize, Product)> {
        let sent = |(command, text): &(usize, String)| {
            let masked = self.sent.contains(&(number, *command));
            (*command, Product::Sent(if masked { String::new() } else { text.clone() }))
        };
        if view.wrote {
            return view.sent.iter().map(sent).collect();
        }
        let answers = |(command, answer): &(usize, Answer)| {
            let masked = self.whole.contains(&(number, *command));
            let product = match answer {
                _ if masked => Product::Sent(String::new()),
                Answer::Tag(tag) => Product::Sent(tag.clone()),
                Answer::Rows { ordered, table } => {
                    Product::Told(self.rows(number, *command, *ordered, table))
                }
            };
            (*command, product)
        };
        view.answers.iter().map(answers).collect()
    }

    /// True if the client was shown the same in two runs of a transaction, as far as that is determined.
    pub fn shows_the_same(&self, number: usize, one: &View, other: &View) -> bool {
        let shown = |view: &View| -> Vec<(usize, Vec<Row>)> {
            let answers = view.answers.iter().filter(|(command, _)| {
                view.shown.contains(command) && !self.whole.contains(&(number, *command))
            });
            answers
                .filter_map(|(command, answer)| match answer {
                    Answer::Rows { ordered, table } => {
                        Some((*command, self.rows(number, *command, *ordered, table)))
                    }
                    Answer::Tag(_) => None,
                })
                .collect()
        };
        shown(one) == shown(other)
    }

    fn rows(&self, number: usize, command: usize, ordered: bool, table: &Table) -> Vec<Row> {
        let hide = |row: &Row| -> Row {
            let value = |(column, value): (usize, &Option<String>)| {
                if self.answers.contains(&(number, command, column)) { None } else { value.clone() }
            };
            row.iter().enumerate().map(value).collect()
        };
        let mut rows: Vec<Row> = table.rows.iter().map(hide).collect();
        if !ordered {
            rows.sort();
        }
        rows
    }

    /// The conditions that an outcome breaks, but none of these orders.
    pub fn broken<'o>(
        &self,
        outcome: &Outcome,
        orders: impl IntoIterator<Item = &'o Outcome>,
    ) -> BTreeSet<usize> {
        let mut broken = &outcome.broken - &self.conditions;
        for serial in orders {
            broken.retain(|condition| !serial.broken.contains(condition));
        }
        broken
    }

    /// Judges an outcome by those of serial orders of the same transactions. Each order comes with
    /// the numbers of its transactions.
    pub fn judge<'o>(
        &self,
        outcome: &Outcome,
        orders: impl IntoIterator<Item = (&'o [usize], &'o Outcome)>,
    ) -> Judgement {
        let tables = self.tables(&outcome.delta);
        let later = outcome.later.as_ref().map(|delta| self.tables(delta));
        let mut judgement = Judgement::Damage;
        for (order, serial) in orders {
            let same_tables = self.tables(&serial.delta) == tables
                && self.broken(outcome, [serial]).is_empty()
                && serial.later.as_ref().map(|delta| self.tables(delta)) == later;
            if !same_tables {
                continue;
            }
            let same = |number: &usize| {
                if serial.endings[*number] != Ending::Done {
                    return false;
                }
                let (ours, theirs) = (&outcome.views[*number], &serial.views[*number]);
                self.product(*number, ours) == self.product(*number, theirs)
            };
            if order.iter().all(same) {
                return Judgement::Serial;
            }
            judgement = Judgement::WrongAnswer;
        }
        judgement
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Product {
    Sent(String),
    Told(Vec<Row>),
}

/// The values of a column, sorted.
fn values(rows: &[Row], column: usize) -> Vec<Option<&String>> {
    let mut values: Vec<Option<&String>> =
        rows.iter().map(|row| row.get(column).and_then(Option::as_ref)).collect();
    values.sort();
    values
}

/// All orders of some transactions, the given one first.
pub fn orders(numbers: &[usize]) -> Vec<Vec<usize>> {
    let Some((first, _)) = numbers.split_first() else { return vec![Vec::new()] };
    let mut all = Vec::new();
    for number in numbers {
        let rest: Vec<usize> = numbers.iter().copied().filter(|other| other != number).collect();
        for mut order in orders(&rest) {
            order.insert(0, *number);
            all.push(order);
        }
    }
    debug_assert!(all[0][0] == *first);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[&str]) -> Row {
        values.iter().map(|value| Some((*value).to_owned())).collect()
    }

    fn delta(added: &[&[&str]]) -> Delta {
        let mut added: Vec<Row> = added.iter().map(|values| row(values)).collect();
        added.sort();
        Delta { tables: [(0, Changed { removed: Vec::new(), added })].into() }
    }

    fn reader(answers: &str) -> View {
        let table = Table { columns: vec!["n".to_owned()], rows: vec![row(&[answers])] };
        View { answers: vec![(0, Answer::Rows { ordered: false, table })], ..View::default() }
    }

    fn writer(sent: &str) -> View {
        View { sent: vec![(0, sent.to_owned())], wrote: true, ..View::default() }
    }

    fn outcome(views: Vec<View>, delta: Delta) -> Outcome {
        let endings = views.iter().map(|_| Ending::Done).collect();
        Outcome { views, endings, delta, later: None, broken: BTreeSet::new() }
    }

    fn judged(masks: &Masks, outcome: &Outcome, serial: &[Outcome]) -> Judgement {
        let all = [0, 1];
        masks.judge(outcome, serial.iter().map(|serial| (&all[..], serial)))
    }

    #[test]
    fn tables_that_no_order_leaves_are_damage() {
        let none = Masks::default();
        let serial = [outcome(vec![writer("a"), writer("b")], delta(&[&["1", "2"]]))];
        let lost = outcome(vec![writer("a"), writer("b")], delta(&[&["1", "1"]]));
        assert_eq!(judged(&none, &lost, &serial), Judgement::Damage);
        assert_eq!(judged(&none, &serial[0].clone(), &serial), Judgement::Serial);
    }

    #[test]
    fn what_a_reader_is_told_counts_and_what_a_writer_does_not_use_does_not() {
        let none = Masks::default();
        let same = || delta(&[&["1"]]);
        let serial = [outcome(vec![writer("a"), reader("2")], same())];
        assert_eq!(
            judged(&none, &outcome(vec![writer("a"), reader("1")], same()), &serial),
            Judgement::WrongAnswer
        );
        let answers = View { answers: reader("7").answers, ..writer("a") };
        assert_eq!(judged(&none, &outcome(vec![answers, reader("2")], same()), &serial), Judgement::Serial);
    }

    #[test]
    fn what_a_client_is_shown_is_compared_without_what_goes_into_variables() {
        let none = Masks::default();
        let shown = |answers: &str, shown: Vec<usize>| View { shown, ..reader(answers) };
        assert!(!none.shows_the_same(0, &shown("1", vec![0]), &shown("2", vec![0])));
        assert!(none.shows_the_same(0, &shown("1", Vec::new()), &shown("2", Vec::new())));
        let mut masks = Masks::default();
        assert!(
            masks.learn(&outcome(vec![reader("1")], delta(&[])), &outcome(vec![reader("2")], delta(&[])))
        );
        assert!(masks.shows_the_same(0, &shown("1", vec![0]), &shown("2", vec![0])));
    }

    #[test]
    fn who_fails_in_an_order_is_no_explanation_of_who_does_not() {
        let none = Masks::default();
        let mut serial = outcome(vec![writer("a"), writer("b")], delta(&[]));
        serial.endings[1] = Ending::Failed("line 1".to_owned());
        let found = outcome(vec![writer("a"), writer("b")], delta(&[]));
        assert_ne!(judged(&none, &found, &[serial]), Judgement::Serial);
    }

    #[test]
    fn what_differs_in_one_order_is_masked() {
        let mut masks = Masks::default();
        let run = |id: &str, value: &str| outcome(vec![writer("a"), reader(id)], delta(&[&[id, value]]));
        assert!(masks.learn(&run("11", "x"), &run("1011", "x")));
        assert_eq!(masks.columns, BTreeSet::from([(0, 0)]));
        assert_eq!(judged(&masks, &run("15", "x"), &[run("11", "x")]), Judgement::Serial);
        assert_eq!(judged(&masks, &run("15", "y"), &[run("11", "x")]), Judgement::Damage);
    }

    #[test]
    fn a_condition_that_no_order_breaks_is_damage() {
        let run = |broken: &[usize]| Outcome {
            broken: broken.iter().copied().collect(),
            ..outcome(vec![writer("a"), writer("b")], delta(&[&["1"]]))
        };
        let mut masks = Masks::default();
        assert_eq!(judged(&masks, &run(&[0]), &[run(&[]), run(&[1])]), Judgement::Damage);
        assert_eq!(judged(&masks, &run(&[0]), &[run(&[]), run(&[0])]), Judgement::Serial);
        assert_eq!(judged(&masks, &run(&[]), &[run(&[0])]), Judgement::Serial);
        assert_eq!(masks.broken(&run(&[0, 1]), [&run(&[1])]), BTreeSet::from([0]));
        assert!(masks.learn(&run(&[]), &run(&[0])), "one that isn't the same twice says nothing");
        assert_eq!(judged(&masks, &run(&[0]), &[run(&[])]), Judgement::Serial);
    }

    #[test]
    fn a_refusal_may_be_left_out() {
        let refused = View { declined: true, ..View::default() };
        let found = outcome(vec![writer("a"), refused], Delta::default());
        assert_eq!((found.committed(), found.declined()), (vec![0], vec![1]));
    }

    #[test]
    fn all_orders_are_tried() {
        assert_eq!(orders(&[0, 1, 2]).len(), 6);
        assert_eq!(orders(&[2, 0])[0], [2, 0]);
        assert_eq!(orders(&[]), [Vec::<usize>::new()]);
    }
}
