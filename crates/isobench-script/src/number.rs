//! Conversion between numbers and text, as in pgbench.

use std::io::Write as _;

/// The number of significant digits of a printed double (`DBL_DIG`).
const SIGNIFICANT: usize = 15;

/// Appends a double as C's `%.15g` prints it, with PostgreSQL's `NaN` and `Infinity`.
pub(crate) fn write_double(value: f64, out: &mut Vec<u8>) {
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
        return;
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    if value.is_infinite() {
        out.extend_from_slice(b"Infinity");
        return;
    }
    // "d.dddde±x" with correctly rounded digits takes at most 22 bytes, which fit on the stack.
    let mut scratch = [0_u8; 32];
    let mut cursor = std::io::Cursor::new(&mut scratch[..]);
    if write!(cursor, "{:.*e}", SIGNIFICANT - 1, value.abs()).is_err() {
        return;
    }
    let length = usize::try_from(cursor.position()).unwrap_or(0);
    let Some(split) = scratch[..length].iter().position(|byte| *byte == b'e') else {
        return;
    };
    let exponent =
        std::str::from_utf8(&scratch[split + 1..length]).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut digits = [0_u8; SIGNIFICANT];
    for (digit, byte) in digits.iter_mut().zip(scratch[..split].iter().filter(|byte| **byte != b'.')) {
        *digit = *byte;
    }
    let used = digits.iter().rposition(|digit| *digit != b'0').map_or(1, |last| last + 1);
    write_digits(&digits[..used], exponent, out);
}

/// Appends significant digits (without trailing zeros) in the notation that `%g` chooses, fixed or
/// scientific.
fn write_digits(digits: &[u8], exponent: i32, out: &mut Vec<u8>) {
    match usize::try_from(exponent) {
        Ok(exponent) if exponent < SIGNIFICANT => {
            let whole = exponent + 1;
            out.extend_from_slice(&digits[..whole.min(digits.len())]);
            out.extend(std::iter::repeat_n(b'0', whole.saturating_sub(digits.len())));
            if digits.len() > whole {
                out.push(b'.');
                out.extend_from_slice(&digits[whole..]);
            }
        }
        Err(_) if exponent >= -4 => {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', exponent.unsigned_abs() as usize - 1));
            out.extend_from_slice(digits);
        }
        _ => {
            out.push(digits[0]);
            if digits.len() > 1 {
                out.push(b'.');
                out.extend_from_slice(&digits[1..]);
            }
            // Writing to a vector can't fail.
            let _ = write!(out, "e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.unsigned_abs());
        }
    }
}

/// The integer at the start of the text, after blanks and a sign, saturated; `None` without a
/// digit.
pub(crate) fn leading_int(text: &str) -> Option<i64> {
    let text = text.trim_start_matches(is_space);
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let mut value: Option<i64> = None;
    for byte in digits.bytes().take_while(u8::is_ascii_digit) {
        let digit = i64::from(byte - b'0');
        let so_far = value.unwrap_or(0).saturating_mul(10);
        value = Some(if negative { so_far.saturating_sub(digit) } else { so_far.saturating_add(digit) });
    }
    value
}

/// C's `isspace` in the C locale.
pub(crate) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r')
}

/// True if pgbench reads the text as an integer: digits after blanks and a sign, or just the sign.
pub(crate) fn looks_like_int(text: &str) -> bool {
    let text = text.trim_start_matches(is_space);
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !text.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Reads a double as C's `strtod` does. Trailing text, overflow and underflow are refused.
pub(crate) fn parse_double(text: &str) -> Option<f64> {
    let text = text.trim_start_matches(is_space);
    let (negative, magnitude) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let sign = if negative { -1.0 } else { 1.0 };
    if ["inf", "infinity"].iter().any(|word| magnitude.eq_ignore_ascii_case(word)) {
        return Some(sign * f64::INFINITY);
    }
    if magnitude.eq_ignore_ascii_case("nan") {
        return Some(f64::NAN);
    }
    if let Some(hex) = magnitude.strip_prefix("0x").or_else(|| magnitude.strip_prefix("0X")) {
        return parse_hex(hex).map(|value| sign * value);
    }
    if !magnitude.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let value: f64 = magnitude.parse().ok()?;
    let mantissa = magnitude.split(['e', 'E']).next().unwrap_or(magnitude);
    let zero = !mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    let in_range = value.is_normal() || zero;
    in_range.then_some(sign * value)
}

/// Hexadecimal integers, which `strtod` accepts too; exact up to 64 bits.
fn parse_hex(digits: &str) -> Option<f64> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, 16).ok().map(|value| value as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: f64) -> String {
        let mut out = Vec::new();
        write_double(value, &mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn doubles_print_like_percent_15_g() {
        // Printed by pgbench 15.
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1 + 0.2, "0.3"),
            (1e15, "1e+15"),
            (1e14, "100000000000000"),
            (123_456_789.123_456_79, "123456789.123457"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (1e100, "1e+100"),
            (9_223_372_036_854_775_807.0, "9.22337203685478e+18"),
            (999_999_999_999_999.9, "1e+15"),
            (f64::from_bits(1), "4.94065645841247e-324"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(shown(value), text);
        }
    }

    #[test]
    fn leading_integers() {
        for (text, value) in [("12ab", Some(12)), (" -3", Some(-3)), ("+", None), ("x", None), ("", None)] {
            assert_eq!(leading_int(text), value, "{text}");
        }
        assert_eq!(leading_int("99999999999999999999"), Some(i64::MAX));
    }
}
