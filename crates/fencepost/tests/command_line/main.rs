//! The binary as a person starts it.

mod settings;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use anyhow::{Context as _, bail, ensure};

fn fencepost(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    command
        .current_dir(folder)
        .env_remove("DATABASE_URL")
        .env_remove("FENCEPOST_SEALING_KEY")
        .env("FENCEPOST_LISTEN", "127.0.0.1:0")
        .env("FENCEPOST_PRIVATE_LISTEN", "127.0.0.1:0")
        .env("FENCEPOST_WORKER_PRIVATE_LISTEN", "127.0.0.1:0");
    command
}

/// A server that is killed with the test.
struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn start(folder: &Path) -> anyhow::Result<Self> {
        let mut child =
            fencepost(folder).arg("serve").stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let output = BufReader::new(child.stdout.take().context("its output")?);
        Ok(Self { child, output })
    }

    /// Reads lines up to the one that begins with `start`, and answers what follows there.
    fn line(&mut self, start: &str) -> anyhow::Result<String> {
        let mut line = String::new();
        while self.output.read_line(&mut line)? > 0 {
            if let Some(rest) = line.trim_end().strip_prefix(start) {
                return Ok(rest.to_owned());
            }
            line.clear();
        }
        bail!("it ended without a line that begins with {start:?}")
    }

    fn terminate(mut self) -> anyhow::Result<String> {
        let id = self.child.id().to_string();
        ensure!(Command::new("kill").args(["-TERM", &id]).status()?.success());
        let status = self.child.wait()?;
        ensure!(status.success(), "{status}");
        let mut rest = String::new();
        self.output.read_to_string(&mut rest)?;
        Ok(rest)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The head and body of an answer, as text.
fn request(address: &str, request: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn serve_in_an_empty_folder_makes_what_it_needs_and_shows_its_key_once() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut server = Server::start(folder.path())?;
    let addresses = server.line("listening http://")?;
    let address = addresses.split(' ').next().context("an address")?;
    let key = server.line("admin key, shown once: ")?;
    server.line("try:")?;
    server.line(&format!("  curl -sS http://{address}/v1/endpoints "))?;

    let body = r#"{"id":"orders","url":"https://example.com/hook"}"#;
    let create = format!(
        "POST /v1/endpoints HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let answer = request(address, &create)?;
    ensure!(answer.starts_with("HTTP/1.1 201"), "{answer}");

    let second = fencepost(folder.path()).arg("serve").output()?;
    ensure!(!second.status.success());
    ensure!(stderr(&second).contains("another server is using"), "{}", stderr(&second));

    // Operator commands run beside it.
    let keys = fencepost(folder.path()).args(["keys", "create", "--name", "second"]).output()?;
    ensure!(keys.status.success(), "{}", stderr(&keys));
    let second_key = String::from_utf8(keys.stdout)?;
    let read = format!(
        "GET /v1/endpoints/orders HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         connection: close\r\n\r\n",
        second_key.trim()
    );
    let answer = request(address, &read)?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    server.terminate()?;

    let mut again = Server::start(folder.path())?;
    again.line("listening ")?;
    let rest = again.terminate()?;
    ensure!(!rest.contains("admin key"), "a key is shown once: {rest}");
    Ok(())
}

#[test]
fn keys_are_made_listed_and_revoked_and_the_last_admin_stays() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let run = |arguments: &[&str]| fencepost(folder.path()).args(arguments).output();
    let succeeds = |arguments: &[&str]| -> anyhow::Result<String> {
        let output = run(arguments)?;
        ensure!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        Ok(String::from_utf8(output.stdout)?)
    };
    let refused = |arguments: &[&str], expected: &str| -> anyhow::Result<()> {
        let output = run(arguments)?;
        ensure!(!output.status.success(), "{arguments:?}");
        ensure!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
        Ok(())
    };
    succeeds(&["migrate"])?;
    let admin = succeeds(&["keys", "create"])?;
    let create = ["keys", "create", "--role", "publish", "--application", "default"];
    let publisher = succeeds(&[&create[..], &["--name", "shop"]].concat())?;
    refused(&["keys", "create", "--role", "root"], "admin, publish, read")?;
    refused(&["keys", "create", "--name", ""], "1 to 200 characters")?;
    refused(&["keys", "create", "--application", "nobody"], "no application has the id nobody")?;

    let listed = succeeds(&["keys", "list"])?;
    ensure!(!listed.contains(admin.trim()) && !listed.contains(publisher.trim()), "{listed}");
    let line = |text: &str| listed.lines().find(|line| line.ends_with(text)).map(str::to_owned);
    let (admin, publisher) =
        (line("admin").context(listed.clone())?, line("shop").context(listed)?);
    ensure!(publisher.contains("publish") && publisher.contains("default"), "{publisher}");
    ensure!(admin.contains("(all)") && admin.contains("never"), "{admin}");

    let id = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    succeeds(&["keys", "revoke", &id(&publisher)])?;
    ensure!(succeeds(&["keys", "revoke", &id(&publisher)])?.contains("before"));
    refused(&["keys", "revoke", &id(&admin)], "last admin key")?;
    refused(&["keys", "revoke", "0190f5fe-7c00-7a00-8a00-000000000001"], "no key has this id")?;
    let listed = succeeds(&["keys", "list"])?;
    ensure!(listed.lines().any(|line| line.contains("revoked 20") && line.ends_with("shop")));
    Ok(())
}

#[test]
fn the_demonstration_on_the_projects_own_samples_ends_well() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let demo = fencepost(folder.path()).args(["demo", "--json", "--fail-rate", "0.5"]).output()?;
    ensure!(demo.status.success(), "{}", stderr(&demo));
    let summary: serde_json::Value = serde_json::from_slice(&demo.stdout)?;
    let submissions = summary["submissions"].as_u64();
    ensure!(submissions.is_some_and(|count| count >= 12), "{summary}");
    for count in ["delivered", "verified", "identical"] {
        ensure!(summary[count].as_u64() == submissions, "{summary}");
    }
    ensure!(summary["attempts"].as_u64() > submissions, "{summary}");
    ensure!(folder.path().read_dir()?.next().is_none(), "it leaves nothing behind");
    Ok(())
}

