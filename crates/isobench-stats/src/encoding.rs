//! The histogram as text: `HdrHistogram`'s compressed V2 encoding in base64, readable by its other
//! libraries.
//!
//! Input isn't trusted, so it is checked before the decoder sees it: sizes are bounded and the
//! counts can't overflow. Not here: what the histogram means.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use crate::histogram::{DIGITS, LatencyHistogram};
use crate::moments::Moments;

/// First bytes of the compressed form; the four after them hold the length of the deflated rest.
const COMPRESSED_COOKIE: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];

/// First bytes of the inflated form.
const INFLATED_COOKIE: u32 = 0x1c84_9313;

/// Length of the fixed fields before the counts.
const HEADER: usize = 40;

/// The most that the counts may take when inflated; a full histogram of three digits needs half a
/// MiB.
const MOST_INFLATED: usize = 4 << 20;

/// Up to here buckets of our own layout are one microsecond wide: the least power of two from which
/// on a microsecond is less than half a unit of the last of [`DIGITS`].
const SINGLE: u64 = 2048;

/// The most latencies that a histogram may claim: integers beyond aren't exact in JSON numbers
/// either.
const MOST_COUNTED: u64 = 1 << 53;

/// A text that isn't a latency histogram.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistogramError {
    /// The text isn't base64.
    #[error("the histogram isn't base64: {0}")]
    NotBase64(String),
    /// The bytes aren't a compressed V2 `HdrHistogram`.
    #[error("the histogram isn't in HdrHistogram's compressed V2 encoding: {0}")]
    NotCompressedV2(String),
    /// The histogram is larger or finer than latencies need.
    #[error("the histogram is refused: {0}")]
    TooLarge(&'static str),
}

impl LatencyHistogram {
    /// The distribution in `HdrHistogram`'s compressed V2 encoding, base64 with padding. Unit of
    /// its values: microseconds.
    ///
    /// Source: `HdrHistogram`, `Histogram.encodeIntoCompressedByteBuffer`.
    ///
    /// # Panics
    /// Never: writing to memory can't fail, and all values lie in the encodable range.
    pub fn to_base64(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.buckets, &mut bytes)
            .expect("memory takes every histogram");
        STANDARD.encode(bytes)
    }

    /// Reads a distribution that [`Self::to_base64`] or another `HdrHistogram` library wrote,
    /// values in microseconds.
    ///
    /// The encoding has no exact sums: mean, standard deviation, minimum and maximum come from the
    /// buckets until [`Self::with_figures`] restores them.
    ///
    /// # Errors
    /// [`HistogramError`], if the text isn't such a histogram, or one that no latencies need (more
    /// than 5 digits, 4 MiB or 2^53 latencies).
    pub fn from_base64(text: &str) -> Result<Self, HistogramError> {
        let bytes = STANDARD
            .decode(text.trim())
            .map_err(|error| HistogramError::NotBase64(error.to_string().trim_end_matches('.').to_owned()))?;
        let inflated = inflate(&bytes)?;
        let own = check(&inflated)?;
        let recorded = if own { own_buckets(&inflated[HEADER..]) } else { foreign_buckets(&inflated)? };
        // Into our own buckets, since another library may use others; but into no more of them than
        // needed, since results are read to be kept.
        let most = recorded.iter().map(|(us, _)| *us).max();
        let mut histogram = LatencyHistogram::up_to(most.unwrap_or_default());
        for (us, count) in recorded {
            let recorded = histogram.buckets.record_n(us, count);
            recorded.map_err(|_| HistogramError::TooLarge("it holds values beyond this machine's memory"))?;
            let middle = histogram.buckets.median_equivalent(us);
            // The moments as far as buckets of microseconds know them.
            histogram.moments.record_many(middle.saturating_mul(1000), count);
        }
        Ok(histogram)
    }

    /// Restores the exact figures that travelled beside the encoded buckets, in milliseconds.
    ///
    /// Figures that no recording has are ignored, and so are missing ones.
    #[must_use]
    pub fn with_figures(mut self, mean_ms: Option<f64>, stddev_ms: Option<f64>, max_ms: Option<f64>) -> Self {
        let figures = (mean_ms, stddev_ms, max_ms, self.min_ms());
        if let (Some(mean), Some(stddev), Some(max), Some(min)) = figures
            && let Some(moments) = Moments::from_figures(self.len(), mean, stddev, min.min(mean), max)
        {
            self.moments = moments;
        }
        self
    }
}

/// A distribution on its way to another machine: its buckets as text, and the exact sums.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EncodedHistogram {
    /// [`LatencyHistogram::to_base64`].
    buckets: String,
    moments: Moments,
}

