//! Names to addresses, checked at the moment of the connection.
//!
//! The client connects to what this hands it and to nothing else, so an address that was checked is
//! the address that is connected to; a name that resolves differently a moment later gains nothing.
//! One refused address refuses the name. An address that is written in the URL never comes here:
//! the client connects to it directly, and [`send`](crate::send) checks it.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::destination::{AddressPolicy, OnlyNetworks, RefusedResolution};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// How many look-ups run at once. Each occupies a thread until the system's resolver gives up, which
/// may be long after the request that asked has ended.
const RUNNING_MAX: usize = 64;

/// How many look-ups may go on beyond their time, when nobody waits for them any more: a name server
/// that is silent must not take the places of names that can be resolved. Together with those above
/// they stay below the 512 threads that the runtime has for blocking work.
const OVERDUE_MAX: usize = 384;

/// From when on a look-up is overdue.
const OVERDUE_AFTER: Duration = Duration::from_secs(3);

/// How many names are being looked up or wait for it. Beyond it a request fails at once.
const OPEN_MAX: usize = 1_024;

/// How many addresses of a name are tried. All of them are checked.
const ADDRESSES_MAX: usize = 16;

/// How much earlier than the connect deadline a look-up ends at the latest, so that a name that is
/// not resolved in time is reported as such.
const ENDS_BEFORE: Duration = Duration::from_millis(10);

/// Why a name gave no address to connect to.
#[derive(Debug, thiserror::Error)]
pub(super) enum ResolveError {
    /// The address policy refuses it.
    #[error("{name}: {refused}")]
    Refused {
        /// The name.
        name: String,
        /// The address and the reason, or that there was none.
        refused: RefusedResolution,
    },
    /// The look-up failed.
    #[error("{name} could not be resolved: {reason}")]
    Failed {
        /// The name.
        name: String,
        /// What the resolver said.
        reason: Arc<io::Error>,
    },
    /// The look-up took too long.
    #[error("{name} was not resolved within {deadline:?}")]
    TimedOut {
        /// The name.
        name: String,
        /// How long was waited.
        deadline: Duration,
    },
}

/// Resolves and checks names for one client.
pub(super) struct Resolver {
    lookups: Arc<Lookups>,
    policy: Arc<AddressPolicy>,
    only: Option<OnlyNetworks>,
    deadline: Duration,
}

impl Resolver {
    pub(super) fn new(
        lookups: Arc<Lookups>,
        policy: Arc<AddressPolicy>,
        only: Option<OnlyNetworks>,
        dns_deadline: Duration,
        connect_deadline: Duration,
    ) -> Self {
        let deadline = dns_deadline.min(connect_deadline.saturating_sub(ENDS_BEFORE));
        Self { lookups, policy, only, deadline }
    }

    fn addresses(
        &self,
        name: String,
    ) -> impl Future<Output = Result<Vec<IpAddr>, ResolveError>> + Send + use<> {
        let (lookups, policy) = (Arc::clone(&self.lookups), Arc::clone(&self.policy));
        let (only, deadline) = (self.only.clone(), self.deadline);
        async move {
            let addresses = match timeout(deadline, lookups.look_up(&name)).await {
                Ok(Ok(addresses)) => addresses,
                Ok(Err(reason)) => return Err(ResolveError::Failed { name, reason }),
                Err(_) => return Err(ResolveError::TimedOut { name, deadline }),
            };
            match check(&addresses, &policy, only.as_ref()) {
                Ok(()) => Ok(addresses.iter().copied().take(ADDRESSES_MAX).collect()),
                Err(refused) => Err(ResolveError::Refused { name, refused }),
            }
        }
    }
}

/// One refused address refuses the name.
fn check(
    addresses: &[IpAddr],
    policy: &AddressPolicy,
    only: Option<&OnlyNetworks>,
) -> Result<(), RefusedResolution> {
    policy.check_resolved(addresses)?;
    if let Some(only) = only {
        addresses.iter().try_for_each(|address| only.check(*address))?;
    }
    Ok(())
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let addresses = self.addresses(name.as_str().to_owned());
        Box::pin(async move {
            // The client puts the URL's port in the place of 0.
            let addresses = addresses.await?.into_iter().map(|ip| SocketAddr::new(ip, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

type Answer = Result<Arc<[IpAddr]>, Arc<io::Error>>;
type Lookup = Shared<BoxFuture<'static, Answer>>;

/// How a name is resolved: answers its addresses, checked by nobody yet.
pub type Resolution =
    Box<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// The look-ups that are under way. A name is looked up once at a time, however many requests wait
/// for it, so that a name server that hangs holds one thread and not all.
pub(super) struct Lookups {
    resolve: Resolution,
    running: Semaphore,
    overdue: Semaphore,
    open: Mutex<HashMap<String, Lookup>>,
}

impl Lookups {
    /// Look-ups by the system's resolver.
    pub(super) fn of_the_system() -> Arc<Self> {
        Self::new(Box::new(|name| {
            Box::pin(async move {
                let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
                Ok(found.map(|address| address.ip()).collect())
            })
        }))
    }

    /// Look-ups by something else.
    pub(super) fn new(resolve: Resolution) -> Arc<Self> {
        let (running, overdue) = (Semaphore::new(RUNNING_MAX), Semaphore::new(OVERDUE_MAX));
        Arc::new(Self { resolve, running, overdue, open: Mutex::default() })
    }

    fn open(&self) -> std::sync::MutexGuard<'_, HashMap<String, Lookup>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the look-up of that name, or starts it.
    fn look_up(self: &Arc<Self>, name: &str) -> Lookup {
        let mut open = self.open();
        if let Some(lookup) = open.get(name) {
            return lookup.clone();
        }
        if open.len() >= OPEN_MAX {
            let error = Arc::new(io::Error::other("too many names are being looked up"));
            return async { Err(error) }.boxed().shared();
        }
        // A task of its own: it goes on, and holds its place, when the request has given up.
        let entry = Entry { lookups: Arc::clone(self), name: name.to_owned() };
        let task = tokio::spawn(async move {
            let lookups = &entry.lookups;
            let place = lookups.running.acquire().await.map_err(io::Error::other)?;
            let mut answer = (lookups.resolve)(entry.name.clone());
            if let Ok(answer) = timeout(OVERDUE_AFTER, &mut answer).await {
                return answer;
            }
            // It goes on among the overdue, if there is room; else it keeps its place.
            let overdue = lookups.overdue.try_acquire();
            let _place = overdue.map_or_else(|_| Some(place), |_| None);
            answer.await
        });
        let lookup = async move {
            let answer = task.await.unwrap_or_else(|panicked| Err(io::Error::other(panicked)));
            answer.map(Arc::from).map_err(Arc::new)
        };
        let lookup = lookup.boxed().shared();
        open.insert(name.to_owned(), lookup.clone());
        lookup
    }
}

/// Takes a look-up out of those under way when it ends, however it ends.
struct Entry {
    lookups: Arc<Lookups>,
    name: String,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.lookups.open().remove(&self.name);
    }
}

impl fmt::Debug for Lookups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookups").field("open", &self.open().len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