#[test]
fn what_cannot_be_used_is_refused_with_what_mends_it() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let refused = |arguments: &[&str], expected: &str| -> anyhow::Result<()> {
        let output = fencepost(folder.path()).args(arguments).output()?;
        ensure!(!output.status.success(), "{arguments:?}");
        let text = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
        ensure!(text.contains(expected), "{arguments:?}: {text}");
        Ok(())
    };
    refused(&["keys", "create"], "fencepost migrate")?;
    refused(&["migrate", "status"], "fencepost migrate")?;
    refused(&["migrate", "--database-url", "mysql://x"], "postgres://")?;
    refused(&["serve", "--database-url", "postgres://u:pw@h/d"], "FENCEPOST_SEALING_KEY")?;
    refused(&["demo", "--fail-rate", "1.5"], "between 0 and 1")?;
    refused(&["demo", "--payloads", "missing.ndjson"], "missing.ndjson")?;
    Ok(())
}

#[test]
fn a_migrated_file_passes_the_status() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let run = |arguments: &[&str]| fencepost(folder.path()).args(arguments).output();
    ensure!(run(&["migrate"])?.status.success());
    ensure!(run(&["migrate"])?.status.success(), "again");
    let status = run(&["migrate", "status"])?;
    ensure!(status.status.success(), "{}", stderr(&status));
    Ok(())
}

#[test]
fn keys_reseal_makes_an_older_sealing_key_dispensable() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let (old, new) = (
        "b2xkIGtleSBvbGQga2V5IG9sZCBrZXkgb2xkIGtleSE=",
        "bmV3IGtleSBuZXcga2V5IG5ldyBrZXkgbmV3IGtleSE=",
    );
    let run = |arguments: &[&str], keys: &str| {
        fencepost(folder.path()).args(arguments).env("FENCEPOST_SEALING_KEY", keys).output()
    };
    ensure!(run(&["migrate"], old)?.status.success());
    let resealed = run(&["keys", "reseal"], &format!("{new},{old}"))?;
    ensure!(resealed.status.success(), "{}", stderr(&resealed));
    let text = String::from_utf8(resealed.stdout)?;
    ensure!(text.starts_with("sealed anew: 0, with key "), "{text}");
    ensure!(!text.contains(new) && !text.contains(old), "{text}");
    // Without any key there is nothing to seal with.
    let none = fencepost(folder.path()).args(["keys", "reseal"]).output()?;
    ensure!(!none.status.success() && stderr(&none).contains("FENCEPOST_SEALING_KEY"));
    Ok(())
}