impl From<&LatencyHistogram> for EncodedHistogram {
    fn from(histogram: &LatencyHistogram) -> EncodedHistogram {
        EncodedHistogram { buckets: histogram.to_base64(), moments: histogram.moments }
    }
}

impl TryFrom<&EncodedHistogram> for LatencyHistogram {
    type Error = HistogramError;

    fn try_from(encoded: &EncodedHistogram) -> Result<LatencyHistogram, HistogramError> {
        let histogram = LatencyHistogram::from_base64(&encoded.buckets)?;
        Ok(LatencyHistogram { moments: encoded.moments, ..histogram })
    }
}

fn inflate(bytes: &[u8]) -> Result<Vec<u8>, HistogramError> {
    let damaged = |what: &str| HistogramError::NotCompressedV2(what.to_owned());
    let (head, rest) = bytes.split_at_checked(8).ok_or_else(|| damaged("it is too short"))?;
    if head[..4] != COMPRESSED_COOKIE {
        return Err(damaged("it doesn't start with the encoding's cookie"));
    }
    let length = u32::from_be_bytes([head[4], head[5], head[6], head[7]]) as usize;
    let deflated = rest.get(..length).ok_or_else(|| damaged("it ends early"))?;
    let mut inflated = Vec::new();
    let read = ZlibDecoder::new(deflated).take(MOST_INFLATED as u64 + 1).read_to_end(&mut inflated);
    read.map_err(|error| damaged(&error.to_string()))?;
    if inflated.len() > MOST_INFLATED {
        return Err(HistogramError::TooLarge("it is larger than 4 MiB"));
    }
    Ok(inflated)
}

/// The largest latency in microseconds, and the number of latencies, of each bucket in another
/// library's layout that isn't empty.
fn foreign_buckets(inflated: &[u8]) -> Result<Vec<(u64, u64)>, HistogramError> {
    let read: Histogram<u64> = Deserializer::new()
        .deserialize(&mut &*inflated)
        .map_err(|error| HistogramError::NotCompressedV2(error.to_string()))?;
    let buckets = read.iter_recorded();
    Ok(buckets.map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value())).collect())
}

/// The same of counts in our own layout, many times faster: buckets of one microsecond up to
/// [`SINGLE`], then half as many again of each next power of two.
fn own_buckets(mut counts: &[u8]) -> Vec<(u64, u64)> {
    let mut recorded = Vec::new();
    let mut place = 0_u64;
    while let Some((number, length)) = varint(counts) {
        counts = &counts[length..];
        if number % 2 == 1 {
            place += number / 2 + 1;
            continue;
        }
        if number > 0 {
            recorded.push((largest_in(place), number / 2));
        }
        place += 1;
    }
    recorded
}

/// The largest latency of the bucket at a place of our own layout.
fn largest_in(place: u64) -> u64 {
    const HALF: u64 = SINGLE / 2;
    let power = (place / HALF).saturating_sub(1);
    let within = place - power * HALF;
    ((within + 1) << power) - 1
}

/// Refuses what would make the decoder allocate without need or overflow. Returns whether the
/// counts are in our own layout.
fn check(inflated: &[u8]) -> Result<bool, HistogramError> {
    let damaged = |what: &str| HistogramError::NotCompressedV2(what.to_owned());
    let (header, counts) =
        inflated.split_at_checked(HEADER).ok_or_else(|| damaged("its header is incomplete"))?;
    let word = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let double_word = |at: usize| (u64::from(word(at)) << 32) | u64::from(word(at + 4));
    if word(4) as usize != counts.len() {
        return Err(damaged("its counts have another length than its header says"));
    }
    if word(12) > 5 {
        return Err(HistogramError::TooLarge("it has more than 5 significant digits"));
    }
    if i64::try_from(double_word(24)).is_err() {
        return Err(HistogramError::TooLarge("its range exceeds 63 bits"));
    }
    let mut total = 0_u64;
    let mut places = 0_u64;
    let mut rest = counts;
    while !rest.is_empty() {
        let (number, length) = varint(rest).ok_or_else(|| damaged("its last count is incomplete"))?;
        rest = &rest[length..];
        // Zigzag: even numbers are counts, odd ones are runs of empty buckets.
        if number % 2 == 0 {
            total = total.saturating_add(number / 2);
            places += 1;
        } else if number / 2 > u64::from(u32::MAX) {
            return Err(damaged("it skips more buckets than there are"));
        } else {
            places = places.saturating_add(number / 2 + 1);
        }
    }
    if total > MOST_COUNTED {
        return Err(HistogramError::TooLarge("it counts more than 2^53 latencies"));
    }
    // The cookie, no offset, the digits, the lowest value, no conversion.
    let layout = (word(0), word(8), word(12), double_word(16), f64::from_bits(double_word(32)));
    Ok(layout == (INFLATED_COOKIE, 0, u32::from(DIGITS), 1, 1.0) && places <= places_up_to(double_word(24)))
}

