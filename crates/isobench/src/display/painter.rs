//! Lines at the bottom of a terminal that are updated in place: the control sequences, regardless
//! of the lines' contents.
//!
//! Neither the cursor's look, nor the terminal's mode, nor its screen is changed, so a program that
//! is killed leaves nothing to restore. Each update is one write, which terminals with mode 2026
//! show at once. Progress bar libraries fill each line up to the right edge, which breaks when a
//! terminal is made narrower; hence this module. Source: ECMA-48 (CUU, EL, ED); Contour, "Terminal
//! mode 2026: synchronized output".

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";
const ERASE_LINE_REST: &str = "\x1b[K";
const ERASE_REST: &str = "\x1b[J";

/// Space at the right for the ^C that a terminal echoes, so that it doesn't wrap the line.
const MARGIN: usize = 3;

/// Returns the columns that a line may have on a terminal of `width` columns.
pub const fn room(width: usize) -> usize {
    width.saturating_sub(MARGIN)
}

/// The current contents of the terminal.
#[derive(Debug, Default)]
pub struct Painter {
    /// The widths of the painted lines; the cursor is at the end of the last one.
    painted: Vec<usize>,
}

impl Painter {
    /// Returns the output that replaces the painted lines with these, on a terminal of `width`
    /// columns.
    pub fn paint(&mut self, lines: &[String], width: usize) -> String {
        format!("{BEGIN}{}{}{END}", self.back(width), self.block(lines, width))
    }

    /// Returns the output that puts a text above these lines permanently.
    pub fn paint_below(&mut self, text: &str, lines: &[String], width: usize) -> String {
        let above: Vec<&str> = text.lines().chain([""]).collect();
        let above = above.join("\r\n");
        format!("{BEGIN}{}{ERASE_REST}{above}{}{END}", self.back(width), self.block(lines, width))
    }

    /// Returns the output that removes the painted lines.
    pub fn clear(&mut self, width: usize) -> String {
        if self.painted.is_empty() {
            return String::new();
        }
        let text = format!("{}{ERASE_REST}", self.back(width));
        self.painted.clear();
        text
    }

    /// Returns the way to the start of the first line. A terminal that became narrower has wrapped
    /// lines.
    fn back(&self, width: usize) -> String {
        let rows: usize = self.painted.iter().map(|line| line.div_ceil(width.max(1)).max(1)).sum();
        match rows {
            0 | 1 => "\r".to_owned(),
            rows => format!("\x1b[{}A\r", rows - 1),
        }
    }

    fn block(&mut self, lines: &[String], width: usize) -> String {
        let lines: Vec<String> = lines.iter().map(|line| cut(line, room(width))).collect();
        self.painted = lines.iter().map(|line| line.width()).collect();
        // The last sequence erases everything below, too.
        lines.join(&format!("{ERASE_LINE_REST}\r\n")) + ERASE_REST
    }
}

/// Returns the part of a line that fits, with a mark if it is shortened, and without control
/// characters.
fn cut(line: &str, width: usize) -> String {
    let line: String = line.chars().filter(|letter| !isobench_pgwire::controls(*letter)).collect();
    if line.width() <= width {
        return line;
    }
    let mut room = width.saturating_sub(1);
    let fits = |letter: &char| {
        let needed = letter.width().unwrap_or(0);
        let fits = needed <= room;
        room = room.saturating_sub(needed);
        fits
    };
    let mut start: String = line.chars().take_while(fits).collect();
    start.push_str(if width > 0 { "…" } else { "" });
    start
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use super::*;

    fn lines(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|&line| line.to_owned()).collect()
    }

    fn size(number: u16) -> NonZero<u16> {
        NonZero::new(number).expect("more than nothing")
    }

    /// Returns the rows that a terminal shows after this output, without trailing empty ones.
    fn screen(written: &str, width: u16) -> Vec<String> {
        let mut terminal = vt100::Parser::new(size(12), size(width), 0);
        terminal.process(written.as_bytes());
        let text = terminal.screen().contents();
        text.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    #[test]
    fn lines_are_renewed_in_place() {
        let mut painter = Painter::default();
        let mut written = "$ isobench\r\n".to_owned();
        written += &painter.paint(&lines(&["one", "two", "three"]), 80);
        assert_eq!(screen(&written, 80), ["$ isobench", "one", "two", "three"]);
        written += &painter.paint(&lines(&["1", "22"]), 80);
        assert_eq!(screen(&written, 80), ["$ isobench", "1", "22"]);
        written += &painter.paint_below("note\nmore", &lines(&["a", "b", "c"]), 80);
        assert_eq!(screen(&written, 80), ["$ isobench", "note", "more", "a", "b", "c"]);
        written += &painter.clear(80);
        assert_eq!(screen(&written, 80), ["$ isobench", "note", "more"]);
        assert_eq!(painter.clear(80), "");
    }

    #[test]
    fn lines_that_are_too_long_are_cut() {
        let mut painter = Painter::default();
        assert_eq!(screen(&painter.paint(&lines(&["incomprehensible", "x"]), 10), 10), ["incomp…", "x"]);
        for width in 0..5 {
            painter.paint(&lines(&["long", "→ wide"]), width);
        }
        assert_eq!(cut("漢字漢字", 6), "漢字…");
        assert_eq!(cut("a\x1b[2Jb\n", 9), "a[2Jb");
    }

    #[test]
    fn lines_that_a_narrower_terminal_has_broken_are_all_taken_back() {
        let mut painter = Painter::default();
        painter.paint(&lines(&["0123456789012345", "short", "0123456789012345"]), 80);
        // 2 rows, 1 row, 2 rows; the cursor is in the last of them.
        assert!(painter.paint(&lines(&["x"]), 10).starts_with("\x1b[?2026h\x1b[4A\r"));
    }
}
