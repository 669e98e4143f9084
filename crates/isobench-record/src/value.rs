//! Values as text: the binary formats of the usual types, written as the server would write them.
//!
//! Source: PostgreSQL, `src/backend/utils/adt`: the `_recv` and `_out` functions of each type.

use std::fmt::Write as _;

use isobench_capture::Datum;

/// Object ids of types. Source: PostgreSQL, `pg_type.dat`.
pub(crate) mod oid {
    pub(crate) const BOOL: u32 = 16;
    pub(crate) const BYTEA: u32 = 17;
    pub(crate) const CHAR: u32 = 18;
    pub(crate) const NAME: u32 = 19;
    pub(crate) const INT8: u32 = 20;
    pub(crate) const INT2: u32 = 21;
    pub(crate) const INT4: u32 = 23;
    pub(crate) const TEXT: u32 = 25;
    pub(crate) const OID: u32 = 26;
    pub(crate) const XID: u32 = 28;
    pub(crate) const JSON: u32 = 114;
    pub(crate) const FLOAT4: u32 = 700;
    pub(crate) const FLOAT8: u32 = 701;
    pub(crate) const UNKNOWN: u32 = 705;
    pub(crate) const BPCHAR: u32 = 1042;
    pub(crate) const VARCHAR: u32 = 1043;
    pub(crate) const DATE: u32 = 1082;
    pub(crate) const TIME: u32 = 1083;
    pub(crate) const TIMESTAMP: u32 = 1114;
    pub(crate) const TIMESTAMPTZ: u32 = 1184;
    pub(crate) const INTERVAL: u32 = 1186;
    pub(crate) const TIMETZ: u32 = 1266;
    pub(crate) const NUMERIC: u32 = 1700;
    pub(crate) const VOID: u32 = 2278;
    pub(crate) const UUID: u32 = 2950;
    pub(crate) const JSONB: u32 = 3802;
    /// Arrays of the types above, as far as they are in use.
    pub(crate) const ARRAYS: [u32; 19] = [
        199, 1000, 1001, 1003, 1005, 1007, 1009, 1014, 1015, 1016, 1021, 1022, 1028, 1115, 1182, 1185, 1231,
        2951, 3807,
    ];
}

/// The days between 1970-01-01 and 2000-01-01, where PostgreSQL's time begins.
const EPOCH_DAYS: i64 = 10_957;

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// A value in binary format, as text if its type is a usual one, else its bytes.
pub(crate) fn binary(type_oid: u32, bytes: &[u8]) -> Datum {
    match text_of(type_oid, bytes) {
        Some(text) => Datum::Text(text),
        None => Datum::Hex { hex: hex(bytes) },
    }
}

