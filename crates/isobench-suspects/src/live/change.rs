//! Values that a request read in a column of a row and then wrote there, and what the new value is made of.

use std::collections::{BTreeMap, BTreeSet};

use super::traffic::{FARTHEST, Ran, RowName, Traffic};

/// The fewest different values of which the same code has to make others in one way, so that it is no accident.
const LEAST: usize = 3;

/// The most digits after the point.
const DIGITS: usize = 9;

/// A column of a row that was read and then written by one request.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) request: usize,
    pub(super) row: RowName,
    pub(super) column: String,
    pub(super) read: At,
    pub(super) write: At,
    /// Numbers that its transaction wrote elsewhere, by statement and column.
    amounts: BTreeMap<(usize, String), i128>,
    code: Code,
}

/// A statement as it ran, with a value.
#[derive(Debug, Clone)]
pub(super) struct At {
    pub(super) transaction: usize,
    pub(super) value: String,
    pub(super) line: u64,
    pub(super) time: [u64; 2],
}

/// The templates and statements that read and wrote, and the column.
type Code = ([Option<usize>; 2], [usize; 2], String, String);

/// How a new value is made of what was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    /// It is the same: the whole row is saved.
    Same,
    /// It is this much more, in billionths.
    More(i128),
}

/// The changes of all requests, each with how its value is made of what was read, if that is certain.
pub(super) fn changes(traffic: &Traffic<'_>) -> Vec<(Change, Option<Made>)> {
    let mut found = Vec::new();
    for (number, request) in traffic.requests.iter().enumerate() {
        let of = |transaction: &usize| {
            let transaction = *transaction;
            traffic.runs[transaction].iter().map(move |ran| (transaction, ran))
        };
        let ran: Vec<(usize, &Ran)> = request.iter().flat_map(of).collect();
        for (at, (transaction, one)) in ran.iter().enumerate() {
            let Some((row, set)) = &one.update else { continue };
            for (column, value) in set {
                let Some((read, place)) = last_read(&ran[..at], row, column) else { continue };
                let numbers = |transaction: usize| traffic.history.numbers[transaction];
                found.push(Change {
                    request: number,
                    row: row.clone(),
                    column: column.clone(),
                    code: (
                        [numbers(read.transaction), numbers(*transaction)],
                        [place, one.run.step],
                        row.0.clone(),
                        column.clone(),
                    ),
                    read,
                    write: At::of(*transaction, one, value),
                    amounts: amounts(traffic, *transaction, one.run.line),
                });
            }
        }
    }
    let mut codes: BTreeMap<&Code, Vec<&Change>> = BTreeMap::new();
    for change in &found {
        codes.entry(&change.code).or_default().push(change);
    }
    let made: BTreeMap<Code, How> =
        codes.into_iter().filter_map(|(code, all)| Some((code.clone(), how(&all)?))).collect();
    let with = |change: Change| {
        let made = made.get(&change.code).and_then(|how| how.of(&change));
        (change, made)
    };
    found.into_iter().map(with).collect()
}

impl At {
    pub(super) fn of(transaction: usize, ran: &Ran, value: &str) -> At {
        At { transaction, value: value.to_owned(), line: ran.run.line, time: ran.run.time }
    }
}

/// What a request knew of a column of a row: the last statement before that returned it, and its number in its
/// template. `None` if that isn't certain, or if the request wrote the column itself since.
fn last_read(before: &[(usize, &Ran)], row: &RowName, column: &str) -> Option<(At, usize)> {
    for (transaction, ran) in before.iter().rev().take(FARTHEST) {
        if let Some(values) = ran.returned(row) {
            if let Some(value) = values.get(column) {
                return Some((At::of(*transaction, ran, value), ran.run.step));
            }
        } else if let Some((other, set)) = &ran.update {
            if other == row && set.iter().any(|(name, _)| name == column) {
                return None;
            }
        } else if ran.may_touch(row) {
            return None;
        }
    }
    None
}

