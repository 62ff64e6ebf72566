//! Receivers that answer the worker's requests with as much as is taken, or with nothing.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::application::DEFAULT_APPLICATION_KEY;
use domain::destination::{AddressPolicy, DestinationUrl};
use domain::endpoint::{CaCertificates, CustomHeaders, EndpointSettings, SettingsDraft};
use domain::id::PublicId;
use domain::signing::SigningSecret;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::StatusCode;
use integration_tests::http::ApiClient;
use integration_tests::process::{Api, Settings, Worker};
use integration_tests::{api_binary, worker_binary};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use store::api_key::{NewApiKey, Role};
use store::endpoint::NewEndpoint;
use store::sealing::{Sealer, SealingKey};
use store::{Store, StoreOptions};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::measured::{Measured, PEERS, peak_of};

/// Of the endpoints, the longest that may be: so all requests are open at once.
const DEADLINE: Duration = Duration::from_secs(30);
/// How long a receiver waits for the others, so that they begin together.
const GATHERED_WITHIN: Duration = Duration::from_secs(15);
/// After which a connection that is still open is one that the worker keeps.
const ENOUGH: Duration = Duration::from_secs(60);
/// The key that `Settings::new` gives to the processes, as bytes.
const SEALING_KEY: &[u8; 32] = b"fencepost tests seal with this!!";

#[derive(Clone)]
struct Kind {
    name: &'static str,
    tls: bool,
    start: Vec<u8>,
    /// Sent again and again.
    then: Vec<u8>,
    /// After each of which so much time passes.
    pause: Duration,
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), bytes].concat()
}

fn kinds() -> Vec<Kind> {
    let plain = |name, start: &str, then: &[u8]| Kind {
        name,
        tls: false,
        start: start.as_bytes().to_vec(),
        then: then.to_vec(),
        pause: Duration::from_millis(1),
    };
    let slow = |kind: Kind| Kind { pause: Duration::from_millis(500), ..kind };
    let h2 = |name, start: Vec<u8>, then: Vec<u8>| Kind {
        name,
        tls: true,
        start,
        then,
        pause: Duration::from_millis(1),
    };
    let head = "HTTP/1.1 200 OK\r\n";
    let gzip = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], &vec![0; 65_536]].concat();
    let line = [&[0, 1, b'x', 100][..], &[b'y'; 100]].concat();
    vec![
        plain("no answer", "", b""),
        slow(plain("a head that drips", "HTTP/1.1 200 OK\r\nx: ", b"y")),
        plain("headers without end", head, &b"x: y\r\n".repeat(1_000)),
        plain("a header without end", "HTTP/1.1 200 OK\r\nx: ", &[b'y'; 65_536]),
        plain("interim answers without end", "", &b"HTTP/1.1 100 Continue\r\n\r\n".repeat(100)),
        slow(plain("a body that drips", "HTTP/1.1 200 OK\r\n\r\n", b"y")),
        plain("a body without end", "HTTP/1.1 200 OK\r\n\r\n", &[b'x'; 65_536]),
        plain(
            "a compressed body without end",
            "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n",
            &gzip,
        ),
        plain(
            "chunk extensions without end",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;",
            &[b'x'; 65_536],
        ),
        h2("HTTP/2, no answer", Vec::new(), Vec::new()),
        h2(
            "HTTP/2, headers without end",
            frame(1, 0, 1, &[0x88]),
            frame(9, 0, 1, &line.repeat(150)),
        ),
        h2("HTTP/2, a body without end", frame(1, 4, 1, &[0x88]), frame(0, 0, 1, &[b'x'; 16_384])),
        h2(
            "HTTP/2, settings and pings without end",
            Vec::new(),
            [frame(4, 0, 0, &[]), frame(6, 0, 0, &[7; 8])].concat().repeat(100),
        ),
        h2(
            "HTTP/2, interim answers without end",
            Vec::new(),
            frame(1, 4, 1, &[&[0x08, 3][..], b"103"].concat()).repeat(100),
        ),
    ]
}

/// Where the worker finds receivers of the kind that is measured. Each has an address of its own, since
/// connections to one are shared.
struct Site {
    scheme: &'static str,
    port: u16,
    certificates: CaCertificates,
    kind: watch::Sender<Option<Kind>>,
    /// The most that were open at once.
    most: Arc<AtomicUsize>,
    /// How many requests of the kind came.
    came: watch::Sender<usize>,
    ended: watch::Receiver<usize>,
}

