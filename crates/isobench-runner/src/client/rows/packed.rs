//! Arrays of records in PostgreSQL's text form: `{"(1,2,733)","(4,\"a b\",734)"}` (PostgreSQL
//! manual, "Array Input and Output Syntax", "Composite Type Input and Output Syntax").

use super::Fields;

/// Buffers for reading arrays.
#[derive(Debug, Default)]
pub(super) struct Packed {
    /// An element without the array's quotes.
    element: Vec<u8>,
    /// The fields of a record without its quotes, one after the other.
    bytes: Vec<u8>,
    /// The end of each field in `bytes`, and whether it is NULL.
    ends: Vec<(usize, bool)>,
}

impl Packed {
    /// Calls a function with the fields of each record. Returns false if the text isn't an array of
    /// records.
    pub(super) fn each(&mut self, array: &[u8], mut record: impl FnMut(&[Option<&[u8]>])) -> bool {
        let inner = array.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}"));
        let Some(mut rest) = inner else { return false };
        while !rest.is_empty() {
            let Some(after) = self.element(rest) else { return false };
            rest = match after {
                [] => after,
                [b',', more @ ..] if !more.is_empty() => more,
                _ => return false,
            };
            if self.element == b"NULL" {
                continue;
            }
            if !self.record() {
                return false;
            }
            let mut start = 0;
            let field = |(end, null): &(usize, bool)| {
                let field = (!null).then(|| &self.bytes[start..*end]);
                start = *end;
                field
            };
            let fields: Fields<'_> = self.ends.iter().map(field).collect();
            record(&fields);
        }
        true
    }

    /// Reads one element into the buffer. Returns what follows it.
    fn element<'t>(&mut self, text: &'t [u8]) -> Option<&'t [u8]> {
        self.element.clear();
        let Some(quoted) = text.strip_prefix(b"\"") else {
            let end = text.iter().position(|byte| *byte == b',').unwrap_or(text.len());
            // A record with several fields has commas, and is quoted.
            self.element.extend_from_slice(&text[..end]);
            return Some(&text[end..]);
        };
        let mut bytes = quoted.iter().enumerate();
        while let Some((place, byte)) = bytes.next() {
            match byte {
                b'"' => return Some(&quoted[place + 1..]),
                b'\\' => self.element.push(*bytes.next()?.1),
                byte => self.element.push(*byte),
            }
        }
        None
    }

    /// Splits the element into the fields of a record.
    fn record(&mut self) -> bool {
        self.bytes.clear();
        self.ends.clear();
        let inner = self.element.strip_prefix(b"(").and_then(|rest| rest.strip_suffix(b")"));
        let Some(text) = inner else { return false };
        let (mut quoted, mut given) = (false, false);
        let mut bytes = text.iter().peekable();
        while let Some(byte) = bytes.next() {
            match byte {
                b'"' if quoted && bytes.peek() == Some(&&b'"') => {
                    bytes.next();
                    self.bytes.push(b'"');
                }
                b'"' => quoted = !quoted,
                b'\\' => {
                    let Some(next) = bytes.next() else { return false };
                    self.bytes.push(*next);
                }
                b',' if !quoted => {
                    self.ends.push((self.bytes.len(), !given));
                    given = false;
                    continue;
                }
                byte => self.bytes.push(*byte),
            }
            given = true;
        }
        self.ends.push((self.bytes.len(), !given));
        !quoted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The records of an array, each as its fields with `|` between them; NULL is `∅`.
    fn records(array: &str) -> Option<Vec<String>> {
        let mut all = Vec::new();
        let understood = Packed::default().each(array.as_bytes(), |fields| {
            let texts = fields.iter().map(|field| field.map_or("∅".into(), String::from_utf8_lossy));
            all.push(texts.collect::<Vec<_>>().join("|"));
        });
        understood.then_some(all)
    }

    #[test]
    fn texts_of_the_server_are_read() {
        // Printed by PostgreSQL 15.
        for (array, expected) in [
            ("{}", &[][..]),
            ("{\"(1,2,733)\",\"(4,\\\"a b\\\",734)\"}", &["1|2|733", "4|a b|734"]),
            ("{\"(,\\\"\\\",\\\"a\\\"\\\"b\\\\\\\\c,d\\\")\"}", &["∅||a\"b\\c,d"]),
            ("{(7),NULL}", &["7"]),
        ] {
            assert_eq!(
                records(array).as_deref(),
                Some(expected.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>().as_slice()),
                "{array}"
            );
        }
    }

    #[test]
    fn other_texts_are_not() {
        for text in ["", "{", "{(1)", "{\"(1\"}", "{1}", "{(1),}", "{\"(1)}", "{\"(\\\"1)\"}"] {
            assert_eq!(records(text), None, "{text}");
        }
    }
}
