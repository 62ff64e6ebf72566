use super::{Answer, Request};

/// The same answer to every request.
pub fn always<A: Into<Answer>>(
    answer: A,
) -> impl Fn(&Request, usize) -> Answer + Send + Sync + 'static {
    let answer = answer.into();
    move |_, _| answer.clone()
}

/// To each `webhook-id` these answers, one a request; the last one also to every later request.
pub fn sequence<A: Into<Answer>, const N: usize>(
    answers: [A; N],
) -> impl Fn(&Request, usize) -> Answer + Send + Sync + 'static {
    const { assert!(N > 0, "a sequence has at least one answer") };
    let answers = answers.map(Into::into);
    move |_, nth| answers[nth.clamp(1, N) - 1].clone()
}
