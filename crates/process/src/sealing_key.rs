//! The keys that seal endpoint secrets at rest.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use store::sealing::{Sealer, SealingKey};
use zeroize::Zeroizing;

/// Arguments of the sealing keys.
#[derive(Clone, Default, clap::Args)]
pub struct SealingArgs {
    /// Keys that seal endpoint secrets, each base64 of 32 bytes, separated by commas. The first
    /// seals, all open.
    #[arg(long, env = "FENCEPOST_SEALING_KEY", hide_env_values = true, value_name = "KEYS")]
    pub sealing_key: Option<String>,
    /// A file that holds such keys, one a line.
    #[arg(long, env = "FENCEPOST_SEALING_KEY_FILE", value_name = "PATH")]
    pub sealing_key_file: Option<PathBuf>,
}

impl std::fmt::Debug for SealingArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SealingArgs")
            .field("sealing_key_file", &self.sealing_key_file)
            .finish_non_exhaustive()
    }
}

impl SealingArgs {
    /// The sealer that they ask for, or none if neither is given.
    ///
    /// # Errors
    /// Both are given, the file cannot be read, or a key is not base64 of 32 bytes.
    pub fn sealer(&self) -> anyhow::Result<Option<Sealer>> {
        match (&self.sealing_key, &self.sealing_key_file) {
            (Some(_), Some(_)) => bail!("give --sealing-key or --sealing-key-file, not both"),
            (Some(keys), None) => parse_keys(keys).context("--sealing-key").map(Some),
            (None, Some(path)) => read_key_file(path).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// The sealer that they ask for.
    ///
    /// # Errors
    /// Neither is given, and those of [`SealingArgs::sealer`].
    pub fn required(&self) -> anyhow::Result<Sealer> {
        self.sealer()?.context(
            "endpoint secrets are sealed at rest: give --sealing-key-file or \
             FENCEPOST_SEALING_KEY (base64 of 32 random bytes, `openssl rand -base64 32`)",
        )
    }
}

fn parse_keys(text: &str) -> anyhow::Result<Sealer> {
    let mut keys = Vec::new();
    for word in text.split(|c: char| c == ',' || c.is_whitespace()).filter(|w| !w.is_empty()) {
        let bytes = STANDARD.decode(word).map(Zeroizing::new);
        // The text is a secret: no error may repeat it.
        let Ok(bytes) = bytes else { bail!("key {} is not base64", keys.len() + 1) };
        keys.push(
            SealingKey::from_slice(&bytes).with_context(|| format!("key {}", keys.len() + 1))?,
        );
    }
    let mut keys = keys.into_iter();
    let current = keys.next().context("holds no key")?;
    Ok(Sealer::new(current, keys.collect()))
}

fn read_key_file(path: &Path) -> anyhow::Result<Sealer> {
    let named = || format!("the sealing key file {}", path.display());
    let text = std::fs::read_to_string(path).map(Zeroizing::new).with_context(named)?;
    parse_keys(&text).with_context(named)
}

/// The sealer of a key file, which is made, readable by its owner alone, if it does not exist.
///
/// # Errors
/// The file cannot be made or read, or holds no usable key.
pub fn load_or_create_key_file(path: &Path) -> anyhow::Result<Sealer> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match made {
        Ok(mut file) => {
            let key = SealingKey::generate()?;
            let text = Zeroizing::new(format!("{}\n", STANDARD.encode(key.expose())));
            file.write_all(text.as_bytes())
                .and_then(|()| file.sync_all())
                .with_context(|| format!("writing the sealing key file {}", path.display()))?;
            Ok(Sealer::new(key, Vec::new()))
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => read_key_file(path),
        Err(error) => {
            Err(error).with_context(|| format!("making the sealing key file {}", path.display()))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_file_is_made_once_and_readable_by_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fencepost.key");
        let made = load_or_create_key_file(&path).unwrap();
        let sealed = made.seal(b"secret", b"row").unwrap();
        let read = load_or_create_key_file(&path).unwrap();
        assert_eq!(read.open(&sealed, b"row").unwrap().as_slice(), b"secret");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn several_keys_open_and_the_first_seals() {
        let (a, b) = (STANDARD.encode([1; 32]), STANDARD.encode([2; 32]));
        let old = parse_keys(&b).unwrap().seal(b"x", b"row").unwrap();
        let both = parse_keys(&format!("{a},{b}\n")).unwrap();
        assert!(both.open(&old, b"row").is_ok());
        let new = both.seal(b"x", b"row").unwrap();
        assert!(parse_keys(&a).unwrap().open(&new, b"row").is_ok());
    }

    #[test]
    fn a_bad_key_is_refused_without_being_repeated() {
        for bad in ["", "not base64!", "AAAA", &STANDARD.encode([0; 31])] {
            let error = format!("{:#}", parse_keys(bad).unwrap_err());
            assert!(bad.is_empty() || !error.contains(bad), "{error}");
        }
    }
}
