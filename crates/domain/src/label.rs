//! What people call an application or a key.

use std::fmt;

/// How long a label may be, in characters.
pub const LABEL_CHARACTERS_MAX: usize = 200;

/// A label for people: 1 to [`LABEL_CHARACTERS_MAX`] characters, none of them a control character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label(String);

/// Why a text is not a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// It has no characters, or more than [`LABEL_CHARACTERS_MAX`].
    #[error("must have 1 to {LABEL_CHARACTERS_MAX} characters")]
    Length,
    /// It would change how the line it stands in is shown.
    #[error("must not contain control characters")]
    Control,
}

impl Label {
    /// Parses the text, which is kept as it stands.
    pub fn parse(text: &str) -> Result<Self, LabelError> {
        if text.is_empty() || text.chars().count() > LABEL_CHARACTERS_MAX {
            return Err(LabelError::Length);
        }
        if text.chars().any(char::is_control) {
            return Err(LabelError::Control);
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_1_to_200_characters_and_no_control_characters() {
        for good in ["a".to_owned(), "é".repeat(200)] {
            assert_eq!(Label::parse(&good).map(|label| label.to_string()), Ok(good));
        }
        for (bad, why) in [
            (String::new(), LabelError::Length),
            ("é".repeat(201), LabelError::Length),
            ("a\u{1b}[31m".to_owned(), LabelError::Control),
            ("a\nb".to_owned(), LabelError::Control),
        ] {
            assert_eq!(Label::parse(&bad), Err(why), "{bad:?}");
        }
    }
}
