//! Numbers on the command line as C's library reads them: `strtol`, `atoi`, `strtod` and `sscanf`.

use std::ops::RangeInclusive;

/// Blanks of C's `isspace`.
const BLANKS: [char; 6] = [' ', '\t', '\n', '\x0b', '\x0c', '\r'];

/// Splits a signed decimal number from the start of a text; `None` if there is no digit.
fn leading(text: &str) -> Option<(i128, &str)> {
    let text = text.trim_start_matches(BLANKS);
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return None;
    }
    let value = unsigned[..digits]
        .bytes()
        .fold(0_i128, |value, digit| value.saturating_mul(10).saturating_add(i128::from(digit - b'0')));
    Some((if text.starts_with('-') { -value } else { value }, &unsigned[digits..]))
}

/// The value of an option that takes an integer; `label` is its name in messages. A text of blanks
/// is 0.
///
/// # Errors
/// It isn't a number, or is outside the range; in pgbench's words.
pub(super) fn integer(text: &str, label: &str, range: &RangeInclusive<i32>) -> Result<i32, String> {
    let (value, rest) = leading(text).unwrap_or((0, text));
    if !rest.trim_start_matches(BLANKS).is_empty() {
        return Err(format!("invalid value \"{text}\" for option {label}"));
    }
    i32::try_from(value)
        .ok()
        .filter(|value| range.contains(value))
        .ok_or_else(|| format!("{label} must be in range {}..{}", range.start(), range.end()))
}

/// `atoi`: the number at the start of a text, or 0; of one that is too large, the low 32 bits.
pub(super) fn atoi(text: &str) -> i32 {
    let value = leading(text).map_or(0, |(value, _)| value);
    let value = value.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
    #[expect(clippy::cast_possible_truncation, reason = "what atoi does")]
    let low = value as i32;
    low
}

/// An unsigned number with nothing after it. A minus sign negates it modulo 2^64, and one that is
/// too large becomes the largest.
pub(super) fn unsigned(text: &str) -> Option<u64> {
    let (value, rest) = leading(text)?;
    if !rest.is_empty() {
        return None;
    }
    let size = u64::try_from(value.unsigned_abs()).ok();
    Some(size.map_or(u64::MAX, |size| if value < 0 { size.wrapping_neg() } else { size }))
}

/// `atof`: the number at the start of a text, or 0.
pub(super) fn atof(text: &str) -> f64 {
    let text = text.trim_start_matches(BLANKS);
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let starts = |word: &str| text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    if starts("inf") {
        return sign * f64::INFINITY;
    }
    if starts("nan") {
        return f64::NAN;
    }
    if starts("0x") {
        return sign * hexadecimal(&text[2..]);
    }
    let (mantissa, after) = digits(text, u8::is_ascii_digit);
    let end = text.len() - after.len();
    let exponent = exponent(after, 'e').map_or(0, |(_, length)| length);
    if mantissa.is_empty() {
        return 0.0;
    }
    sign * text[..end + exponent].parse::<f64>().unwrap_or(0.0)
}

/// Splits digits with an optional point from the start of a text (empty if there is no digit).
fn digits(text: &str, is_digit: impl Fn(&u8) -> bool) -> (&str, &str) {
    let bytes = text.as_bytes();
    let whole = bytes.iter().take_while(|byte| is_digit(byte)).count();
    let part = match bytes.get(whole) {
        Some(b'.') => 1 + bytes[whole + 1..].iter().take_while(|byte| is_digit(byte)).count(),
        _ => 0,
    };
    let length = if whole + part <= usize::from(part > 0) { 0 } else { whole + part };
    text.split_at(length)
}

/// Parses an exponent with its letter: its value and length.
fn exponent(text: &str, letter: char) -> Option<(i32, usize)> {
    let rest = text.strip_prefix([letter, letter.to_ascii_uppercase()])?;
    let unsigned = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    let length = 1 + rest.len() - unsigned.len() + digits;
    let value = leading(rest).filter(|_| digits > 0)?.0.clamp(-10_000, 10_000);
    Some((i32::try_from(value).unwrap_or(0), length))
}

fn hexadecimal(text: &str) -> f64 {
    let (mantissa, after) = digits(text, u8::is_ascii_hexdigit);
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let value = |digits: &str| {
        digits
            .chars()
            .filter_map(|digit| digit.to_digit(16))
            .fold(0.0, |sum, digit| sum * 16.0 + f64::from(digit))
    };
    let places = i32::try_from(part.len()).unwrap_or(i32::MAX);
    let exponent = exponent(after, 'p').map_or(0, |(value, _)| value);
    (value(whole) + value(part) * 16_f64.powi(-places)) * 2_f64.powi(exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_pgbench_s() {
        let parse = |text: &str| integer(text, "-t/--transactions", &(1..=i32::MAX));
        for (text, value) in [("5", 5), ("+5", 5), ("010", 10), ("5  ", 5), ("\x0b5\t", 5), (" 5", 5)] {
            assert_eq!(parse(text), Ok(value), "{text:?}");
        }
        for text in ["", " ", "0", "-1", "2147483648", "99999999999999999999999999999999999999999999"] {
            let error = "-t/--transactions must be in range 1..2147483647";
            assert_eq!(parse(text), Err(error.to_owned()), "{text:?}");
        }
        for text in ["x", "-", "5x", "5 5", "0x10", "99999999999999999999x"] {
            assert_eq!(parse(text), Err(format!("invalid value \"{text}\" for option -t/--transactions")));
        }
    }

    #[test]
    fn atoi_keeps_the_low_bits() {
        for (text, value) in [
            ("3", 3),
            (" 3x", 3),
            ("x", 0),
            ("", 0),
            ("-0", 0),
            ("4294967296", 0),
            ("4294967295", -1),
            ("99999999999999999999", -1),
        ] {
            assert_eq!(atoi(text), value, "{text:?}");
        }
    }

    #[test]
    fn unsigned_numbers_wrap_and_saturate() {
        for (text, value) in [
            ("5", Some(5)),
            (" +5", Some(5)),
            ("-5", Some(u64::MAX - 4)),
            ("18446744073709551616", Some(u64::MAX)),
            ("-18446744073709551616", Some(u64::MAX)),
            ("5 ", None),
            ("0x10", None),
            ("-", None),
            ("", None),
        ] {
            assert_eq!(unsigned(text), value, "{text:?}");
        }
    }

    #[test]
    fn doubles_are_the_start_of_the_text() {
        for (text, value) in [
            ("1.5x", 1.5),
            (" -2e1", -20.0),
            (".5", 0.5),
            ("5.", 5.0),
            (".", 0.0),
            ("e5", 0.0),
            ("1e", 1.0),
            ("1e+", 1.0),
            ("1e400", f64::INFINITY),
            ("x", 0.0),
            ("-Infinity", f64::NEG_INFINITY),
            ("0x1.8p1", 3.0),
            ("0x", 0.0),
        ] {
            assert_eq!(atof(text).to_bits(), f64::to_bits(value), "{text:?}: {}", atof(text));
        }
        assert!(atof("nan").is_nan());
    }
}