/// Numbers that a transaction wrote by other statements than that of a line.
fn amounts(traffic: &Traffic<'_>, transaction: usize, line: u64) -> BTreeMap<(usize, String), i128> {
    let mut found: BTreeMap<(usize, String), Option<i128>> = BTreeMap::new();
    for ran in traffic.runs[transaction].iter().filter(|ran| ran.run.line != line) {
        for (column, value) in &ran.run.assigned {
            let number = number(value);
            let known = found.entry((ran.run.step, column.clone())).or_insert(number);
            if *known != number {
                *known = None;
            }
        }
    }
    found.into_iter().filter_map(|(place, number)| Some((place, number?))).collect()
}

/// How code makes a value.
enum How {
    Same,
    More(i128),
    /// More or less by the number that stands at a place.
    Amount((usize, String), i128),
}

impl How {
    fn of(&self, change: &Change) -> Option<Made> {
        Some(match self {
            How::Same => Made::Same,
            How::More(more) => Made::More(*more),
            How::Amount(place, sign) => Made::More(change.amounts.get(place)? * sign),
        })
    }
}

/// How code makes a value, if it did it in one way each time, often enough, and with different values.
fn how(all: &[&Change]) -> Option<How> {
    let different: BTreeSet<&str> = all.iter().map(|change| change.read.value.as_str()).collect();
    if different.len() < LEAST {
        return None;
    }
    if all.iter().all(|change| is_same(&change.read.value, &change.write.value)) {
        return Some(How::Same);
    }
    let more: Option<Vec<i128>> = all
        .iter()
        .map(|change| number(&change.write.value)?.checked_sub(number(&change.read.value)?))
        .collect();
    let more = more.filter(|more| more.iter().all(|one| *one != 0))?;
    if more.iter().all(|one| *one == more[0]) {
        return Some(How::More(more[0]));
    }
    let places = all[0].amounts.keys();
    let mut ways = places.flat_map(|place| [1, -1].map(|sign| (place, sign)));
    let fits = |(place, sign): &(&(usize, String), i128)| {
        let amount = |change: &Change| change.amounts.get(*place).map(|amount| amount * sign);
        all.iter().zip(&more).all(|(change, more)| amount(change) == Some(*more))
    };
    ways.find(fits).map(|(place, sign)| How::Amount(place.clone(), sign))
}

/// True if two values are equal, as numbers or as texts.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one == other || number(one).is_some_and(|number_of| number(other) == Some(number_of))
}

/// A decimal number in billionths.
pub(super) fn number(text: &str) -> Option<i128> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 18 || !plain(whole) || !plain(part) || part.len() > DIGITS {
        return None;
    }
    let whole: i128 = whole.parse().ok()?;
    let part: i128 = format!("{part:0<DIGITS$}").parse().ok()?;
    Some(sign * (whole * 10_i128.pow(9) + part))
}

/// A number as text.
pub(super) fn shown(number: i128) -> String {
    let unit = 10_u128.pow(9);
    let (whole, part) = (number.unsigned_abs() / unit, number.unsigned_abs() % unit);
    let sign = if number < 0 { "-" } else { "" };
    let part = format!("{part:09}");
    let part = part.trim_end_matches('0');
    if part.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal() {
        assert_eq!(number("10.50"), Some(10_500_000_000));
        assert_eq!(number("-3"), Some(-3_000_000_000));
        for other in ["", "a", "1e3", "1.2.3", "+1", "1.0000000001", "9999999999999999999"] {
            assert_eq!(number(other), None, "{other}");
        }
        assert_eq!(["10.50", "-0.25", "7"].map(|text| shown(number(text).unwrap())), ["10.5", "-0.25", "7"]);
        assert!(is_same("1.0", "1") && is_same("a", "a") && !is_same("a", "b"));
    }
}
