//! What a notification says: who tells it, and the endpoints, each behind a space.

use domain::id::EndpointKey;
use uuid::Uuid;

use super::NAMED_MAX;

pub(crate) fn write(origin: &str, endpoints: &[EndpointKey]) -> String {
    let mut text = origin.to_owned();
    if endpoints.len() <= NAMED_MAX {
        for endpoint in endpoints {
            text.push(' ');
            text.push_str(&endpoint.as_uuid().simple().to_string());
        }
    }
    text
}

/// Who tells it, and the endpoints. None of them if one cannot be read: then workers look.
pub(crate) fn read(text: &str) -> (&str, Vec<EndpointKey>) {
    let mut words = text.split(' ');
    let origin = words.next().unwrap_or_default();
    let endpoints = words.map(|word| Uuid::try_parse(word).map(EndpointKey::from_uuid));
    (origin, endpoints.collect::<Result<_, _>>().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_fits_into_a_notification() {
        let origin = crate::new_id::uuid_now().to_string();
        let all: Vec<_> = (0..=200).map(|n| EndpointKey::from_uuid(Uuid::from_u128(n))).collect();
        for count in [0, 1, NAMED_MAX] {
            let text = write(&origin, &all[..count]);
            assert!(text.len() < 8_000);
            assert_eq!(read(&text), (origin.as_str(), all[..count].to_vec()));
        }
        assert_eq!(read(&write(&origin, &all)), (origin.as_str(), Vec::new()));
    }

    #[test]
    fn what_another_release_writes_is_a_wake_up_without_names() {
        assert_eq!(read("somebody"), ("somebody", Vec::new()));
        assert_eq!(read("somebody something"), ("somebody", Vec::new()));
        assert_eq!(read(""), ("", Vec::new()));
    }
}