/// A value in text format; its bytes if they aren't UTF-8.
pub(crate) fn text(bytes: &[u8]) -> Datum {
    match std::str::from_utf8(bytes) {
        Ok(text) => Datum::Text(text.to_owned()),
        Err(_) => Datum::Hex { hex: hex(bytes) },
    }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The text of a binary value; `None` if the type isn't a usual one, or the bytes aren't of it.
fn text_of(type_oid: u32, bytes: &[u8]) -> Option<String> {
    Some(match type_oid {
        oid::BOOL => match bytes {
            [0] => "f".to_owned(),
            [1] => "t".to_owned(),
            _ => return None,
        },
        oid::INT2 => i16::from_be_bytes(bytes.try_into().ok()?).to_string(),
        oid::INT4 => i32::from_be_bytes(bytes.try_into().ok()?).to_string(),
        oid::INT8 => i64::from_be_bytes(bytes.try_into().ok()?).to_string(),
        oid::OID | oid::XID => u32::from_be_bytes(bytes.try_into().ok()?).to_string(),
        oid::FLOAT4 => {
            let value = f32::from_be_bytes(bytes.try_into().ok()?);
            special(value.into()).unwrap_or_else(|| float(&format!("{value:e}"), 6))
        }
        oid::FLOAT8 => {
            let value = f64::from_be_bytes(bytes.try_into().ok()?);
            special(value).unwrap_or_else(|| float(&format!("{value:e}"), 15))
        }
        oid::TEXT
        | oid::VARCHAR
        | oid::BPCHAR
        | oid::NAME
        | oid::JSON
        | oid::CHAR
        | oid::UNKNOWN
        | oid::VOID => std::str::from_utf8(bytes).ok()?.to_owned(),
        oid::JSONB => std::str::from_utf8(bytes.strip_prefix(&[1])?).ok()?.to_owned(),
        oid::BYTEA => format!("\\x{}", hex(bytes)),
        oid::UUID => uuid(bytes)?,
        oid::NUMERIC => numeric(bytes)?,
        oid::DATE => match i32::from_be_bytes(bytes.try_into().ok()?) {
            i32::MAX => "infinity".to_owned(),
            i32::MIN => "-infinity".to_owned(),
            days => {
                let (date, era) = date(i64::from(days));
                date + era
            }
        },
        oid::TIMESTAMP => timestamp(bytes, "")?,
        oid::TIMESTAMPTZ => timestamp(bytes, "+00")?,
        oid::TIME => time_of_day(i64::from_be_bytes(bytes.try_into().ok()?)),
        array if oid::ARRAYS.contains(&array) => self::array(bytes)?,
        _ => return None,
    })
}

fn special(value: f64) -> Option<String> {
    if value.is_nan() {
        return Some("NaN".to_owned());
    }
    let sign = if value < 0.0 { "-" } else { "" };
    value.is_infinite().then(|| format!("{sign}Infinity"))
}

/// A float from its shortest digits in scientific notation (`-1.5e3`), as `float8out` lays it out: in
/// scientific notation below 1e-4 and from 10^`precision` on.
fn float(scientific: &str, precision: i32) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= precision {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let text = match usize::try_from(exponent) {
        Err(_) => {
            let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0));
            format!("0.{zeros}{digits}")
        }
        Ok(exponent) if digits.len() <= exponent + 1 => {
            format!("{digits}{}", "0".repeat(exponent + 1 - digits.len()))
        }
        Ok(exponent) => format!("{}.{}", &digits[..=exponent], &digits[exponent + 1..]),
    };
    format!("{sign}{text}")
}

