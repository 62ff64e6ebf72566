//! How much may come in, as it is written on a command line.

use std::ffi::OsStr;
use std::fmt;
use std::str::FromStr;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use domain::rate_limit::RateLimit;
use store::sealing::Sealer;

use crate::{SourceLimit, SourceSecret};

/// What the key of digests is derived from the sealing key for.
const PURPOSE: &[u8] = b"fencepost source digest 1";

/// Arguments of the rate limits.
#[derive(Debug, Clone, clap::Args)]
#[group(id = "rates")]
pub struct RateArgs {
    /// How many submissions one source address may send, or `off`.
    #[arg(
        long,
        env = "FENCEPOST_SOURCE_RATE",
        value_name = "N/WINDOW",
        default_value_t = Rate(Some(RateLimit::SOURCE_DEFAULT))
    )]
    pub source_rate: Rate,
    /// How many submissions one API key may send, or `off`.
    #[arg(
        long,
        env = "FENCEPOST_KEY_RATE",
        value_name = "N/WINDOW",
        default_value_t = Rate(None)
    )]
    pub key_rate: Rate,
    /// How many proxies of yours stand in front: the source address is then taken from
    /// X-Forwarded-For, that many entries from its end.
    #[arg(
        long,
        env = "FENCEPOST_TRUSTED_HOPS",
        value_name = "N",
        default_value_t = 0,
        value_parser = clap::value_parser!(u8).range(0..=16)
    )]
    pub trusted_hops: u8,
    /// Keys the digests under which source addresses are counted, at least 16 bytes, the same in every
    /// process. Made from the first sealing key if it is not given.
    #[arg(
        long,
        env = "FENCEPOST_SOURCE_SECRET",
        hide_env_values = true,
        value_name = "TEXT",
        value_parser = SourceSecretParser
    )]
    pub source_secret: Option<SourceSecretArg>,
}

impl RateArgs {
    /// The limit of source addresses that they ask for.
    pub(super) fn source_limit(&self, sealer: &Sealer) -> Option<SourceLimit> {
        let limit = self.source_rate.0?;
        let secret = match &self.source_secret {
            Some(given) => given.0.clone(),
            None => SourceSecret::of_key(&sealer.derive(PURPOSE)),
        };
        Some(SourceLimit { limit, secret, trusted_hops: self.trusted_hops })
    }
}

/// A rate limit on a command line, `600/60s` or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(Option<RateLimit>);

impl Rate {
    /// The limit; none if it is off.
    #[must_use]
    pub fn limit(self) -> Option<RateLimit> {
        self.0
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self(None));
        }
        let form = || "is written N/WINDOW, as in 600/60s, or off".to_owned();
        let (units, window) = text.split_once('/').ok_or_else(form)?;
        let units = units.parse().map_err(|_| form())?;
        let window = humantime::parse_duration(window).map_err(|_| form())?;
        RateLimit::new(units, window).map(|limit| Self(Some(limit))).map_err(|e| e.to_string())
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(limit) => write!(f, "{}/{}s", limit.units(), limit.window().as_secs()),
            None => f.write_str("off"),
        }
    }
}

/// A source secret on a command line.
#[derive(Debug, Clone)]
pub struct SourceSecretArg(SourceSecret);

/// Reads it. What `clap` says of a refused value repeats the value, which is a secret here.
#[derive(Debug, Clone, Copy)]
struct SourceSecretParser;

impl TypedValueParser for SourceSecretParser {
    type Value = SourceSecretArg;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<SourceSecretArg, clap::Error> {
        SourceSecret::new(value.as_encoded_bytes()).map(SourceSecretArg).map_err(|why| {
            let message = format!("--source-secret, FENCEPOST_SOURCE_SECRET: {why}");
            command.clone().error(ErrorKind::InvalidValue, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;
    use store::sealing::SealingKey;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        rates: RateArgs,
    }

    #[test]
    fn a_rate_reads_as_it_is_written() {
        for text in ["off", "600/60s", "1/1s", "1000000/86400s"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        let limit = RateLimit::new(5, Duration::from_hours(1)).unwrap();
        assert_eq!("5/1h".parse(), Ok(Rate(Some(limit))));
        for bad in ["", "5", "5/", "/60s", "0/60s", "5/0s", "5/1500ms", "1000001/60s", "5/25h"] {
            assert!(bad.parse::<Rate>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_secret_is_the_one_given_or_made_from_the_sealing_key() {
        let sealer = || Sealer::new(SealingKey::new(Box::new([7; 32])), Vec::new());
        let counted_as = |line: &[&str], sealer: &Sealer| {
            let line = Line::try_parse_from([&["api"], line].concat()).unwrap();
            let source = line.rates.source_limit(sealer)?;
            Some(source.secret.digest("203.0.113.9".parse().unwrap()))
        };
        let derived = counted_as(&[], &sealer()).unwrap();
        assert_eq!(counted_as(&[], &sealer()).unwrap(), derived, "the same in every process");
        let given = ["--source-secret", "a secret of 16 bytes or more"];
        let other = Sealer::new(SealingKey::generate().unwrap(), Vec::new());
        assert_ne!(counted_as(&[], &other).unwrap(), derived);
        assert_eq!(counted_as(&given, &other), counted_as(&given, &sealer()));
        assert_eq!(counted_as(&["--source-rate", "off"], &other), None);
    }

    #[test]
    fn a_short_secret_is_refused_and_no_secret_is_shown() {
        let short = Line::try_parse_from(["api", "--source-secret", "15 bytes are le"]);
        let told = short.err().map(|error| error.to_string()).unwrap();
        assert!(told.contains("at least 16 bytes") && !told.contains("15 bytes are le"), "{told}");
        let given = ["api", "--source-secret", "sixteen bytes ok"];
        let line = Line::try_parse_from(given).unwrap();
        assert!(!format!("{:?}", line.rates).contains("sixteen"));
    }
}
