//! The text in which PostgreSQL stores trees of nodes, such as in `pg_proc.prosqlbody`.
//!
//! An object is `{NAME :field value …}`, a list `(value …)`, nothing `<>`. All else is a token, in which a
//! backslash escapes the next character. A value of a constant is its length and its bytes in brackets. The
//! form is that of `nodeToString()`, and the same in versions 14 to 18.

/// The deepest nesting that is read: the server's own limit is its stack.
const MOST_DEPTH: usize = 500;

/// A part of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// Nothing.
    Null,
    /// A number, a word or a name, without its escapes.
    Token(String),
    /// The bytes of a constant.
    Bytes(Vec<u8>),
    /// A list.
    List(Vec<Node>),
    /// An object.
    Object(Object),
}

/// An object with its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its name, in capitals.
    pub name: String,
    /// Its fields, in order.
    pub fields: Vec<(String, Node)>,
}

/// A text that isn't a tree of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    /// Something else stands at this byte.
    #[error("byte {0} of the tree is unexpected")]
    Unexpected(usize),
    /// It ends too early.
    #[error("the tree is incomplete")]
    Incomplete,
    /// It is nested too deeply.
    #[error("the tree is nested too deeply")]
    TooDeep,
}

impl Node {
    /// Reads a tree.
    ///
    /// # Errors
    /// The text has another form.
    pub fn read(text: &str) -> Result<Node, NodeError> {
        let mut reader = Reader { text, at: 0, depth: 0 };
        let node = reader.value()?;
        reader.space();
        if reader.at == text.len() { Ok(node) } else { Err(NodeError::Unexpected(reader.at)) }
    }

    /// The elements of a list; none of anything else.
    pub fn elements(&self) -> &[Node] {
        if let Node::List(elements) = self { elements } else { &[] }
    }

    /// The object, if it is one.
    pub fn object(&self) -> Option<&Object> {
        if let Node::Object(object) = self { Some(object) } else { None }
    }

    /// The token, if it is one.
    pub fn token(&self) -> Option<&str> {
        if let Node::Token(token) = self { Some(token) } else { None }
    }

    /// The number, if it is one.
    pub fn number(&self) -> Option<i64> {
        self.token()?.parse().ok()
    }
}

impl Object {
    /// The value of a field; `None` if there is no such field, or several.
    pub fn get(&self, field: &str) -> Option<&Node> {
        let mut found = self.fields.iter().filter(|(name, _)| name == field);
        let (_, value) = found.next()?;
        found.next().is_none().then_some(value)
    }
}