impl Site {
    async fn open() -> anyhow::Result<[Self; 2]> {
        let params = {
            let mut params = CertificateParams::new(Vec::new())?;
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params
        };
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let certificates = CaCertificates::parse(&authority.pem())?;
        let plain = Self::start(None, certificates.clone()).await?;
        Ok([plain, Self::start(Some(Arc::new(authority)), certificates).await?])
    }

    async fn start(
        tls: Option<Arc<Authority>>,
        certificates: CaCertificates,
    ) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("0.0.0.0:0").await?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let port = listener.local_addr()?.port();
        let (kind, kinds) = watch::channel(None);
        let (ends, ended) = watch::channel(0);
        let (came, _) = watch::channel(0);
        let gathering = came.clone();
        let (opened, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let highest = Arc::clone(&most);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Some(kind) = kinds.borrow().clone() else { continue };
                let gathering = gathering.clone();
                let (tls, opened, highest, ends) =
                    (tls.clone(), Arc::clone(&opened), Arc::clone(&highest), ends.clone());
                tokio::spawn(async move {
                    let now = opened.fetch_add(1, Ordering::SeqCst) + 1;
                    highest.fetch_max(now, Ordering::SeqCst);
                    let playing = async {
                        match tls {
                            None => Ok::<_, anyhow::Error>(play(stream, &kind, &gathering).await?),
                            Some(authority) => {
                                let at = stream.local_addr()?.ip();
                                let acceptor = acceptor(&authority, at)?;
                                Ok(play(acceptor.accept(stream).await?, &kind, &gathering).await?)
                            }
                        }
                    };
                    // An error is the worker's end of it.
                    let _ = tokio::time::timeout(ENOUGH, playing).await;
                    opened.fetch_sub(1, Ordering::SeqCst);
                    ends.send_modify(|ends| *ends += 1);
                });
            }
        });
        Ok(Self { scheme, port, certificates, kind, most, came, ended })
    }
}

type Authority = CertifiedIssuer<'static, KeyPair>;

/// Shows a certificate for that address.
fn acceptor(authority: &Authority, address: IpAddr) -> anyhow::Result<TlsAcceptor> {
    let key = KeyPair::generate()?;
    let certificate =
        CertificateParams::new(vec![address.to_string()])?.signed_by(&key, authority)?;
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Reads what comes, answers the first of it, and goes on until the worker ends the connection.
async fn play(
    stream: impl AsyncRead + AsyncWrite,
    kind: &Kind,
    came: &watch::Sender<usize>,
) -> std::io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    if kind.tls {
        writer.write_all(&frame(4, 0, 0, &[])).await?;
        writer.flush().await?;
        read_head(&mut reader).await?;
    } else {
        reader.read_u8().await?;
    }
    came.send_modify(|came| *came += 1);
    let mut others = came.subscribe();
    let all = others.wait_for(|came| *came >= PEERS);
    // Who is missing is counted: fewer were open at once.
    let _ = tokio::time::timeout(GATHERED_WITHIN, all).await;
    let mut sink = tokio::io::sink();
    let reading = tokio::io::copy(&mut reader, &mut sink);
    let mut ticks = tokio::time::interval(kind.pause);
    let writing = async {
        writer.write_all(&kind.start).await?;
        writer.flush().await?;
        while !kind.then.is_empty() {
            writer.write_all(&kind.then).await?;
            writer.flush().await?;
            ticks.tick().await;
        }
        std::future::pending::<std::io::Result<()>>().await
    };
    tokio::select! {
        read = reading => read.map(drop),
        written = writing => written,
    }
}

/// Reads the preface of a connection over HTTP/2, and frames up to the head of its first request.
async fn read_head(reader: &mut (impl AsyncRead + Unpin)) -> std::io::Result<()> {
    reader.read_exact(&mut [0; 24]).await?;
    loop {
        let mut head = [0; 9];
        reader.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut bytes = reader.take(length.into());
        tokio::io::copy(&mut bytes, &mut tokio::io::sink()).await?;
        if head[3] == 1 {
            return Ok(());
        }
    }
}

