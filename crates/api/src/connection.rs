//! A connection that its peer cannot hold for nothing, nor fill this process through.
//!
//! actix-web bounds the first head of a connection, and the time between two requests. It bounds neither
//! the head of a later request, of which a byte may come now and then for ever, nor the time that a peer
//! takes for an answer; and it reads on while it answers, then takes everything read for requests at once,
//! with kibibytes of memory for each of twenty-five bytes. So here
//!
//! - a request has to begin within [`Patience::request`] of the last answer's end,
//! - what is written has to be taken within [`Patience::answer`],
//! - nothing is read while a request is served, but for its body when that is waited for,
//! - and no more than [`READ_AT_ONCE`] before the dispatcher looks at it, unless it is of a body.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

/// How many bytes are read before the dispatcher looks at them. It takes all requests in them at once.
const READ_AT_ONCE: usize = 1_024;

/// And of a body that is known to have so many more.
const BODY_READ_AT_ONCE: usize = 16 * 1024;

/// How long a peer may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// From the end of an answer, or the connection's start, to the end of the next request's head.
    pub(crate) request: Duration,
    /// For what is written at once.
    pub(crate) answer: Duration,
}

/// What a connection knows of the request that is served on it.
#[derive(Debug)]
pub(crate) struct Served {
    state: Cell<State>,
    /// Of the dispatcher, when it was let read nothing.
    held_back: RefCell<Option<Waker>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// None is, since then.
    Nothing(Instant),
    /// One is, and nothing is needed for it.
    Request,
    /// One is, and it waits for more of its body: this much, where that is known.
    Body(Option<usize>),
}

impl Served {
    fn nothing_yet() -> Self {
        Self { state: Cell::new(State::Nothing(Instant::now())), held_back: RefCell::default() }
    }

    /// A request is served until what is returned is dropped.
    pub(crate) fn begin(self: Rc<Self>) -> Serving {
        self.state.set(State::Request);
        Serving(self)
    }

    fn set(&self, state: State) {
        self.state.set(state);
        if state != State::Request
            && let Some(dispatcher) = self.held_back.take()
        {
            dispatcher.wake();
        }
    }

    fn hold_back(&self, cx: &Context<'_>) {
        let mut held_back = self.held_back.borrow_mut();
        if !held_back.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *held_back = Some(cx.waker().clone());
        }
    }
}

/// A request that is served.
#[derive(Debug)]
pub(crate) struct Serving(Rc<Served>);

impl Serving {
    /// It waits for the rest of its body, which is this much, where that is known.
    pub(crate) fn waits_for_body(&self, left: Option<usize>) {
        self.0.set(State::Body(left));
    }

    /// Something of its body came, or all of it.
    pub(crate) fn waits_no_more(&self) {
        self.0.set(State::Request);
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.set(State::Nothing(Instant::now()));
    }
}

