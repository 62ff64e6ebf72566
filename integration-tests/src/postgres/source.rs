use std::env;
use std::fmt;

use anyhow::Context as _;

use super::{DATABASE_VARIABLE, SOURCE_VARIABLE, Server, VERSION_MIN};
use super::{container, external, local};

/// Where the server came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    External,
    Container,
    Local,
}

/// The first source that has one.
pub(super) async fn find() -> anyhow::Result<(Source, Server)> {
    let wanted = Source::from_environment()?;
    if let Some(url) = env::var_os(DATABASE_VARIABLE)
        && wanted.is_none_or(|wanted| wanted == Source::External)
    {
        return Ok((Source::External, external::server(&url)?));
    }

    let mut refusals = String::new();
    for source in [Source::Container, Source::Local] {
        if wanted.is_some_and(|wanted| wanted != source) {
            continue;
        }
        let started = match source {
            Source::Container => container::start().await,
            _ => local::start().await,
        };
        match started {
            Ok(server) => return Ok((source, server)),
            Err(error) => refusals.extend(["\n  ", &format!("{source}: {error:#}")]),
        }
    }
    anyhow::bail!(
        "provide one of: {DATABASE_VARIABLE} (a server, as a user who may create databases), a Docker engine \
         with the image postgres:17, or PostgreSQL {VERSION_MIN} or later installed here.{refusals}"
    )
}

impl Source {
    fn from_environment() -> anyhow::Result<Option<Self>> {
        let Some(wanted) = env::var_os(SOURCE_VARIABLE) else {
            return Ok(None);
        };
        [Self::External, Self::Container, Self::Local]
            .into_iter()
            .find(|source| wanted == *source.to_string())
            .map(Some)
            .with_context(|| {
                format!(
                    "{SOURCE_VARIABLE} is external, container or local, not {}",
                    wanted.display()
                )
            })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::External => "external",
            Self::Container => "container",
            Self::Local => "local",
        })
    }
}
