//! Listens for callers and for operators, and stops gracefully.

use std::future::ready;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use actix_http::error::DispatchError;
use actix_http::{HttpService, Protocol};
use actix_server::Server;
use actix_service::{IntoServiceFactory, ServiceFactoryExt, map_config};
use actix_web::App;
use actix_web::body::MessageBody;
use actix_web::dev::{
    AppConfig, Service, ServiceFactory, ServiceRequest, ServiceResponse, fn_service,
};
use actix_web::middleware::from_fn;
use actix_web::web::{Data, ServiceConfig};
use anyhow::Context;
use store::Store;
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::context::TokioContext;
use tokio_util::sync::CancellationToken;

use crate::Settings;
use crate::connection::{Connection, Patience};
use crate::routes::{self, State};
use crate::{request_log, unread_body};

/// How many connections wait in the system to be accepted, where it allows so many.
const BACKLOG: u32 = 1_024;

/// How much of an answer the system keeps for a peer that does not take it. It takes twice as much.
const SEND_BUFFER_BYTES: u32 = 64 * 1024;

/// The most open connections of the private address.
const PRIVATE_CONNECTIONS_MAX: usize = 64;

/// An api that serves requests until its token is cancelled.
#[derive(Debug)]
pub struct RunningApi {
    address: SocketAddr,
    private_address: SocketAddr,
    public: JoinHandle<std::io::Result<()>>,
    private: JoinHandle<std::io::Result<()>>,
}

impl RunningApi {
    /// Where callers are served.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where readiness is told.
    #[must_use]
    pub fn private_address(&self) -> SocketAddr {
        self.private_address
    }

    /// Returns when the last request in flight is answered, or the time for that is over.
    ///
    /// # Errors
    /// A listener failed.
    pub async fn finished(self) -> anyhow::Result<()> {
        let (public, private) = tokio::join!(self.public, self.private);
        public.context("the api panicked")?.context("the api failed")?;
        private.context("the private listener panicked")?.context("the private listener failed")
    }
}

/// Binds both addresses and serves requests until `stop` is cancelled. Then it takes no new ones,
/// finishes those in flight within the shutdown timeout, and closes their connections.
///
/// Must be called inside a Tokio runtime.
///
/// # Errors
/// An address cannot be bound.
#[expect(clippy::needless_pass_by_value, reason = "the servers end with what the token stands for")]
pub fn start(
    settings: Settings,
    store: Arc<dyn Store>,
    stop: CancellationToken,
) -> anyhow::Result<RunningApi> {
    process::metrics::install();
    tokio::spawn(process::metrics::keep(stop.clone()));
    let document = routes::document().context("the calls cannot be described")?;
    let state = Data::new(State::new(settings, store, document));
    let settings = &state.settings;
    // Should one of the two end on its own, the other ends with it.
    let stop = stop.child_token();

    let workers = settings.workers.get();
    let (address, server) = bind(
        &Listener {
            address: settings.listen,
            workers,
            connections_max: settings.connections_max.div_ceil(workers),
            routes: routes::public,
        },
        &state,
    )?;
    let (private_address, private_server) = bind(
        &Listener {
            address: settings.private_listen,
            workers: 1,
            connections_max: PRIVATE_CONNECTIONS_MAX,
            routes: routes::private,
        },
        &state,
    )?;
    // Both are bound, so from here on nothing fails.
    let public = spawn(server, stop.clone());
    let private = spawn(private_server, stop);
    Ok(RunningApi { address, private_address, public, private })
}

struct Listener {
    address: SocketAddr,
    workers: usize,
    /// Of each worker.
    connections_max: usize,
    routes: fn(&mut ServiceConfig),
}

fn bind(listener: &Listener, state: &Data<State>) -> anyhow::Result<(SocketAddr, Server)> {
    let Listener { address, workers, connections_max, routes } = *listener;
    let listening = || format!("cannot listen on {address}");
    let socket = listen(address).with_context(listening)?;
    let bound = socket.local_addr().with_context(listening)?;
    let builder = Server::build()
        .workers(workers)
        .max_concurrent_connections(connections_max)
        .shutdown_timeout(state.settings.shutdown_timeout.as_secs())
        // Signals are the process's matter: they cancel the token.
        .disable_signals();
    let (state, runtime) = (state.clone(), Handle::current());
    let stopping = builder.graceful_shutdown_signal();
    let server = builder
        .listen("api", socket, move || {
            let settings = &state.settings;
            let patience = Patience {
                request: settings.keep_alive + settings.client_request_timeout,
                answer: settings.body_deadline,
            };
            let stopping = stopping.clone();
            let app = app(state.clone(), routes, runtime.clone())
                .into_factory()
                .map_err(|error| error.error_response());
            let http = HttpService::build()
                .keep_alive(settings.keep_alive)
                .client_request_timeout(settings.client_request_timeout)
                .client_disconnect_timeout(settings.linger)
                .local_addr(bound)
                .graceful_shutdown_signal(move || {
                    let stopping = stopping.clone();
                    async move { stopping.notified().await }
                })
                .on_connect_ext(|connection: &Connection, data| {
                    data.insert(connection.served());
                })
                .finish(map_config(app, |()| AppConfig::default()));
            fn_service(move |stream: TcpStream| {
                let peer = stream.peer_addr().ok();
                // Where it cannot be set, answers are slower and the same.
                let _ = stream.set_nodelay(true);
                let connection = Connection::new(stream, patience);
                ready(Ok::<_, DispatchError>((connection, Protocol::Http1, peer)))
            })
            .and_then(http)
        })
        .with_context(listening)?;
    Ok((bound, server.run()))
}

/// What is set here, connections have from it.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)?.into_std()
}

/// `runtime` is that of the process. Each worker of actix-web has one of its own, and a database
/// connection that is opened there would end with it, in the pool that the process still uses.
fn app(
    state: Data<State>,
    routes: fn(&mut ServiceConfig),
    runtime: Handle,
) -> App<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody>,
        Error = actix_web::Error,
        InitError = (),
    >,
> {
    App::new()
        .app_data(state)
        .configure(routes)
        .wrap_fn(move |request, next| TokioContext::new(next.call(request), runtime.clone()))
        .wrap(from_fn(unread_body::hold))
        .wrap(from_fn(request_log::observe))
}

fn spawn(server: Server, stop: CancellationToken) -> JoinHandle<std::io::Result<()>> {
    let handle = server.handle();
    let stopping = stop.clone();
    tokio::spawn(async move {
        stopping.cancelled().await;
        handle.stop(true).await;
    });
    tokio::spawn(async move {
        let ended = server.await;
        stop.cancel();
        ended
    })
}