/// A stream that fails when its peer takes too long.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    patience: Patience,
    served: Rc<Served>,
    /// How much was read since the dispatcher looked at it.
    unseen_bytes: usize,
    /// Since when the peer does not take what is written.
    stalled_since: Option<Instant>,
    /// Fires no later than the peer has taken too long.
    alarm: Pin<Box<Sleep>>,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream, patience: Patience) -> Self {
        Self {
            stream,
            patience,
            served: Rc::new(Served::nothing_yet()),
            unseen_bytes: 0,
            stalled_since: None,
            alarm: Box::pin(sleep_until(Instant::now() + patience.request)),
        }
    }

    /// What it shall be told of requests.
    pub(crate) fn served(&self) -> Rc<Served> {
        Rc::clone(&self.served)
    }

    /// When the peer has taken too long, unless it is our turn.
    fn ends_at(&self) -> Option<Instant> {
        match (self.stalled_since, self.served.state.get()) {
            (Some(since), _) => Some(since + self.patience.answer),
            (None, State::Nothing(since)) => Some(since + self.patience.request),
            (None, State::Request | State::Body(_)) => None,
        }
    }

    /// Ready when the peer has taken too long; else the task is woken when it may have.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        loop {
            let now = Instant::now();
            let ends_at = self.ends_at().unwrap_or(now + self.patience.answer);
            if now >= ends_at {
                let why = "the peer took too long for a request or an answer";
                return Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            if ends_at < self.alarm.deadline() || self.alarm.is_elapsed() {
                self.alarm.as_mut().reset(ends_at);
            }
            ready!(self.alarm.as_mut().poll(cx));
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Also before what is there to be read: it may be a byte of a head that never ends.
        if let Poll::Ready(error) = self.poll_patience(cx) {
            return Poll::Ready(Err(error));
        }
        if self.stalled_since.is_some() {
            // Writing goes on first, and wakes the dispatcher when it is through.
            return Poll::Pending;
        }
        let at_once = match self.served.state.get() {
            State::Request => {
                self.served.hold_back(cx);
                return Poll::Pending;
            }
            State::Body(Some(left)) => left.clamp(READ_AT_ONCE, BODY_READ_AT_ONCE),
            State::Body(None) | State::Nothing(_) => READ_AT_ONCE,
        };
        let most = at_once.saturating_sub(self.unseen_bytes).min(buffer.remaining());
        if most == 0 {
            self.unseen_bytes = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(most));
        let read = Pin::new(&mut self.stream).poll_read(cx, &mut part);
        let bytes = part.filled().len();
        buffer.advance(bytes);
        self.unseen_bytes = if read.is_pending() { 0 } else { self.unseen_bytes + bytes };
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = Pin::new(&mut self.stream).poll_write(cx, bytes) {
            return Poll::Ready(written);
        }
        self.stalled_since.get_or_insert_with(Instant::now);
        self.poll_patience(cx).map(Err)
    }

    /// Asked for when all that was to be written is.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.stalled_since.take().is_some() {
            // The dispatcher was let read nothing, and does not know that it may.
            cx.waker().wake_by_ref();
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    async fn pair() -> (Connection, TcpStream) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        (Connection::new(stream, Patience { request: HOUR, answer: HOUR }), peer)
    }

    async fn poll_read(connection: &mut Connection, bytes: usize) -> Poll<usize> {
        let mut buffer = vec![0; bytes];
        let mut buffer = ReadBuf::new(&mut buffer);
        let poll = |cx: &mut Context<'_>| {
            Poll::Ready(Pin::new(&mut *connection).poll_read(cx, &mut buffer))
        };
        poll_fn(poll).await.map(|read| {
            read.unwrap();
            buffer.filled().len()
        })
    }

    #[tokio::test]
    async fn the_dispatcher_looks_at_what_was_read_before_more_is() {
        let (mut connection, mut peer) = pair().await;
        let body = 2 * READ_AT_ONCE;
        peer.write_all(&vec![b'x'; 4 * READ_AT_ONCE + body]).await.unwrap();
        connection.stream.readable().await.unwrap();
        let most = 1 << 20;
        assert_eq!(poll_read(&mut connection, 100).await, Poll::Ready(100));
        assert_eq!(poll_read(&mut connection, most).await, Poll::Ready(READ_AT_ONCE - 100));
        assert_eq!(poll_read(&mut connection, most).await, Poll::Pending);
        assert_eq!(poll_read(&mut connection, most).await, Poll::Ready(READ_AT_ONCE));
        // It comes again by itself.
        assert_eq!(connection.read(&mut vec![0; most]).await.unwrap(), READ_AT_ONCE);
        assert_eq!(poll_read(&mut connection, most).await, Poll::Pending);
        // What is known to be of a body is no request.
        let serving = connection.served().begin();
        serving.waits_for_body(Some(body));
        assert_eq!(poll_read(&mut connection, most).await, Poll::Ready(body));
        assert_eq!(poll_read(&mut connection, most).await, Poll::Pending);
        serving.waits_for_body(None);
        assert_eq!(poll_read(&mut connection, most).await, Poll::Ready(READ_AT_ONCE));
    }

    #[tokio::test]
    async fn while_a_request_is_served_only_its_body_is_read_and_when_it_is_waited_for() {
        let (mut connection, mut peer) = pair().await;
        peer.write_all(b"abc").await.unwrap();
        connection.stream.readable().await.unwrap();
        let serving = connection.served().begin();
        assert_eq!(poll_read(&mut connection, 1).await, Poll::Pending);
        serving.waits_for_body(None);
        assert_eq!(poll_read(&mut connection, 1).await, Poll::Ready(1));
        serving.waits_no_more();
        assert_eq!(poll_read(&mut connection, 1).await, Poll::Pending);
        // Who was held back is woken.
        let reading = async { connection.read(&mut [0]).await.unwrap() };
        let (read, ()) = tokio::join!(biased; reading, async { drop(serving) });
        assert_eq!(read, 1);
        assert_eq!(poll_read(&mut connection, 1).await, Poll::Ready(1));
    }
}
