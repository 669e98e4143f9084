//! Recorded values: as numbers, as times, and as SQL.

use isobench_capture::Datum;

/// A number with nine digits after the point, in billionths.
pub type Billionths = i128;

/// The value as text, unless it is bytes or a hash.
#[expect(clippy::ref_option, reason = "it is a part of what was recorded")]
pub fn text(value: &Option<Datum>) -> Option<&str> {
    match value {
        Some(Datum::Text(text)) => Some(text),
        _ => None,
    }
}

/// A value as a number.
#[expect(clippy::ref_option, reason = "it is a part of what was recorded")]
pub fn number(value: &Option<Datum>) -> Option<Billionths> {
    let text = text(value)?;
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty()
        || whole.len() > 25
        || fraction.len() > 9
        || !all_digits(whole)
        || !all_digits(fraction)
    {
        return None;
    }
    let units: Billionths = format!("{whole}{fraction:0<9}").parse().ok()?;
    Some(if negative { -units } else { units })
}

/// A number as SQL writes it.
pub fn shown(number: Billionths) -> String {
    let sign = if number < 0 { "-" } else { "" };
    let (whole, fraction) = (number.unsigned_abs() / 1_000_000_000, number.unsigned_abs() % 1_000_000_000);
    let fraction = format!("{fraction:09}");
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// A time in microseconds since 1970, UTC; one without a zone is taken for UTC.
pub fn instant(text: &str) -> Option<i64> {
    let digits = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (digits(0..4)?, digits(5..7)?, digits(8..10)?);
    let marks = text.get(4..5)? == "-" && text.get(7..8)? == "-" && matches!(text.get(10..11)?, " " | "T");
    let (hour, minute, second) = (digits(11..13)?, digits(14..16)?, digits(17..19)?);
    if !marks || text.get(13..14)? != ":" || text.get(16..17)? != ":" {
        return None;
    }
    let rest = &text[19..];
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(after) => {
            after.split_at(after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len()))
        }
        None => ("", rest),
    };
    let micros: i64 = format!("{:0<6}", fraction.get(..fraction.len().min(6))?).parse().ok()?;
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset(zone)?;
    Some(seconds * 1_000_000 + micros)
}

/// The seconds by which a zone is ahead of UTC.
fn offset(zone: &str) -> Option<i64> {
    if zone.is_empty() || zone == "Z" {
        return Some(0);
    }
    let sign = match zone.get(..1)? {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let hours: i64 = zone.get(1..3)?.parse().ok()?;
    let minutes: i64 = zone.get(3..).map_or("", |rest| rest.trim_start_matches(':')).parse().unwrap_or(0);
    Some(sign * (hours * 3_600 + minutes * 60))
}

/// Days since 1970. Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// True if two values are the same, however they are written.
#[expect(clippy::ref_option, reason = "it is a part of what was recorded")]
pub fn same(one: &Option<Datum>, other: &Option<Datum>) -> bool {
    if one == other {
        return true;
    }
    let (Some(first), Some(second)) = (text(one), text(other)) else { return false };
    let truth = |text: &str| match text {
        "t" | "true" => Some(true),
        "f" | "false" => Some(false),
        _ => None,
    };
    let numbers = number(one).zip(number(other)).is_some_and(|(one, other)| one == other);
    let truths = truth(first).zip(truth(second)).is_some_and(|(one, other)| one == other);
    let dated = |text: &str| text.len() >= 10 && text.as_bytes()[4..].contains(&b'-');
    let times = || instant(first).zip(instant(second)).is_some_and(|(one, other)| one == other);
    numbers || truths || dated(first) && dated(second) && times()
}

/// True if pgbench's rules take a part of a text for a variable.
pub fn has_variable(text: &str) -> bool {
    let mut before = ' ';
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let named = letters.peek().is_some_and(|next| next.is_alphabetic() || *next == '_');
        if letter == ':' && before != ':' && named {
            return true;
        }
        before = letter;
    }
    false
}

/// True if a value isn't likely to be equal to another one by accident.
#[expect(clippy::ref_option, reason = "it is a part of what was recorded")]
pub fn is_distinctive(value: &Option<Datum>) -> bool {
    match value {
        Some(Datum::Text(text)) => match number(value) {
            Some(number) => number.abs() >= 1_000_000_000_000,
            None => text.len() >= 6,
        },
        Some(_) => true,
        None => false,
    }
}

/// True for a UUID.
pub fn is_uuid(text: &str) -> bool {
    let parts: Vec<usize> = text.split('-').map(str::len).collect();
    parts == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "NULL is a value, too")]
    fn some(text: &str) -> Option<Datum> {
        Some(Datum::Text(text.to_owned()))
    }

    #[test]
    fn numbers_and_times_are_compared_by_value() {
        assert_eq!(number(&some("-12.50")), Some(-12_500_000_000));
        assert_eq!(shown(-12_500_000_000), "-12.5");
        assert_eq!(number(&some("1.2.3")), None);
        assert!(same(&some("1.50"), &some("1.5")) && same(&some("t"), &some("true")));
        assert!(same(&some("2026-11-25T10:00:00+01:00"), &some("2026-11-25 09:00:00.000+00")));
        assert!(!same(&some("1"), &some("t")) && !same(&None, &some("")));
        assert_eq!(instant("1970-01-02 00:00:01.5"), Some(86_401_500_000));
        assert_eq!(instant("2000-03-01T00:00:00Z"), Some(951_868_800_000_000));
        assert_eq!(instant("no time at all, really"), None);
    }

    #[test]
    fn variables_are_found_as_pgbench_finds_them() {
        assert!(has_variable("'{\"a\":true}'") && has_variable(":é"));
        assert!(!has_variable("'12:30'::time"));
    }
}
