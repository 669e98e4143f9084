//! The forms of values, as the server prints them and as statements have them.

use std::borrow::Cow;
use std::cmp::Ordering;

/// The form of a column's values in a log. NULL is [`super::NULL`] in any form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueForm {
    /// An integer of up to 64 bits.
    Integer,
    /// A boolean: 0 or 1.
    Boolean,
    /// A text; the log numbers the texts. Only equality and patterns are known, and only for
    /// deterministic collations, in which equal texts are equal byte by byte.
    Text,
    /// A `uuid`; the log numbers the texts, which are as the server prints them. Only equality is
    /// known.
    Uuid,
    /// A `numeric`; the log numbers the texts, which have no zeros at their ends.
    Decimal,
    /// A `date`: days.
    Date,
    /// A `timestamp without time zone`: microseconds.
    Timestamp,
    /// A `timestamp with time zone`: microseconds.
    Instant,
}

/// Days from the year 0 to 1 January 2000.
const TO_2000: i64 = 730_485;

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

impl ValueForm {
    /// True if values are texts, which the log numbers.
    #[must_use]
    pub fn is_numbered(self) -> bool {
        matches!(self, Self::Text | Self::Uuid | Self::Decimal)
    }

    /// The text that stands for a value of a numbered form, the same for equal values; `None` if the
    /// text is no such value, or isn't understood.
    #[must_use]
    pub fn canonical(self, text: &str) -> Option<Cow<'_, str>> {
        match self {
            Self::Text => Some(Cow::Borrowed(text)),
            Self::Uuid => uuid(text).map(Cow::Owned),
            Self::Decimal if matches!(text, "NaN" | "Infinity" | "-Infinity") => Some(Cow::Borrowed(text)),
            Self::Decimal => decimal(text).map(Cow::Borrowed),
            _ => None,
        }
    }

    /// The number of a date or a time, from 1 January 2000; `None` if the text is no such value in ISO
    /// 8601, or has a zone where the server would ignore it, or none where it would add the session's.
    #[must_use]
    pub fn moment(self, text: &str) -> Option<i64> {
        match text {
            "infinity" => return Some(i64::MAX),
            "-infinity" => return Some(i64::MIN + 1),
            _ => {}
        }
        let (text, negative) = match text.strip_suffix(" BC") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let (date, time) = match text.split_once([' ', 'T']) {
            Some((date, time)) => (date, Some(time)),
            None => (text, None),
        };
        let days = days(date, negative)?;
        match (self, time) {
            (Self::Date, None) => Some(days),
            (Self::Timestamp, None) => days.checked_mul(DAY),
            (Self::Timestamp, Some(time)) => days.checked_mul(DAY)?.checked_add(of_day(time)?),
            (Self::Instant, Some(time)) => {
                let zone = time.find(['Z', '+', '-'])?;
                let behind = zone_of(&time[zone..])?;
                days.checked_mul(DAY)?.checked_add(of_day(&time[..zone])?)?.checked_sub(behind)
            }
            _ => None,
        }
    }
}

/// The elements of an array as the server prints it, `{1,NULL,2}`; `None` for NULL. Nothing if it has
/// more than one dimension, or elements in quotes.
pub fn array_elements(text: &str) -> Option<Vec<Option<&str>>> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    if inner.is_empty() {
        return Some(Vec::new());
    }
    let odd = |char: char| char.is_whitespace() || matches!(char, '"' | '\\' | '{' | '}');
    let element = |text| match text {
        "" => None,
        text if text.eq_ignore_ascii_case("null") => Some(None),
        text => Some(Some(text)),
    };
    if inner.contains(odd) { None } else { inner.split(',').map(element).collect() }
}

/// A number of digits, and nothing else.
fn digits(text: &str, count: std::ops::RangeInclusive<usize>) -> Option<i64> {
    let plain = count.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// The days of `2024-02-29` since 1 January 2000, in the Gregorian calendar.
fn days(date: &str, before_christ: bool) -> Option<i64> {
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let (year, month, day) = (digits(year, 4..=6)?, digits(month, 2..=2)?, digits(day, 2..=2)?);
    let year = if before_christ { 1 - year } else { year };
    let leap = year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0);
    let longest = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if parts.next().is_some() || !(1..=longest).contains(&day) || year == 0 && !before_christ {
        return None;
    }
    // Years that start in March have the leap day at their end.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let in_years = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // 1 March of the year 0 is the 60th day after its 1 January.
    Some(in_years + (153 * month + 2) / 5 + day - 1 + 60 - TO_2000)
}

/// The microseconds of `10:30`, `10:30:00` or `10:30:00.5` since midnight.
fn of_day(time: &str) -> Option<i64> {
    let (whole, fraction) = match time.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (time, None),
    };
    let mut parts = whole.split(':');
    let hours = digits(parts.next()?, 2..=2).filter(|hours| *hours < 24)?;
    let minutes = digits(parts.next()?, 2..=2).filter(|minutes| *minutes < 60)?;
    let seconds = match parts.next() {
        Some(seconds) => digits(seconds, 2..=2).filter(|seconds| *seconds < 60)?,
        None if fraction.is_none() => 0,
        None => return None,
    };
    let micros = match fraction {
        Some(fraction) => {
            let given = digits(fraction, 1..=6)?;
            given * 10_i64.pow(6 - u32::try_from(fraction.len()).ok()?)
        }
        None => 0,
    };
    parts.next().is_none().then_some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros)
}