#[test]
fn the_doctor_ends_with_0_while_a_server_lives_and_with_1_when_something_has_to_be_done()
-> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let doctor = |arguments: &[&str]| -> anyhow::Result<(bool, serde_json::Value)> {
        let arguments = [&["doctor", "--json"], arguments].concat();
        let output = fencepost(folder.path()).args(arguments).output()?;
        Ok((output.status.success(), serde_json::from_slice(&output.stdout)?))
    };
    let (well, answer) = doctor(&[])?;
    ensure!(!well && answer["findings"][0]["check"] == "schema", "{answer}");
    let away = ["--database-url", "postgres://nobody@127.0.0.1:1/nothing"];
    let (well, answer) = doctor(&away)?;
    ensure!(!well && answer["findings"][0]["check"] == "database", "{answer}");
    ensure!(answer["level"] == "critical", "{answer}");

    ensure!(fencepost(folder.path()).arg("migrate").output()?.status.success());
    let (well, answer) = doctor(&[])?;
    ensure!(!well && answer["findings"][0]["check"] == "worker", "{answer}");
    let mut server = Server::start(folder.path())?;
    server.line("listening ")?;
    // Its worker takes the lead a moment after it listens.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        let (well, answer) = doctor(&[])?;
        if well {
            ensure!(answer["level"] == "fine", "{answer}");
            break;
        }
        ensure!(std::time::Instant::now() < deadline, "{answer}");
    }
    let words = fencepost(folder.path()).arg("doctor").output()?;
    let words = String::from_utf8(words.stdout)?;
    ensure!(words.contains("ok        worker: a worker lives"), "{words}");
    server.terminate()?;
    Ok(())
}

#[test]
fn under_a_hold_nothing_is_sent_and_what_waits_is_shown_marked_and_let_go() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let run = |arguments: &[&str]| -> anyhow::Result<String> {
        let output = fencepost(folder.path()).args(arguments).output()?;
        ensure!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        Ok(String::from_utf8(output.stdout)?)
    };
    let status = || -> anyhow::Result<serde_json::Value> {
        Ok(serde_json::from_str(&run(&["hold", "status", "--json"])?)?)
    };
    let mut child = fencepost(folder.path())
        .args(["serve", "--hold"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let output = BufReader::new(child.stdout.take().context("its output")?);
    let mut server = Server { child, output };
    let addresses = server.line("listening http://")?;
    let address = addresses.split(' ').next().context("an address")?;
    let key = server.line("admin key, shown once: ")?;
    let post = |path: &str, body: &str| -> anyhow::Result<()> {
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        let answer = self::request(address, &request)?;
        ensure!(answer.starts_with("HTTP/1.1 20"), "{answer}");
        Ok(())
    };
    post("/v1/endpoints", r#"{"id":"orders","url":"https://example.com/hook"}"#)?;
    post("/v1/endpoints/orders/submissions", "{}")?;
    let held = status()?;
    ensure!(held["held"] == true && held["reason"] == "--hold", "{held}");
    ensure!(held["waiting"][0]["endpoint_id"] == "orders", "{held}");
    ensure!(held["waiting"][0]["due"] == 1 && held["open_claims"] == 0, "{held}");
    ensure!(run(&["hold", "on"])?.contains("no claim from before"));
    let marked = run(&["hold", "mark-sent", "--submitted-before", "2999-01-01T00:00:00Z"])?;
    ensure!(marked.starts_with("1 deliveries are marked as sent"), "{marked}");
    ensure!(status()?["waiting"] == serde_json::json!([]));
    run(&["hold", "off"])?;
    ensure!(status()?["held"] == false);
    let refused = fencepost(folder.path())
        .args(["hold", "mark-sent", "--submitted-before", "2999-01-01T00:00:00Z"])
        .output()?;
    ensure!(stderr(&refused).contains("the hold is off"), "{}", stderr(&refused));
    server.terminate()?;
    Ok(())
}
