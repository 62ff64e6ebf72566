//! Looks for secrets in all that a service says.

use std::fmt::Write as _;

use anyhow::Context as _;

/// A secret, and every form in which it could be told by mistake.
#[derive(Debug)]
struct Secret {
    name: String,
    forms: Vec<(&'static str, String)>,
}

/// What is secret, and what was said.
#[derive(Debug, Default)]
pub(super) struct Search {
    secrets: Vec<Secret>,
    said: Vec<(String, String)>,
}

impl Search {
    /// This text must not be said, nor what it is the base64 of behind its prefix.
    pub(super) fn secret(&mut self, name: &str, text: &str) {
        let mut forms = vec![("text", text.to_owned())];
        forms.extend(forms_of(text.as_bytes()));
        for prefix in ["whsec_", "whsk_", ""] {
            let bytes = text.strip_prefix(prefix).and_then(base64_decoded);
            if let Some(bytes) = bytes.filter(|bytes| bytes.len() >= 16) {
                forms.extend(forms_of(&bytes));
            }
        }
        // What is short is found by chance.
        assert!(forms.iter().all(|(_, form)| form.len() >= 12), "{name}");
        self.secrets.push(Secret { name: name.to_owned(), forms });
    }

    /// This was said at that place.
    pub(super) fn said(&mut self, place: &str, text: impl Into<String>) {
        self.said.push((place.to_owned(), text.into()));
    }

    /// This answer shows a secret, this once: the secret is taken out of it.
    pub(super) fn shown(
        &mut self,
        place: &str,
        answer: &str,
        member: &str,
    ) -> anyhow::Result<String> {
        let document: serde_json::Value = serde_json::from_str(answer)?;
        let secret = document[member].as_str().with_context(|| format!("{place}: {answer}"))?;
        self.said(place, answer.replacen(secret, "", 1));
        self.secret(place, secret);
        Ok(secret.to_owned())
    }

    /// Where which secret was said, in which form. Never the secret.
    pub(super) fn findings(&self) -> Vec<String> {
        let mut findings = Vec::new();
        for (place, text) in &self.said {
            for Secret { name, forms } in &self.secrets {
                for (form, written) in forms {
                    if text.contains(written) {
                        findings.push(format!("{place}: {name} as {form}"));
                    }
                }
            }
        }
        findings
    }

    pub(super) fn places(&self) -> usize {
        self.said.len()
    }
}

fn forms_of(bytes: &[u8]) -> [(&'static str, String); 5] {
    let standard = base64(bytes, *b"+/");
    let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a text does not fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    let list = format!("{bytes:?}");
    [
        // Without padding it is found with padding too.
        ("base64", standard.trim_end_matches('=').to_owned()),
        ("base64 for URLs", base64(bytes, *b"-_").trim_end_matches('=').to_owned()),
        ("hex", hex.clone()),
        ("HEX", hex.to_uppercase()),
        ("a list of bytes", list.trim_matches(['[', ']']).to_owned()),
    ]
}

/// Written here, so that what looks for mistakes shares none with what it looks into.
fn base64(bytes: &[u8], last: [u8; 2]) -> String {
    let alphabet: Vec<u8> =
        (b'A'..=b'Z').chain(b'a'..=b'z').chain(b'0'..=b'9').chain(last).collect();
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let index = (word >> (18 - 6 * place)) & 63;
            text.push(if place > chunk.len() { '=' } else { char::from(alphabet[index as usize]) });
        }
    }
    text
}

fn base64_decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut word, mut bits) = (0_u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let index = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        word = (word << 6 | u32::from(index)) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(word >> bits & 0xff).ok()?);
        }
    }
    Some(bytes)
}

#[test]
fn a_secret_is_found_in_every_form_and_nowhere_else() {
    let bytes: Vec<u8> = (1..=24).collect();
    let text = format!("whsec_{}", base64(&bytes, *b"+/"));
    assert_eq!(text, "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcY");
    let mut search = Search::default();
    search.secret("a secret", &text);
    for (place, said) in [
        ("text", format!("x {text} x")),
        ("encoded", "x AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcY x".to_owned()),
        ("hex", "0102030405060708090a0b0c0d0e0f101112131415161718".to_owned()),
        ("HEX", "0102030405060708090A0B0C0D0E0F101112131415161718".to_owned()),
        ("debug", format!("Secret({bytes:?})")),
        ("nothing", "whsec_ AQID 0102".to_owned()),
    ] {
        search.said(place, said);
    }
    let found: std::collections::BTreeSet<_> =
        search.findings().into_iter().map(|it| it.split(':').next().unwrap().to_owned()).collect();
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["HEX", "debug", "encoded", "hex", "text"]);
    let answer = format!(r#"{{"id":"a","secret":"{text}"}}"#);
    let mut search = Search::default();
    assert_eq!(search.shown("answer", &answer, "secret").unwrap(), text);
    assert!(search.findings().is_empty());
}
