//! A rolling upgrade: processes of the previous release beside those of this one, on this one's schema.
//!
//! `.ci/previous-release` builds its binary, and `FENCEPOST_TEST_PREVIOUS_RELEASE` names it; CI sets that.
//! Without it this shows nothing and says so; what the store's tests show of its statements holds anyway.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use integration_tests::http::ApiClient;
use integration_tests::process::{Api, Worker};
use integration_tests::receiver::{Answer, Receiver};

use crate::history::{assert_consistent, wait_until_nothing_is_owed};
use crate::service::{LONG, Service, submit};

const VARIABLE: &str = "FENCEPOST_TEST_PREVIOUS_RELEASE";
const SUBMISSIONS: usize = 20;

async fn submit_many(client: &ApiClient, who: &str) -> anyhow::Result<BTreeSet<Vec<u8>>> {
    let mut sent = BTreeSet::new();
    for number in 0..SUBMISSIONS {
        let payload = format!("{{\"from\":\"{who}\",\"number\":{number}}}");
        submit(client, "orders", &format!("{who}-{number}"), payload.clone()).await?;
        sent.insert(payload.into_bytes());
    }
    Ok(sent)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_previous_release_works_beside_this_one_and_alone_on_this_ones_schema()
-> anyhow::Result<()> {
    let Some(binary) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
        let _ =
            writeln!(io::stderr(), "the rolling upgrade was left out: {VARIABLE} names no binary");
        return Ok(());
    };
    // The names that the binary goes by.
    let folder = tempfile::tempdir()?;
    let [old_api, old_worker] =
        ["fencepost-api", "fencepost-worker"].map(|name| folder.path().join(name));
    for name in [&old_api, &old_worker] {
        symlink(&binary, name)?;
    }
    let service = Service::start().await?;
    let receiver = Receiver::start(|_, _| Answer::status(204))?;
    service.endpoint("orders", &receiver.url("/"), |_| {}).await?;
    let arrived = || -> BTreeSet<Vec<u8>> {
        receiver.requests().iter().map(|request| request.body.to_vec()).collect()
    };

    let old_api = Api::start(&old_api, &service.settings).await?;
    let old_client = old_api.client(service.key())?;
    let settings = service.settings.clone().with("FENCEPOST_WORKER_NAME", "old");
    let old_worker = Worker::start(&old_worker, "old", &settings).await?;
    let (mut api, client) = service.api().await?;
    let mut worker = service.worker("new").await?;

    let mut sent = submit_many(&old_client, "old").await?;
    sent.extend(submit_many(&client, "new").await?);
    // What one of them has stored under a key, the other one finds.
    submit(&client, "orders", "old-0", "{\"from\":\"old\",\"number\":0}").await?;
    submit(&old_client, "orders", "new-0", "{\"from\":\"new\",\"number\":0}").await?;
    wait_until_nothing_is_owed(&service.database, LONG).await?;
    assert_eq!(arrived(), sent);

    // The upgrade is taken back; the schema stays.
    api.process.kill().await?;
    worker.process.kill().await?;
    sent.extend(submit_many(&old_client, "old-again").await?);
    wait_until_nothing_is_owed(&service.database, LONG).await?;
    assert_eq!(arrived(), sent);
    assert_eq!(receiver.requests().len(), sent.len(), "and nothing twice");
    assert_consistent(&service.database).await?;
    drop((old_api, old_worker));
    Ok(())
}