struct Reader<'t> {
    text: &'t str,
    /// The next byte.
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\n' | b'\t')) {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<Node, NodeError> {
        self.space();
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(NodeError::TooDeep);
        }
        let value = match self.peek().ok_or(NodeError::Incomplete)? {
            b'(' => {
                self.at += 1;
                let mut elements = Vec::new();
                while !self.ends(b')')? {
                    elements.push(self.value()?);
                }
                Node::List(elements)
            }
            b'{' => {
                self.at += 1;
                Node::Object(self.object()?)
            }
            b')' | b'}' => return Err(NodeError::Unexpected(self.at)),
            _ if self.text[self.at..].starts_with("<>") => {
                self.at += 2;
                Node::Null
            }
            _ => {
                let token = self.token()?;
                match self.bytes()? {
                    Some(bytes) => Node::Bytes(bytes),
                    None => Node::Token(token),
                }
            }
        };
        self.depth -= 1;
        Ok(value)
    }

    /// The fields of an object. The first value after a field's name belongs to it, whatever it is: a name
    /// may begin with a colon.
    fn object(&mut self) -> Result<Object, NodeError> {
        let name = self.token()?;
        let mut fields = Vec::new();
        while !self.ends(b'}')? {
            let place = self.at;
            let field = self.token()?;
            let field = field.strip_prefix(':').ok_or(NodeError::Unexpected(place))?.to_owned();
            fields.push((field, self.value()?));
        }
        Ok(Object { name, fields })
    }

    /// The bytes of a constant, if they follow its length.
    fn bytes(&mut self) -> Result<Option<Vec<u8>>, NodeError> {
        let before = self.at;
        self.space();
        if self.peek() != Some(b'[') {
            self.at = before;
            return Ok(None);
        }
        let (start, length) = (self.at, self.text[self.at..].find(']').ok_or(NodeError::Incomplete)?);
        self.at += length + 1;
        // The server writes them as signed numbers.
        let byte = |number: &str| {
            let number: i16 = number.parse().ok()?;
            u8::try_from(number & 0xff).ok().filter(|_| (-128..256).contains(&number))
        };
        let bytes: Option<Vec<u8>> =
            self.text[start + 1..start + length].split_whitespace().map(byte).collect();
        bytes.map(Some).ok_or(NodeError::Unexpected(start))
    }

    /// True if a list or an object ends here; it is passed then.
    fn ends(&mut self, with: u8) -> Result<bool, NodeError> {
        self.space();
        let ends = self.peek().ok_or(NodeError::Incomplete)? == with;
        self.at += usize::from(ends);
        Ok(ends)
    }

    fn token(&mut self) -> Result<String, NodeError> {
        self.space();
        let mut token = String::new();
        let mut letters = self.text[self.at..].chars();
        let mut length = 0;
        while let Some(letter) = letters.next() {
            if matches!(letter, ' ' | '\n' | '\t' | '(' | ')' | '{' | '}') {
                break;
            }
            length += letter.len_utf8();
            if letter == '\\' {
                let escaped = letters.next().ok_or(NodeError::Incomplete)?;
                length += escaped.len_utf8();
                token.push(escaped);
            } else {
                token.push(letter);
            }
        }
        if length == 0 {
            return Err(if self.at == self.text.len() {
                NodeError::Incomplete
            } else {
                NodeError::Unexpected(self.at)
            });
        }
        self.at += length;
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn object(text: &str) -> Object {
        Node::read(text).unwrap().object().unwrap().clone()
    }

    #[test]
    fn objects_lists_and_tokens_are_read() {
        let read = object("{A :list (i 1 -2) :none <> :inner {B :flag true} :name a\\ b\\(\\)\\{\\\\}");
        assert_eq!(read.name, "A");
        assert_eq!(read.get("list").unwrap().elements().len(), 3);
        assert_eq!(read.get("none"), Some(&Node::Null));
        assert_eq!(read.get("inner").unwrap().object().unwrap().get("flag").unwrap().token(), Some("true"));
        assert_eq!(read.get("name").unwrap().token(), Some("a b(){\\"));
    }

    #[test]
    fn a_name_with_a_colon_is_a_value() {
        let read = object("{ALIAS :aliasname :relid :colnames (\":x\" \"a\\ b\")}");
        assert_eq!(read.get("aliasname").unwrap().token(), Some(":relid"));
        assert_eq!(read.get("relid"), None);
        assert_eq!(read.get("colnames").unwrap().elements().len(), 2);
    }

    #[test]
    fn a_constant_has_bytes() {
        let read = object("{CONST :constvalue 8 [ 32 0 0 0 97 32 98 -37 ] :location 1}");
        assert_eq!(read.get("constvalue"), Some(&Node::Bytes(vec![32, 0, 0, 0, 97, 32, 98, 219])));
        assert_eq!(read.get("location").unwrap().number(), Some(1));
        for wrong in ["1 [ a ]", "1 [ 256 ]", "1 [ -129 ]", "1 [ 1"] {
            assert!(Node::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_field_that_is_there_twice_has_no_value() {
        assert_eq!(object("{A :b 1 :b 2}").get("b"), None);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "{", "{A", "{A :b}", "{A b}", "(1", "1)", ")", "{A :b 1 2}", "[", "8 [ 1", "a\\"] {
            let read = Node::read(text);
            assert!(read.is_err() || text == "[", "{text}: {read:?}");
        }
        assert_eq!(Node::read(&"(".repeat(100_000)), Err(NodeError::TooDeep));
    }

    /// As the server writes a tree.
    fn written(node: &Node) -> String {
        let escaped = |token: &str| -> String {
            let special = |letter: char| " \n\t(){}\\".contains(letter);
            token
                .chars()
                .enumerate()
                .flat_map(|(at, letter)| {
                    let escapes = special(letter) || at == 0 && "<\"0123456789+-".contains(letter);
                    escapes.then_some('\\').into_iter().chain([letter])
                })
                .collect()
        };
        match node {
            Node::Null => "<>".to_owned(),
            Node::Token(token) => escaped(token),
            Node::Bytes(bytes) => {
                let signed: Vec<String> = bytes.iter().map(|byte| byte.cast_signed().to_string()).collect();
                format!("{} [ {} ]", bytes.len(), signed.join(" "))
            }
            Node::List(elements) => {
                format!("({})", elements.iter().map(written).collect::<Vec<_>>().join(" "))
            }
            Node::Object(Object { name, fields }) => {
                let fields: Vec<String> =
                    fields.iter().map(|(name, value)| format!(" :{name} {}", written(value))).collect();
                format!("{{{name}{}}}", fields.concat())
            }
        }
    }

    fn trees() -> impl Strategy<Value = Node> {
        let bytes = prop::collection::vec(any::<u8>(), 0..6).prop_map(Node::Bytes);
        let leaf = prop_oneof![Just(Node::Null), "[^\\[\\]]{1,8}".prop_map(Node::Token), bytes];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Node::List),
                ("[A-Z]{1,5}", prop::collection::vec(("[a-zA-Z]{1,6}", inner), 0..4))
                    .prop_map(|(name, fields)| Node::Object(Object { name, fields })),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(tree in trees()) {
            prop_assert_eq!(Node::read(&written(&tree)), Ok(tree));
        }

        #[test]
        fn no_text_panics(text in ".{0,80}") {
            let _ = Node::read(&text);
        }
    }
}
