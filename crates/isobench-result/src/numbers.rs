//! Numbers as people read them: few digits, a mark where there is none.
//!
//! Not here: which number stands where.

/// The mark in place of a missing number.
pub const MISSING: &str = "–";

/// The number, unless it is infinite or not a number.
pub fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number)
}

/// A number with at least three significant digits, thousands separated: 41,236 or 412 or 41.2 or
/// 4.12.
pub fn short(number: f64) -> String {
    if !number.is_finite() {
        return MISSING.to_owned();
    }
    match number.abs() {
        // Bounds at which rounding would add a digit.
        size if size >= 99.95 => thousands(number),
        size if size >= 9.995 => format!("{number:.1}"),
        size if size >= 0.0995 => format!("{number:.2}"),
        size if size >= 0.000_95 => format!("{number:.3}"),
        size if size > 0.0 => "<0.001".to_owned(),
        _ => "0".to_owned(),
    }
}

/// [`short`], or the mark for a missing number.
pub fn optional(number: Option<f64>) -> String {
    number.map_or_else(|| MISSING.to_owned(), short)
}

/// A share of 0 to 1 as a percentage: 71.2 %. What is neither nothing nor everything is never shown
/// as such.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        _ if !percent.is_finite() => MISSING.to_owned(),
        _ if percent > 0.0 && percent < 0.05 => "<0.1 %".to_owned(),
        _ if (99.95..100.0).contains(&percent) => ">99.9 %".to_owned(),
        _ => format!("{percent:.1} %"),
    }
}

/// A share of 0 to 1 as a number of percent for a sentence, whole from 1 on: 8, 62, 0.3.
pub fn whole_percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        _ if !percent.is_finite() => MISSING.to_owned(),
        _ if percent >= 0.95 => thousands(percent),
        _ if percent >= 0.05 => format!("{percent:.1}"),
        _ if percent > 0.0 => "<0.1".to_owned(),
        _ => "0".to_owned(),
    }
}

/// A count with separated thousands.
pub fn count(number: u64) -> String {
    separate(&number.to_string())
}

/// A number without decimals, thousands separated.
pub fn thousands(number: f64) -> String {
    separate(&format!("{number:.0}"))
}

fn separate(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let mut text = sign.to_owned();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// "1 round", "3 rounds", "2 branches".
pub fn counted(number: u64, thing: &str) -> String {
    let plural = if thing.ends_with("ch") { "es" } else { "s" };
    format!("{} {thing}{}", count(number), if number == 1 { "" } else { plural })
}

/// A number of things whose name is given in the plural: 1 unit of stock, 2 units of stock.
pub fn of_unit(number: u64, unit: &str) -> String {
    match singular(unit).filter(|_| number == 1) {
        Some(one) => format!("1 {one}"),
        None => format!("{} {unit}", count(number)),
    }
}

/// A plural whose first word in `s` is the plural: units of stock, lost increments.
fn singular(unit: &str) -> Option<String> {
    let word = unit.split(' ').find(|word| word.ends_with('s'))?;
    let (before, after) = unit.split_once(word)?;
    Some(format!("{before}{}{after}", word.strip_suffix('s')?))
}

/// A number of a plan, with no more digits than it was given.
pub fn given(number: f64) -> String {
    if number.is_finite() { number.to_string() } else { MISSING.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits() {
        for (number, text) in [
            (0.0, "0"),
            (0.000_01, "<0.001"),
            (0.0123, "0.012"),
            (0.381, "0.38"),
            (9.994, "9.99"),
            (9.996, "10.0"),
            (99.96, "100"),
            (412.4, "412"),
            (1_234_567.0, "1,234,567"),
            (-1234.0, "-1,234"),
            (f64::NAN, "–"),
            (f64::INFINITY, "–"),
        ] {
            assert_eq!(short(number), text, "{number}");
        }
    }

    #[test]
    fn nearly_nothing_isnt_nothing_and_nearly_everything_isnt_everything() {
        for (share, text) in
            [(0.0, "0.0 %"), (0.0001, "<0.1 %"), (0.712, "71.2 %"), (0.9999, ">99.9 %"), (1.0, "100.0 %")]
        {
            assert_eq!(percent(share), text);
        }
    }

    #[test]
    fn plurals_agree() {
        for (number, thing, text) in [
            (1, "round", "1 round"),
            (2000, "round", "2,000 rounds"),
            (1, "branch", "1 branch"),
            (2, "branch", "2 branches"),
        ] {
            assert_eq!(counted(number, thing), text);
        }
    }
}
