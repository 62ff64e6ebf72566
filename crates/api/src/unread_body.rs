//! What becomes of a connection whose request was answered before its body was read.
//!
//! actix-web closes such a connection with `Connection: close` after reading on for a moment
//! ([`crate::Settings::linger`]), so that the answer is not lost to a reset. The exception is a
//! chunked body that nobody holds any more: that is read on without end, for the sake of keep-alive.
//! So the body is held here until the answer has been sent, and every case is bounded.
//!
//! Its connection is told when the request is served, and when it waits for the body: nothing else is
//! read meanwhile ([`crate::connection`]). The answer is handed on in pieces, so that what waits for
//! a slow peer is no second copy of it.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use actix_web::HttpMessage;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::error::PayloadError;
use actix_web::middleware::Next;
use actix_web::web::Bytes;
use futures_util::Stream;

use crate::body::declared_length;
use crate::connection::{Served, Serving};

/// How much of an answer is handed on at once.
const PIECE_BYTES: usize = 16 * 1024;

/// Middleware that holds the body of each request until its answer has been sent.
pub(crate) async fn hold(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let serving = request.conn_data::<Rc<Served>>().map(|served| Rc::clone(served).begin());
    let left = Cell::new(declared_length(request.request()));
    let held = Rc::new(Held { payload: RefCell::new(request.take_payload()), left, serving });
    let payload = Box::pin(Shared(Rc::clone(&held)));
    request.set_payload(Payload::Stream { payload });
    let response = next.call(request).await?;
    Ok(response.map_body(|_, body| {
        BoxBody::new(Holding { body: body.boxed(), piece: Bytes::new(), _held: held })
    }))
}

struct Held {
    payload: RefCell<Payload>,
    /// How much of it is to come, where that was declared.
    left: Cell<Option<usize>>,
    serving: Option<Serving>,
}

struct Shared(Rc<Held>);

impl Stream for Shared {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Held { payload, left, serving } = &*self.0;
        let polled = Pin::new(&mut *payload.borrow_mut()).poll_next(cx);
        if let Poll::Ready(Some(Ok(bytes))) = &polled {
            left.set(left.get().map(|left| left.saturating_sub(bytes.len())));
        }
        match serving {
            Some(serving) if polled.is_pending() => serving.waits_for_body(left.get()),
            Some(serving) => serving.waits_no_more(),
            None => {}
        }
        polled
    }
}

struct Holding {
    body: BoxBody,
    /// What was taken of it and is not yet handed on.
    piece: Bytes,
    _held: Rc<Held>,
}

impl MessageBody for Holding {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        if self.piece.is_empty() {
            match ready!(self.body.as_pin_mut().poll_next(cx)) {
                Some(Ok(bytes)) => self.piece = bytes,
                other => return Poll::Ready(other),
            }
        }
        let most = self.piece.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(self.piece.split_to(most))))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;

    use super::*;

    #[tokio::test]
    async fn an_answer_is_handed_on_whole_and_in_pieces() {
        let whole: Vec<u8> = (0..100_000_u32).map(|number| number.to_le_bytes()[0]).collect();
        let held = Rc::new(Held {
            payload: RefCell::new(Payload::None),
            left: Cell::new(None),
            serving: None,
        });
        let body = BoxBody::new(whole.clone());
        let mut body = pin!(Holding { body, piece: Bytes::new(), _held: held });
        assert_eq!(body.size(), BodySize::Sized(100_000));
        let mut came = Vec::new();
        while let Some(piece) = poll_fn(|cx| body.as_mut().poll_next(cx)).await {
            let piece = piece.unwrap();
            assert!((1..=PIECE_BYTES).contains(&piece.len()));
            came.extend_from_slice(&piece);
        }
        assert_eq!(came, whole);
    }
}