/// The number of buckets of our own layout up to a latency in microseconds; 0 if that is absurd.
fn places_up_to(us: u64) -> u64 {
    if !(2..=MOST_COUNTED).contains(&us) {
        return 0;
    }
    let mut beyond = SINGLE;
    let mut places = SINGLE;
    while beyond <= us {
        beyond *= 2;
        places += SINGLE / 2;
    }
    places
}

/// One number in `HdrHistogram`'s variant of LEB128: at most nine bytes, the ninth whole.
fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0;
    for (index, byte) in bytes.iter().take(9).enumerate() {
        let last = index == 8;
        let bits = if last { *byte } else { byte & 0x7f };
        number |= u64::from(bits) << (7 * index);
        if last || byte & 0x80 == 0 {
            return Some((number, index + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::new();
        for value in values {
            histogram.record(*value);
        }
        histogram
    }

    proptest! {
        #[test]
        fn our_own_layout_is_read_as_the_library_reads_it(
            values in prop::collection::vec(prop_oneof![0_u64..5_000, 0_u64..u64::from(u32::MAX), 0..1_u64 << 50], 0..60),
        ) {
            let mut buckets = Histogram::<u64>::new_with_bounds(1, 1 << 51, DIGITS).unwrap();
            for value in values {
                buckets.record(value).unwrap();
            }
            let mut bytes = Vec::new();
            hdrhistogram::serialization::V2Serializer::new().serialize(&buckets, &mut bytes).unwrap();
            prop_assert!(check(&bytes).unwrap());
            prop_assert_eq!(own_buckets(&bytes[HEADER..]), foreign_buckets(&bytes).unwrap());
        }
    }

    #[test]
    fn another_layout_is_left_to_the_library() {
        for (low, high, digits) in [(1, 60_000_000, 2), (2, 60_000_000, 3), (1, 60_000_000, 4)] {
            let mut buckets = Histogram::<u64>::new_with_bounds(low, high, digits).unwrap();
            buckets.record(12_345).unwrap();
            let mut bytes = Vec::new();
            hdrhistogram::serialization::V2Serializer::new().serialize(&buckets, &mut bytes).unwrap();
            assert!(!check(&bytes).unwrap(), "{low} {high} {digits}");
            // More counts than the range that the header claims.
            let full = [bytes[..HEADER].to_vec(), vec![2; 100_000]].concat();
            let full = [&full[..4], &100_000_u32.to_be_bytes(), &full[8..]].concat();
            assert!(!check(&full).unwrap());
        }
    }

    #[test]
    fn an_empty_one_comes_back_empty() {
        let again = LatencyHistogram::from_base64(&LatencyHistogram::new().to_base64()).unwrap();
        assert!(again.is_empty());
        assert_eq!(again.mean_ms(), None);
    }

    #[test]
    fn a_text_of_another_library_is_read() {
        // Written by HdrHistogram_py 0.10: 0 µs, and 100 to 100,000 µs in steps of 100.
        let text = "HISTFAAAAFh4nJNpmSzMwMDuzwABzFCaEURcm7yEwf4DRIDpKCP5aCIjUyJRMJ5Jn8pQl0mUSXyQY1EmTjDkHqUpojmZmFEg\
                    6yh/lD+AfGYmJkYEws4clRiREgDeTD3X";
        let histogram = LatencyHistogram::from_base64(text).unwrap();
        assert_eq!((histogram.len(), histogram.min_ms()), (1001, Some(0.0)));
        for (percent, expected) in [(50.0, 50.0), (99.0, 99.0), (100.0, 100.0)] {
            let found = histogram.percentile(percent).unwrap();
            assert!((found - expected).abs() <= expected * 1e-3, "{percent}: {found}");
        }
        // And what is written is what that library wrote, but for the range and the deflation.
        let again = LatencyHistogram::from_base64(&histogram.to_base64()).unwrap();
        assert!(again.buckets == histogram.buckets);
    }

    #[test]
    fn garbage_is_refused_with_a_reason() {
        for (text, reason) in [
            ("!", "the histogram isn't base64"),
            ("", "it is too short"),
            ("AAAAAAAAAAAA", "it doesn't start with the encoding's cookie"),
            ("HISTFAAAAP8AAAAA", "it ends early"),
        ] {
            let message = LatencyHistogram::from_base64(text).unwrap_err().to_string();
            assert!(message.contains(reason), "{text}: {message}");
        }
    }

    /// A V2 histogram with these counts (as raw varints), compressed.
    fn encoded(digits: u32, high: u64, length: Option<u32>, counts: &[u8]) -> String {
        let mut plain = vec![0x1c, 0x84, 0x93, 0x13];
        let length = length.unwrap_or_else(|| u32::try_from(counts.len()).unwrap());
        plain.extend(length.to_be_bytes());
        plain.extend(0_u32.to_be_bytes());
        plain.extend(digits.to_be_bytes());
        plain.extend(1_u64.to_be_bytes());
        plain.extend(high.to_be_bytes());
        plain.extend(1_f64.to_be_bytes());
        plain.extend(counts);
        let mut deflated = Vec::new();
        let mut encoder = flate2::read::ZlibEncoder::new(plain.as_slice(), flate2::Compression::fast());
        encoder.read_to_end(&mut deflated).unwrap();
        let mut bytes = COMPRESSED_COOKIE.to_vec();
        bytes.extend(u32::try_from(deflated.len()).unwrap().to_be_bytes());
        bytes.extend(deflated);
        STANDARD.encode(bytes)
    }

    #[test]
    fn hostile_histograms_are_refused_without_harm() {
        let all_ones = [0xff; 9];
        let almost = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        for (what, text) in [
            ("a length of 4 GiB", encoded(3, 60_000_000, Some(u32::MAX), &[2])),
            ("a run of 2^63 empty buckets", encoded(3, 60_000_000, None, &all_ones)),
            ("a count of 2^63", encoded(3, 60_000_000, None, &almost)),
            (
                "counts beyond the range",
                encoded(3, 10_000, None, &[&[2][..], &[0xff, 0xff, 3], &[2]].concat()),
            ),
            ("an incomplete count", encoded(3, 60_000_000, None, &[0x80])),
            ("too many digits", encoded(9, 60_000_000, None, &[2])),
            ("too large a range", encoded(3, u64::MAX, None, &[2])),
            ("a bomb", encoded(3, 60_000_000, None, &vec![0; MOST_INFLATED + 1])),
            ("a range smaller than its lowest value", encoded(3, 1, None, &[2])),
        ] {
            assert!(LatencyHistogram::from_base64(&text).is_err(), "{what}");
        }
        assert_eq!(LatencyHistogram::from_base64(&encoded(3, 60_000_000, None, &[2])).unwrap().len(), 1);
    }

    #[test]
    fn histograms_of_other_precision_are_read() {
        let other = encoded(5, 60_000_000, None, &[&[0xc7, 0x01][..], &[4]].concat());
        let histogram = LatencyHistogram::from_base64(&other).unwrap();
        assert_eq!((histogram.len(), histogram.percentile(100.0)), (2, Some(0.1)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_round_trip_keeps_the_distribution(values in prop::collection::vec(0_u64..200_000_000_000, 0..100)) {
            let histogram = of(&values);
            let again = LatencyHistogram::from_base64(&histogram.to_base64()).unwrap();
            prop_assert!(again.buckets == histogram.buckets);
            for percent in [50.0, 99.0, 100.0] {
                let (before, after) = (histogram.percentile(percent), again.percentile(percent));
                prop_assert_eq!(before.is_some(), after.is_some());
                if let (Some(before), Some(after)) = (before, after) {
                    prop_assert!((before - after).abs() <= before * 1e-3 + 1e-3, "{before} {after}");
                }
            }
        }

        #[test]
        fn figures_beside_the_text_restore_the_moments(values in prop::collection::vec(1_u64..200_000_000_000, 1..100)) {
            let histogram = of(&values);
            let again = LatencyHistogram::from_base64(&histogram.to_base64()).unwrap();
            let again = again.with_figures(histogram.mean_ms(), histogram.stddev_ms(), histogram.max_ms());
            let mean = histogram.mean_ms().unwrap();
            prop_assert!((again.mean_ms().unwrap() - mean).abs() < mean * 1e-9 + 1e-6);
            prop_assert_eq!(again.max_ms(), histogram.max_ms());
            prop_assert_eq!(again.len(), histogram.len());
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[A-Za-z0-9+/=]{0,200}") {
            let _ = LatencyHistogram::from_base64(&text);
            let _ = LatencyHistogram::from_base64(&format!("HISTFAAA{text}"));
        }

        #[test]
        fn any_counts_are_read_or_refused(counts in prop::collection::vec(any::<u8>(), 0..60), digits in 0_u32..7, high in any::<u64>()) {
            let _ = LatencyHistogram::from_base64(&encoded(digits, high, None, &counts));
        }
    }
}
