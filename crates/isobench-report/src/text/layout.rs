//! Lines and columns: a table whose entries have several lines, and wrapped text.
//!
//! Knows widths of characters and nothing about benchmarks.

use unicode_width::UnicodeWidthStr;

use isobench_result::view::{self, Emphasis, Entry, Heading, Line, Medium, Table};

/// A line on a terminal: words that stand beside one another, each with its emphasis.
pub type Spans = Vec<Line>;

/// A table whose entries are lines of text.
struct Texts<'a> {
    columns: &'a [Heading],
    rows: Vec<TextRow<'a>>,
    /// The width of each column.
    widths: Vec<usize>,
}

enum TextRow<'a> {
    Heading(&'a str),
    /// For each column the lines of its entry.
    Lines(Vec<Vec<Line>>),
}

/// True if a table fits with a single blank between columns.
pub fn fits(table: &Table, width: usize) -> bool {
    Texts::of(table).least_width() <= width
}

/// The width of a table with a single blank between columns.
pub fn least_width(table: &Table) -> usize {
    Texts::of(table).least_width()
}

/// The lines of a table without emphasis.
pub fn lines(table: &Table, width: usize) -> Vec<String> {
    self::table(table, width).iter().map(|spans| plain(spans)).collect()
}

/// The lines of a table, with wider gaps where `width` allows. Where it allows no columns at all,
/// each row is a block of lines.
pub fn table(table: &Table, width: usize) -> Vec<Spans> {
    let texts = Texts::of(table);
    if texts.least_width() > width {
        return stacked(table, width);
    }
    let roomy = texts.least_width() + texts.widths.len().saturating_sub(1) <= width;
    let gap = if roomy { "  " } else { " " };
    let heading = |text: &str| vec![Line::plain(text)];
    let has_units = texts.columns.iter().any(|column| !column.unit.is_empty());
    let unit = |column: &Heading| if has_units { heading(&column.unit) } else { Vec::new() };
    let first: Vec<Vec<Line>> =
        texts.columns.iter().map(|column| [heading(&column.title), unit(column)].concat()).collect();
    let mut lines = texts.row_lines(&first, gap);
    let gaps = gap.len() * texts.widths.len().saturating_sub(1);
    lines.push(heading(&"─".repeat(texts.widths.iter().sum::<usize>() + gaps)));
    for (index, row) in texts.rows.iter().enumerate() {
        match row {
            TextRow::Heading(text) => {
                if index > 0 {
                    lines.push(Vec::new());
                }
                lines.extend(wrap_line(&Line::plain(*text), width, 2));
            }
            TextRow::Lines(entries) => lines.extend(texts.row_lines(entries, gap)),
        }
    }
    lines
}

/// The rows of a table as blocks: the first entry, and below it each of the others with the name of
/// its column.
fn stacked(table: &Table, width: usize) -> Vec<Spans> {
    let mut lines: Vec<Spans> = Vec::new();
    let mut below_heading = true;
    for row in &table.rows {
        if !std::mem::take(&mut below_heading) {
            lines.push(Vec::new());
        }
        match row {
            view::Row::Heading(text) => {
                lines.extend(wrap_line(&Line::plain(format!("{text}:")), width, 2));
                below_heading = true;
            }
            view::Row::Entries(entries) => lines.extend(block(&table.columns, entries, width)),
        }
    }
    lines
}

fn block(columns: &[Heading], entries: &[Entry], width: usize) -> Vec<Spans> {
    let Some((name, values)) = entries.split_first() else { return Vec::new() };
    let mut lines = wrap_spans(&in_one_line(name), width, 2);
    let longest = columns.iter().skip(1).map(|column| column.name().width()).max().unwrap_or(0);
    for (column, value) in columns.iter().skip(1).zip(values) {
        let value = in_one_line(value);
        if value.is_empty() {
            continue;
        }
        let name = column.name();
        let blanks = " ".repeat(longest.saturating_sub(name.width()));
        let line = [vec![Line::plain(format!("  {name}{blanks}  "))], value].concat();
        lines.extend(wrap_spans(&line, width, longest + 4));
    }
    lines
}

/// The lines of an entry beside one another: an interval in parentheses, what stands below one
/// another in a table with a stroke between.
fn in_one_line(entry: &Entry) -> Spans {
    let (between, after) = match entry {
        Entry::Estimate(_) | Entry::Percentile { .. } | Entry::Change(_) => (" (", ")"),
        Entry::Stack(_) => (" / ", ""),
        _ => (", ", ""),
    };
    let mut spans = Spans::new();
    for (index, line) in entry.lines(Medium::Text).into_iter().enumerate() {
        let emphasis = line.emphasis;
        if line.text.is_empty() {
            continue;
        }
        let text = if index == 0 { line.text } else { format!("{between}{}{after}", line.text) };
        spans.push(Line { text, emphasis });
    }
    spans
}