/// A database on which [`PEERS`] deliveries to a site are due, and which nobody has open.
async fn prepare(folder: &Path, site: &Site) -> anyhow::Result<()> {
    let url = database_url(folder);
    store::migrate(&url).await?;
    let sealer = Sealer::new(SealingKey::from_slice(SEALING_KEY)?, Vec::new());
    let store = store::open(&url, StoreOptions::new(sealer)).await?;
    let key = NewApiKey::generate("test", Role::Admin, None)?;
    store.create_api_key(&key).await?;
    let settings = Settings::new(&url).with("RUST_LOG", "off").with("FENCEPOST_SOURCE_RATE", "off");
    let mut api = Api::start(api_binary!(), &settings).await?;
    let client = api.client(key.reveal())?;
    for number in 0..PEERS {
        create_endpoint(store.as_ref(), number, site).await?;
    }
    drop(store);
    stream::iter(0..PEERS)
        .map(|number| submit(&client, number))
        .buffer_unordered(32)
        .try_collect::<()>()
        .await?;
    api.process.terminate().await?;
    api.process.wait_exit(DEADLINE).await?;
    Ok(())
}

fn database_url(folder: &Path) -> String {
    format!("sqlite:{}", folder.join("fencepost.db").display())
}

async fn create_endpoint(store: &dyn Store, number: usize, site: &Site) -> anyhow::Result<()> {
    let draft = SettingsDraft {
        deadline: DEADLINE,
        connect_deadline: DEADLINE,
        ca_certificates: Some(site.certificates.clone()),
        ..SettingsDraft::default()
    };
    let Site { scheme, port, .. } = site;
    let url = format!("{scheme}://127.0.{}.{}:{port}/", 1 + number / 250, 1 + number % 250);
    let policy = AddressPolicy { allow_networks: vec!["127.0.0.0/8".parse()?] };
    let new = NewEndpoint {
        key: store::new_id::endpoint_key(),
        application: DEFAULT_APPLICATION_KEY,
        id: PublicId::parse(&format!("e{number}"))?,
        url: DestinationUrl::parse(&url, &policy)?,
        name: None,
        event_types: None,
        headers: CustomHeaders::default(),
        enabled: true,
        settings: EndpointSettings::new(draft)?,
        secret: SigningSecret::from_slice(&[42; 32])?,
        ed25519: store::secret::generate_ed25519()?,
    };
    store.create_endpoint(&new).await?;
    Ok(())
}

async fn submit(client: &ApiClient, endpoint: usize) -> anyhow::Result<()> {
    let path = format!("/v1/endpoints/e{endpoint}/submissions");
    let reply = client.post(&path, &[], "{}").await?;
    reply.expect_status(StatusCode::ACCEPTED)?;
    Ok(())
}

pub(crate) async fn measure() -> anyhow::Result<Vec<Measured>> {
    let mut sites = Site::open().await?;
    let folders = [tempfile::tempdir()?, tempfile::tempdir()?];
    for (folder, site) in folders.iter().zip(&sites) {
        prepare(folder.path(), site).await?;
    }
    let mut all = Vec::new();
    for kind in kinds() {
        let (folder, site) = (&folders[usize::from(kind.tls)], &mut sites[usize::from(kind.tls)]);
        all.push(measure_one(folder.path(), site, kind).await?);
    }
    Ok(all)
}

/// A worker of its own meets all of them, each once.
async fn measure_one(prepared: &Path, site: &mut Site, kind: Kind) -> anyhow::Result<Measured> {
    let folder = tempfile::tempdir()?;
    for file in std::fs::read_dir(prepared)? {
        let file = file?;
        std::fs::copy(file.path(), folder.path().join(file.file_name()))?;
    }
    site.most.store(0, Ordering::SeqCst);
    site.came.send_replace(0);
    let ended_before = *site.ended.borrow();
    let name = kind.name;
    site.kind.send_replace(Some(kind));
    let settings = Settings::new(&database_url(folder.path())).with("RUST_LOG", "off");
    let worker = Worker::start(worker_binary!(), "worker", &settings).await?;
    let before = peak_of(&worker.process)?;
    site.ended.wait_for(|ended| *ended >= ended_before + PEERS).await?;
    let peak = peak_of(&worker.process)?;
    drop(worker);
    let peers = site.most.load(Ordering::SeqCst);
    Ok(Measured { kind: name, peers, before, peak }.told())
}
