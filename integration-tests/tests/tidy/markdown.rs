//! What the rules on documents need of Markdown: code spans and links, each with its line.

/// A document without its fenced blocks, which show commands and output.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) path: String,
    /// What stands between back-ticks.
    pub(super) spans: Vec<(usize, String)>,
    /// The targets of links and images.
    pub(super) links: Vec<(usize, String)>,
}

impl Document {
    pub(super) fn new(path: &str, text: &str) -> Self {
        let mut document = Self { path: path.to_owned(), spans: Vec::new(), links: Vec::new() };
        let mut fenced = false;
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            } else if !fenced {
                document.read_line(number, line);
            }
        }
        document
    }

    fn read_line(&mut self, number: usize, line: &str) {
        let mut prose = String::new();
        for (at, piece) in line.split('`').enumerate() {
            if at % 2 == 0 {
                prose.push_str(piece);
            } else {
                self.spans.push((number, piece.to_owned()));
            }
        }
        let inline = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        let targets = inline.map(|(target, _)| target);
        let definition = prose.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        let targets = targets.chain(definition.map(|(_, target)| target));
        // A title may follow the target.
        let targets = targets.filter_map(|target| target.split_whitespace().next());
        let links = targets.map(|target| (number, target.trim_matches(['<', '>']).to_owned()));
        self.links.extend(links);
    }
}

#[test]
fn spans_and_links_are_read_outside_of_fenced_blocks() {
    let text = "a `b` [c](d.md \"title\") and [`e`](f/g.md#h)\n\
                ```\n`i` [j](k)\n```\n[l]: m.md\n`[n](o)`\n";
    let document = Document::new("a.md", text);
    let pair = |line: usize, text: &str| (line, text.to_owned());
    assert_eq!(document.spans, [pair(1, "b"), pair(1, "e"), pair(6, "[n](o)")]);
    assert_eq!(document.links, [pair(1, "d.md"), pair(1, "f/g.md#h"), pair(5, "m.md")]);
}
