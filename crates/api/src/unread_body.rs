//! What becomes of a connection whose request was answered before its body was read.
//!
//! actix-web closes such a connection with `Connection: close` after reading on for a moment
//! ([`crate::Settings::linger`]), so that the answer is not lost to a reset. The exception is a
//! chunked body that nobody holds any more: that is read on without end, for the sake of keep-alive.
//! So the body is held here until the answer has been sent, and every case is bounded.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::HttpMessage;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::error::PayloadError;
use actix_web::middleware::Next;
use actix_web::web::Bytes;
use futures_util::Stream;

/// Middleware that holds the body of each request until its answer has been sent.
pub(crate) async fn hold(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let payload = match request.take_payload() {
        Payload::None => return Ok(next.call(request).await?.map_into_boxed_body()),
        payload => Shared(Rc::new(RefCell::new(payload))),
    };
    request.set_payload(Payload::Stream { payload: Box::pin(payload.clone()) });
    let response = next.call(request).await?;
    Ok(response.map_body(|_, body| BoxBody::new(Holding { body: body.boxed(), _payload: payload })))
}

#[derive(Clone)]
struct Shared(Rc<RefCell<Payload>>);

impl Stream for Shared {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_next(cx)
    }
}

struct Holding {
    body: BoxBody,
    _payload: Shared,
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
        self.body.as_pin_mut().poll_next(cx)
    }
}
