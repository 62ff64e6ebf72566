//! The members of a JSON object in their order, with what a map would lose: repeated names.
//!
//! Of two members with one name most readers take the last, some the first. What a caller meant is not
//! known, so they are kept apart here and refused where they are named.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// An object's members in order, repeated ones included.
pub(super) struct Members(pub(super) Vec<(String, Member)>);

/// A value, and the first name that some object inside it has twice.
pub(super) struct Member {
    pub(super) value: Value,
    pub(super) repeated: Option<String>,
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl Member {
    fn of(value: impl Into<Value>) -> Self {
        Self { value: value.into(), repeated: None }
    }
}

impl<'de> Deserialize<'de> for Member {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Member;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_unit<E>(self) -> Result<Member, E> {
                Ok(Member::of(Value::Null))
            }

            fn visit_bool<E>(self, value: bool) -> Result<Member, E> {
                Ok(Member::of(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Member, E> {
                Ok(Member::of(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Member, E> {
                Ok(Member::of(value))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Member, E> {
                Ok(Member::of(Number::from_f64(value).map_or(Value::Null, Value::Number)))
            }

            fn visit_str<E>(self, value: &str) -> Result<Member, E> {
                Ok(Member::of(value))
            }

            fn visit_string<E>(self, value: String) -> Result<Member, E> {
                Ok(Member::of(value))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Member, A::Error> {
                let (mut values, mut repeated) = (Vec::new(), None);
                while let Some(member) = seq.next_element::<Member>()? {
                    values.push(member.value);
                    repeated = repeated.or(member.repeated);
                }
                Ok(Member { value: Value::Array(values), repeated })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Member, A::Error> {
                let (mut values, mut repeated) = (Map::new(), None);
                while let Some((name, member)) = map.next_entry::<String, Member>()? {
                    repeated = repeated.or(member.repeated);
                    if values.contains_key(&name) {
                        repeated = repeated.or_else(|| Some(name.clone()));
                    }
                    values.insert(name, member.value);
                }
                Ok(Member { value: Value::Object(values), repeated })
            }
        }
        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Member {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_name_that_is_there_twice_is_found_at_any_depth() {
        for (text, repeated) in [
            (r#"{"a":1,"a":1}"#, Some("a")),
            (r#"{"b":[1,{"c":{"d":1,"d":2}}]}"#, Some("d")),
            (r#"[{"a":1},{"a":1}]"#, None),
            (r#"{"a":{"a":1},"b":{"a":1}}"#, None),
        ] {
            assert_eq!(read(text).repeated.as_deref(), repeated, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_value_is_what_serde_json_makes_of_it(
            text in r#"(null|true|-?[0-9]{1,20}(\.[0-9]{1,5})?(e[0-9])?|"[a-z]{0,5}"|\[1,"a"\]|\{"a":\[null\]\})"#
        ) {
            let Ok(expected) = serde_json::from_str::<Value>(&text) else { return Ok(()) };
            prop_assert_eq!(read(&text).value, expected);
        }
    }
}