impl Texts<'_> {
    fn of(table: &Table) -> Texts<'_> {
        let rows: Vec<TextRow> = table
            .rows
            .iter()
            .map(|row| match row {
                view::Row::Heading(text) => TextRow::Heading(text),
                view::Row::Entries(entries) => {
                    TextRow::Lines(entries.iter().map(|entry| entry.lines(Medium::Text)).collect())
                }
            })
            .collect();
        let mut widths: Vec<usize> =
            table.columns.iter().map(|column| column.title.width().max(column.unit.width())).collect();
        for row in &rows {
            let TextRow::Lines(entries) = row else { continue };
            for (width, lines) in widths.iter_mut().zip(entries) {
                *width = lines.iter().map(|line| line.text.width()).fold(*width, usize::max);
            }
        }
        Texts { columns: &table.columns, rows, widths }
    }

    fn least_width(&self) -> usize {
        self.widths.iter().sum::<usize>() + self.widths.len().saturating_sub(1)
    }

    fn row_lines(&self, entries: &[Vec<Line>], gap: &str) -> Vec<Spans> {
        let height = entries.iter().map(Vec::len).max().unwrap_or(0);
        let nothing = Line::default();
        (0..height)
            .map(|index| {
                let mut spans = Spans::new();
                // Blanks are put before the words that need them, so that none are left at the end.
                let mut blanks = 0;
                for ((lines, width), column) in entries.iter().zip(&self.widths).zip(self.columns) {
                    let line = lines.get(index).unwrap_or(&nothing);
                    let rest = width.saturating_sub(line.text.width());
                    let (before, after) = if column.right { (rest, 0) } else { (0, rest) };
                    blanks += before;
                    if !line.text.is_empty() {
                        if blanks > 0 {
                            spans.push(Line::plain(" ".repeat(blanks)));
                        }
                        spans.push(line.clone());
                        blanks = 0;
                    }
                    blanks += after + gap.len();
                }
                spans
            })
            .collect()
    }
}

/// The words of a line without their emphasis.
pub fn plain(spans: &[Line]) -> String {
    spans.iter().map(|span| span.text.as_str()).collect()
}

/// [`wrap`] of words that have an emphasis.
pub fn wrap_line(line: &Line, width: usize, indent: usize) -> Vec<Spans> {
    wrap_spans(std::slice::from_ref(line), width, indent)
}

/// [`wrap`] of words with several emphases: each letter keeps its own.
fn wrap_spans(spans: &[Line], width: usize, indent: usize) -> Vec<Spans> {
    let letters = |span: &Line| span.text.chars().filter(|letter| *letter != ' ').count();
    let mut emphases = spans.iter().flat_map(|span| std::iter::repeat_n(span.emphasis, letters(span)));
    let mut emphasised = |line: String| {
        let mut spans = Spans::new();
        for letter in line.chars() {
            let last = spans.last().map_or(Emphasis::Plain, |span| span.emphasis);
            let emphasis = if letter == ' ' { last } else { emphases.next().unwrap_or_default() };
            match spans.last_mut() {
                Some(span) if span.emphasis == emphasis => span.text.push(letter),
                _ => spans.push(Line { text: letter.to_string(), emphasis }),
            }
        }
        spans
    };
    wrap(&plain(spans), width, indent).into_iter().map(&mut emphasised).collect()
}

/// Units that stay on the line of their number.
const UNITS: [&str; 4] = ["%", "s", "ms", "×"];

/// Breaks a text into lines of at most `width` columns where it has blanks; all but the first are
/// indented.
///
/// Runs of blanks in the first line are kept, and a unit stays with its number. What is longer than
/// a line stands alone in it.
pub fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let is_unit = UNITS.contains(&word.trim_end_matches(['.', ',', ';', ':', ')']));
        match pieces.last_mut() {
            Some(number) if is_unit => *number = format!("{number} {word}"),
            _ => pieces.push(word.to_owned()),
        }
    }
    let mut pieces = pieces.into_iter();
    let mut lines = Vec::new();
    let mut line = pieces.next().unwrap_or_default();
    for piece in pieces {
        let full = line.width() + 1 + piece.width() > width;
        if full && !line.trim().is_empty() {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent) + &piece));
        } else {
            line = line + " " + &piece;
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_between_words_and_indented() {
        assert_eq!(wrap("one two three four", 9, 2), ["one two", "  three", "  four"]);
        assert_eq!(wrap("a  b c", 20, 2), ["a  b c"]);
        assert_eq!(wrap("incomprehensibility is long", 6, 1), ["incomprehensibility", " is", " long"]);
        assert_eq!(wrap("", 10, 2), [""]);
        assert_eq!(wrap("takes 5 s, or 7 % of it", 9, 0), ["takes", "5 s, or", "7 % of it"]);
        assert_eq!(wrap("(to 7 %): 2 × it", 8, 0), ["(to", "7 %):", "2 × it"]);
    }

    #[test]
    fn broken_text_keeps_its_emphasis() {
        let spans = [Line::plain("one "), Line::grave("two three"), Line::plain(" four")];
        assert_eq!(
            wrap_spans(&spans, 9, 2),
            [
                vec![Line::plain("one "), Line::grave("two")],
                vec![Line::plain("  "), Line::grave("three")],
                vec![Line::plain("  four")]
            ]
        );
    }

    fn table_of(value: Entry) -> Table {
        Table {
            columns: vec![Heading::new("name", "", false), Heading::new("n", "per s", true)],
            rows: vec![
                view::Row::Heading("first".to_owned()),
                view::Row::Entries(vec![Entry::Stack(vec!["é".into(), "→ x".into()]), value]),
            ],
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_line() {
        let table = table_of("12".into());
        assert!(fits(&table, 10) && !fits(&table, 9));
        assert_eq!(
            lines(&table, 10),
            ["name     n", "     per s", "──────────", "first", "é       12", "→ x"]
        );
        assert_eq!(lines(&table, 11)[0], "name      n");
    }

    #[test]
    fn rows_are_blocks_where_columns_do_not_fit() {
        let value = Entry::ratio(0.5, Some((0.4, 0.6)), true);
        assert_eq!(
            lines(&table_of(value), 18),
            ["first:", "é / → x", "  n per s  0.50 ×", "           (−50 %),", "           0.40–0.60"]
        );
        let wide = table_of(Entry::Stack(vec!["1234567890123456".into(), Entry::grave("BAD")]));
        let found = table(&wide, 18);
        assert_eq!(found.last().and_then(|line| line.last()), Some(&Line::grave("/ BAD")));
    }
}
