//! What people give, and its limits.

use domain::submission::IdempotencyKey;

use crate::answer::Answer;

/// The most that one operation takes or brings, and that a stock holds.
pub(crate) const QUANTITY_MAX: i64 = 1_000_000_000;

/// 1 to 255 visible ASCII characters.
pub(crate) fn op_key(text: &str) -> Result<&str, Answer> {
    match IdempotencyKey::parse(text.as_bytes()) {
        Ok(_) => Ok(text),
        Err(error) => Err(Answer::Invalid { field: "op_key", message: error.to_string() }),
    }
}

pub(crate) fn quantity(text: &str) -> Result<i64, Answer> {
    match text.parse() {
        Ok(quantity @ 1..=QUANTITY_MAX) => Ok(quantity),
        _ => Err(Answer::Invalid {
            field: "quantity",
            message: format!("a quantity is a whole number from 1 to {QUANTITY_MAX}"),
        }),
    }
}

pub(crate) fn sku(text: &str) -> Result<&str, Answer> {
    match text.len() {
        1..=64 if !text.contains('\0') => Ok(text),
        _ => Err(Answer::Invalid { field: "sku", message: "a sku has 1 to 64 bytes".to_owned() }),
    }
}

pub(crate) fn unknown_sku(sku: &str) -> Answer {
    Answer::Invalid { field: "sku", message: format!("nothing is known of the sku {sku:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_a_whole_number_within_its_limits() {
        assert_eq!(quantity("1").ok(), Some(1));
        assert_eq!(quantity("1000000000").ok(), Some(QUANTITY_MAX));
        for bad in ["", "0", "-1", "1.5", "1000000001", "9223372036854775808", "two", " 1"] {
            assert!(matches!(quantity(bad), Err(Answer::Invalid { .. })), "{bad}");
        }
    }

    #[test]
    fn an_empty_key_and_an_empty_sku_are_refused() {
        assert!(op_key("").is_err() && op_key("a b").is_err() && op_key("k1").is_ok());
        assert!(sku("").is_err() && sku(&"s".repeat(65)).is_err() && sku("widget").is_ok());
    }
}