fn uuid(bytes: &[u8]) -> Option<String> {
    let digits = hex(bytes);
    (bytes.len() == 16)
        .then(|| [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-"))
}

/// Source: `numeric_recv`: the number of digits to the base 10,000, the first one's weight, sign, and
/// the decimal digits that are shown.
fn numeric(bytes: &[u8]) -> Option<String> {
    let words: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(|pair| u16::from_be_bytes(*pair)).collect();
    let [count, weight, sign, scale, digits @ ..] = words.as_slice() else { return None };
    if digits.len() != usize::from(*count) || !bytes.len().is_multiple_of(2) {
        return None;
    }
    let sign = match sign {
        0 => "",
        0x4000 => "-",
        0xC000 => return Some("NaN".to_owned()),
        0xD000 => return Some("Infinity".to_owned()),
        0xF000 => return Some("-Infinity".to_owned()),
        _ => return None,
    };
    let weight = i32::from(weight.cast_signed());
    let digit = |place: i32| {
        let index = usize::try_from(weight - place).ok();
        index.and_then(|index| digits.get(index)).copied().unwrap_or(0)
    };
    let mut text = sign.to_owned();
    if weight < 0 {
        text.push('0');
    } else {
        let mut whole = digit(weight).to_string();
        for place in (0..weight).rev() {
            // Writing to a String can't fail.
            let _ = write!(whole, "{:04}", digit(place));
        }
        text += &whole;
    }
    let scale = usize::from(*scale);
    if scale > 0 {
        let mut fraction = String::new();
        let mut place = -1;
        while fraction.len() < scale {
            let _ = write!(fraction, "{:04}", digit(place));
            place -= 1;
        }
        text.push('.');
        text += &fraction[..scale];
    }
    Some(text)
}

/// A date, from days since 2000-01-01, and ` BC` if it is before the year 1. Source: Hinnant,
/// `chrono`-Compatible Low-Level Date Algorithms, `civil_from_days`.
fn date(days: i64) -> (String, &'static str) {
    let shifted = days + EPOCH_DAYS + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (year, suffix) = if year < 1 { (1 - year, " BC") } else { (year, "") };
    (format!("{year:04}-{month:02}-{day:02}"), suffix)
}

fn time_of_day(microseconds: i64) -> String {
    let seconds = microseconds / 1_000_000;
    let mut text = format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let fraction = microseconds % 1_000_000;
    if fraction > 0 {
        let digits = format!(".{fraction:06}");
        text += digits.trim_end_matches('0');
    }
    text
}

fn timestamp(bytes: &[u8], zone: &str) -> Option<String> {
    Some(match i64::from_be_bytes(bytes.try_into().ok()?) {
        i64::MAX => "infinity".to_owned(),
        i64::MIN => "-infinity".to_owned(),
        at => {
            let (date, era) = date(at.div_euclid(DAY));
            format!("{date} {}{zone}{era}", time_of_day(at.rem_euclid(DAY)))
        }
    })
}

/// Source: `array_recv`: dimensions, flags, the elements' type, then length and lower bound of each
/// dimension, then the elements. Only arrays of one dimension that begins at 1.
fn array(bytes: &[u8]) -> Option<String> {
    let word = |at: usize| Some(i32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let element_type = u32::from_be_bytes(bytes.get(8..12)?.try_into().ok()?);
    match word(0)? {
        0 => return Some("{}".to_owned()),
        1 if word(16)? == 1 => {}
        _ => return None,
    }
    let mut elements = Vec::new();
    let mut at = 20;
    for _ in 0..word(12)? {
        let length = word(at)?;
        at += 4;
        let Ok(length) = usize::try_from(length) else {
            elements.push("NULL".to_owned());
            continue;
        };
        let text = text_of(element_type, bytes.get(at..at.checked_add(length)?)?)?;
        elements.push(quoted(&text));
        at += length;
    }
    (at == bytes.len()).then(|| format!("{{{}}}", elements.join(",")))
}

/// An element of an array, in quotes where `array_out` writes some.
fn quoted(text: &str) -> String {
    let special =
        |letter: char| matches!(letter, '"' | '\\' | '{' | '}' | ',') || letter.is_ascii_whitespace();
    if !text.is_empty() && !text.eq_ignore_ascii_case("null") && !text.contains(special) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(type_oid: u32, bytes: &[u8]) -> String {
        match binary(type_oid, bytes) {
            Datum::Text(text) => text,
            Datum::Hex { hex } => format!("hex {hex}"),
            Datum::Hash { .. } => panic!("no hashes here"),
        }
    }

    #[test]
    fn numbers() {
        assert_eq!(shown(oid::INT2, &(-7_i16).to_be_bytes()), "-7");
        assert_eq!(shown(oid::INT4, &7_i32.to_be_bytes()), "7");
        assert_eq!(shown(oid::INT8, &i64::MIN.to_be_bytes()), "-9223372036854775808");
        assert_eq!(shown(oid::INT4, &[1, 2]), "hex 0102");
        assert_eq!(shown(oid::BOOL, &[1]), "t");
        // As SELECT shows them.
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (100.0, "100"),
            (0.1, "0.1"),
            (0.0001, "0.0001"),
            (0.000_012_5, "1.25e-05"),
            (123_456_789_012_345.0, "123456789012345"),
            (1e15, "1e+15"),
            (-1.25e100, "-1.25e+100"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(shown(oid::FLOAT8, &f64::to_be_bytes(value)), text);
        }
        assert_eq!(shown(oid::FLOAT4, &0.1_f32.to_be_bytes()), "0.1");
        assert_eq!(shown(oid::FLOAT4, &1e6_f32.to_be_bytes()), "1e+06");
    }

    #[test]
    fn numerics() {
        // Count, weight, sign, scale, digits; each as `numeric_send` sends them.
        for (words, text) in [
            (&[0, 0, 0, 0][..], "0"),
            (&[0, 0, 0, 2], "0.00"),
            (&[1, 0, 0, 0, 7], "7"),
            (&[2, 0, 0x4000, 2, 12, 3400], "-12.34"),
            (&[1, 1, 0, 0, 1], "10000"),
            (&[3, 1, 0, 1, 1, 2, 5000], "10002.5"),
            (&[1, 0xFFFF, 0, 4, 12], "0.0012"),
            (&[1, 0xFFFE, 0, 6, 1200], "0.000012"),
            (&[0, 0, 0xC000, 0], "NaN"),
            (&[2, 0, 0, 0, 1], "hex 00020000000000000001"),
        ] {
            let bytes: Vec<u8> = words.iter().flat_map(|word: &u16| word.to_be_bytes()).collect();
            assert_eq!(shown(oid::NUMERIC, &bytes), text);
        }
    }

    #[test]
    fn times() {
        for (days, text) in [
            (0, "2000-01-01"),
            (-1, "1999-12-31"),
            (59, "2000-02-29"),
            (9_826, "2026-11-26"),
            (-730_119, "0001-01-01"),
            (-730_120, "0001-12-31 BC"),
            (i32::MAX, "infinity"),
        ] {
            assert_eq!(shown(oid::DATE, &i32::to_be_bytes(days)), text);
        }
        let at = 9_826 * DAY + 36_000_000_000 + 120_000;
        assert_eq!(shown(oid::TIMESTAMP, &at.to_be_bytes()), "2026-11-26 10:00:00.12");
        assert_eq!(shown(oid::TIMESTAMPTZ, &(-1_i64).to_be_bytes()), "1999-12-31 23:59:59.999999+00");
        assert_eq!(shown(oid::TIMESTAMP, &i64::MIN.to_be_bytes()), "-infinity");
        assert_eq!(shown(oid::TIME, &1_000_000_i64.to_be_bytes()), "00:00:01");
    }

    #[test]
    fn texts_and_bytes() {
        assert_eq!(shown(oid::TEXT, "ä".as_bytes()), "ä");
        assert_eq!(shown(oid::TEXT, &[0xff]), "hex ff");
        assert_eq!(shown(oid::JSONB, b"\x01{\"a\": 1}"), "{\"a\": 1}");
        assert_eq!(shown(oid::BYTEA, &[0, 255]), "\\x00ff");
        let uuid: Vec<u8> = (0..16).collect();
        assert_eq!(shown(oid::UUID, &uuid), "00010203-0405-0607-0809-0a0b0c0d0e0f");
        assert_eq!(shown(600, &[1]), "hex 01");
        assert_eq!(text(b"7"), Datum::Text("7".to_owned()));
        assert_eq!(text(&[0xfe]), Datum::Hex { hex: "fe".to_owned() });
    }

    #[test]
    fn arrays() {
        let array = |element: u32, elements: &[Option<&[u8]>]| {
            let mut bytes = Vec::new();
            let dimensions = i32::from(!elements.is_empty());
            for word in [dimensions, 0, element.cast_signed()] {
                bytes.extend(word.to_be_bytes());
            }
            if dimensions == 1 {
                bytes.extend(i32::try_from(elements.len()).expect("few").to_be_bytes());
                bytes.extend(1_i32.to_be_bytes());
            }
            for value in elements {
                let length = value.map_or(-1, |value| i32::try_from(value.len()).expect("short"));
                bytes.extend(length.to_be_bytes());
                bytes.extend_from_slice(value.unwrap_or_default());
            }
            bytes
        };
        let (one, two) = (1_i32.to_be_bytes(), 2_i32.to_be_bytes());
        assert_eq!(shown(1007, &array(oid::INT4, &[Some(&one), None, Some(&two)])), "{1,NULL,2}");
        let texts: [Option<&[u8]>; 4] = [Some(b"a b"), Some(b""), Some(b"x\"y"), Some(b"null")];
        assert_eq!(shown(1009, &array(oid::TEXT, &texts)), "{\"a b\",\"\",\"x\\\"y\",\"null\"}");
        assert_eq!(shown(1007, &array(oid::INT4, &[])), "{}");
        assert_eq!(shown(1007, &[0, 0, 0, 1]), "hex 00000001");
    }
}