/// The microseconds of `Z`, `+02`, `-03:30` or `+00:00:15`.
fn zone_of(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let (sign, rest) = match zone.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let mut seconds = 0;
    let mut unit = 3600;
    for part in rest.split(':') {
        seconds += digits(part, 2..=2).filter(|value| *value < 60)? * unit;
        unit /= 60;
    }
    (rest.len() <= 8 && seconds < 16 * 3600).then_some(sign * seconds * 1_000_000)
}

/// A `uuid` as the server prints it.
fn uuid(text: &str) -> Option<String> {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths = groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]);
    let plain = lengths && groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()));
    plain.then(|| text.to_ascii_lowercase())
}

/// A decimal without zeros at the end of its fraction: the server keeps them, and they don't count.
fn decimal(text: &str) -> Option<&str> {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (1, rest),
        None => (0, text),
    };
    let (whole, fraction) = match unsigned.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (unsigned, None),
    };
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let plain = number(whole) && (whole == "0" || !whole.starts_with('0')) && fraction.is_none_or(number);
    if !plain {
        return None;
    }
    let kept = match fraction {
        Some(_) => text.trim_end_matches('0').trim_end_matches('.'),
        None => text,
    };
    Some(if &kept[sign..] == "0" { "0" } else { kept })
}

/// The order of two decimals in the form that stands for them; `None` if one isn't such.
pub(super) fn decimal_order(left: &str, right: &str) -> Option<Ordering> {
    let parts = |text: &'_ str| -> Option<(bool, String, String)> {
        let text = decimal(text)?;
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        Some((negative, whole.to_owned(), fraction.to_owned()))
    };
    let (left, right) = (parts(left)?, parts(right)?);
    let size = |(_, whole, fraction): &(bool, String, String), other: &(bool, String, String)| {
        whole.len().cmp(&other.1.len()).then_with(|| whole.cmp(&other.1)).then_with(|| fraction.cmp(&other.2))
    };
    Some(match (left.0, right.0) {
        (false, false) => size(&left, &right),
        (true, true) => size(&right, &left),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_server() {
        // By PostgreSQL 15: extract(epoch from x - '2000-01-01').
        for (form, text, expected) in [
            (ValueForm::Date, "2000-01-01", Some(0)),
            (ValueForm::Date, "2024-02-29", Some(8_825)),
            (ValueForm::Date, "1999-12-31", Some(-1)),
            (ValueForm::Date, "0001-01-01 BC", Some(-730_485)),
            (ValueForm::Date, "2023-02-29", None),
            (ValueForm::Date, "2024-02-29 10:00", None),
            (ValueForm::Timestamp, "2000-01-01", Some(0)),
            (ValueForm::Timestamp, "2000-01-01 00:00:01.5", Some(1_500_000)),
            (ValueForm::Timestamp, "2000-01-02T00:00", Some(DAY)),
            (ValueForm::Timestamp, "2000-01-01 00:00:00+00", None),
            (ValueForm::Timestamp, "infinity", Some(i64::MAX)),
            (ValueForm::Timestamp, "now", None),
            (ValueForm::Instant, "2000-01-01 02:00:00+02", Some(0)),
            (ValueForm::Instant, "1999-12-31 20:30:00-03:30", Some(0)),
            (ValueForm::Instant, "2000-01-01T00:00:00.000001Z", Some(1)),
            (ValueForm::Instant, "2000-01-01 00:00:00", None),
            (ValueForm::Instant, "2000-01-01", None),
            (ValueForm::Instant, "2000-01-01 24:00:00Z", None),
            (ValueForm::Instant, "2000-01-01 00:00:00.0000001Z", None),
        ] {
            assert_eq!(form.moment(text), expected, "{text}");
        }
    }

    #[test]
    fn arrays_of_plain_elements_are_read() {
        assert_eq!(array_elements("{}"), Some(Vec::new()));
        assert_eq!(array_elements("{7,null,x}"), Some(vec![Some("7"), None, Some("x")]));
        for text in ["{a,}", "{,}", "{\"a\"}", "{{1}}", "{a b}", "1", "{1"] {
            assert_eq!(array_elements(text), None, "{text}");
        }
    }

    #[test]
    fn equal_values_have_one_text() {
        for (form, text, expected) in [
            (
                ValueForm::Uuid,
                "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
                Some("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
            ),
            (ValueForm::Uuid, "a0eebc999c0b4ef8bb6d6bb9bd380a11", None),
            (ValueForm::Decimal, "10.50", Some("10.5")),
            (ValueForm::Decimal, "10.00", Some("10")),
            (ValueForm::Decimal, "100", Some("100")),
            (ValueForm::Decimal, "-0.00", Some("0")),
            (ValueForm::Decimal, "0.10", Some("0.1")),
            (ValueForm::Decimal, "1e3", None),
            (ValueForm::Decimal, "NaN", Some("NaN")),
            (ValueForm::Decimal, "007", None),
            (ValueForm::Decimal, "", None),
        ] {
            assert_eq!(form.canonical(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn decimals_are_in_their_order() {
        let ordered = ["-12", "-3.5", "-3.45", "-0.1", "0", "0.05", "0.1", "0.11", "2", "10", "10.01"];
        for (place, left) in ordered.iter().enumerate() {
            for (other, right) in ordered.iter().enumerate() {
                assert_eq!(decimal_order(left, right), Some(place.cmp(&other)), "{left} {right}");
            }
        }
    }
}
