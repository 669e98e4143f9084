//! A line of words with its emphasis.
//!
//! Not here: how emphasis looks.

/// A line of words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// The words.
    pub text: String,
    /// The emphasis of the words.
    pub emphasis: Emphasis,
}

/// The emphasis of words. It follows from what they mean, never from how they are spelled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Emphasis {
    /// None.
    #[default]
    Plain,
    /// For what is bad, or mustn't be trusted.
    Grave,
    /// For what is less certain than it looks.
    Caution,
    /// For the answer.
    Headline,
    /// For what explains something beside it, such as an interval.
    Faint,
}

impl Line {
    /// Words without emphasis.
    pub fn plain(text: impl Into<String>) -> Line {
        Line { text: text.into(), emphasis: Emphasis::Plain }
    }

    /// Words that say: don't trust this, or what it says is bad.
    pub fn grave(text: impl Into<String>) -> Line {
        Line { text: text.into(), emphasis: Emphasis::Grave }
    }

    /// Words that say: this is less certain than it looks.
    pub fn caution(text: impl Into<String>) -> Line {
        Line { text: text.into(), emphasis: Emphasis::Caution }
    }

    /// Words that explain what stands beside them.
    pub fn faint(text: impl Into<String>) -> Line {
        Line { text: text.into(), emphasis: Emphasis::Faint }
    }

    /// True if the words are grave.
    pub fn is_grave(&self) -> bool {
        self.emphasis == Emphasis::Grave
    }
}
