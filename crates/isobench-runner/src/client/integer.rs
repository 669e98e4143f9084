//! Integers in the server's notation.

/// Parses an integer in the server's notation. (The standard library parses text only, and checking
/// that the bytes are UTF-8 takes as long again.)
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    // Summed up as a negative number, because `i64::MIN` has no positive counterpart.
    let below = digits.iter().try_fold(0_i64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_sub(i64::from(digit))
    })?;
    if negative { Some(below) } else { below.checked_neg() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_those_of_64_bits() {
        for number in [0, 1, -1, 42, -1_234_567, i64::MAX, i64::MIN, i64::MAX - 1, i64::MIN + 1] {
            assert_eq!(integer(number.to_string().as_bytes()), Some(number));
        }
        assert_eq!(integer(b"007"), Some(7));
        let too_large = ["9223372036854775808", "-9223372036854775809", "99999999999999999999"];
        for text in ["", "-", "+7", "1.5", " 1", "1 ", "x", "--1", "1/", "1:"].into_iter().chain(too_large) {
            assert_eq!(integer(text.as_bytes()), None, "{text:?}");
        }
    }
}
