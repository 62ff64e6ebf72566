//! A Rust file, split into what the compiler runs and what it only carries.

/// A Rust file. Rules on code read `code`, so that a comment or a message may name what code must
/// not use.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: String,
    /// The text with comments and the content of literals blanked out, line for line.
    pub(super) code: String,
    pub(super) literals: Vec<Literal>,
}

/// A string literal, without its quotes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Literal {
    pub(super) line: usize,
    pub(super) text: String,
}

impl Source {
    pub(super) fn new(path: &str, text: &str) -> Self {
        let mut code = String::with_capacity(text.len());
        let mut literals = Vec::new();
        let mut rest = text;
        let mut line = 1;
        while let Some(first) = rest.chars().next() {
            let (length, kind) = token(rest, &code);
            let (token, after) = rest.split_at(length);
            if let Kind::String { quotes } = kind {
                let text = token.get(1..length.saturating_sub(quotes)).unwrap_or_default();
                literals.push(Literal { line, text: text.to_owned() });
            }
            if kind == Kind::Code {
                code.push(first);
            } else {
                code.extend(token.chars().map(|c| if c == '\n' { c } else { ' ' }));
            }
            line += token.matches('\n').count();
            rest = after;
        }
        Self { path: path.to_owned(), code, literals }
    }

    /// The numbered lines of code that contain `word`, not as a part of a longer name.
    pub(super) fn lines_with(&self, word: &str) -> impl Iterator<Item = usize> {
        let with_word =
            self.code.lines().zip(1..).filter(move |(line, _)| contains_word(line, word));
        with_word.map(|(_, number)| number)
    }

    /// The names of the functions that are defined here.
    pub(super) fn functions(&self) -> impl Iterator<Item = &str> {
        let words = self.code.split(|c: char| !is_name(c)).filter(|word| !word.is_empty());
        words.clone().zip(words.skip(1)).filter(|(word, _)| *word == "fn").map(|(_, name)| name)
    }
}

#[derive(PartialEq, Eq)]
enum Kind {
    Code,
    Carried,
    /// `quotes` is how many characters close it.
    String {
        quotes: usize,
    },
}

/// The length and kind of what `rest` starts with; `before` is the code so far.
fn token(rest: &str, before: &str) -> (usize, Kind) {
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), Kind::Carried);
    }
    if rest.starts_with("/*") {
        return (block_comment(rest), Kind::Carried);
    }
    if let Some(content) = rest.strip_prefix('"') {
        return match raw_hashes(before) {
            Some(hashes) => {
                let close = format!("\"{}", "#".repeat(hashes));
                let end = content.find(&close).map_or(rest.len(), |at| 1 + at + close.len());
                (end, Kind::String { quotes: close.len() })
            }
            None => (until_unescaped(rest, '"'), Kind::String { quotes: 1 }),
        };
    }
    if let Some(content) = rest.strip_prefix('\'') {
        // 'a' and '\n' are characters; 'a without a second quote is a lifetime.
        let mut next = content.chars();
        if next.next() == Some('\\') || next.next() == Some('\'') {
            return (until_unescaped(rest, '\''), Kind::Carried);
        }
    }
    (rest.chars().next().map_or(1, char::len_utf8), Kind::Code)
}

/// The length of a block comment; they nest.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut skip = false;
    for (at, pair) in rest.as_bytes().windows(2).enumerate() {
        if std::mem::take(&mut skip) {
            continue;
        }
        match pair {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            return at + 2;
        }
        skip = true;
    }
    rest.len()
}

/// The length of a quoted token, quotes included.
fn until_unescaped(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if std::mem::take(&mut escaped) {
            continue;
        }
        if c == quote {
            return at + c.len_utf8();
        }
        escaped = c == '\\';
    }
    rest.len()
}

/// How many `#` a raw string was opened with, if the code before its quote opens a raw string.
fn raw_hashes(before: &str) -> Option<usize> {
    let name = before.trim_end_matches('#');
    let prefix = name.rsplit(|c| !is_name(c)).next()?;
    matches!(prefix, "r" | "br" | "cr").then_some(before.len() - name.len())
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn contains_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (line.get(..at), line.get(at + word.len()..));
        let joins = |inner: Option<char>, outer: Option<char>| {
            inner.is_some_and(is_name) && outer.is_some_and(is_name)
        };
        !joins(word.chars().next(), before.and_then(|text| text.chars().next_back()))
            && !joins(word.chars().next_back(), after.and_then(|text| text.chars().next()))
    })
}

#[test]
fn code_and_literals_are_told_apart() {
    let text = concat!(
        "let a = \"one // not a comment\"; // a \"comment\"\n",
        "let b = r#\"two \"quoted\"\nlines\"#; /* x /* nested */ \"y\" */ fn a_name() {}\n",
        "let c = '\"'; let d = '\\''; fn e<'a>(f: &'a str) { g(b\"bytes \\\" here\") }\n",
    );
    let source = Source::new("a.rs", text);
    let literal = |line, text: &str| Literal { line, text: text.to_owned() };
    assert_eq!(
        source.literals,
        [
            literal(1, "one // not a comment"),
            literal(2, "two \"quoted\"\nlines"),
            literal(4, "bytes \\\" here"),
        ]
    );
    assert_eq!(source.code.lines().count(), text.lines().count());
    assert_eq!(source.functions().collect::<Vec<_>>(), ["a_name", "e"]);
    for gone in ["comment", "quoted", "nested", "bytes"] {
        assert!(!source.code.contains(gone), "{gone} is not code");
    }
}

#[test]
fn a_word_is_not_found_inside_a_longer_name() {
    assert!(contains_word("use rand::Rng;", "rand::"));
    assert!(!contains_word("use fastrand::Rng;", "rand::"));
    assert!(contains_word("tokio::time::nap(a)", "nap("));
    assert!(!contains_word("kidnap(a)", "nap("));
}
