//! Who may call.

use crate::harness::{Api, problem};

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_key_is_told_before_anything_about_the_request() {
    let api = Api::start().await;
    for request in [
        api.get("/v1/endpoints?limit=0"),
        api.get("/v1/endpoints/nothing"),
        api.submit("nothing").header("Idempotency-Key", ""),
        api.post("/v1/endpoints").body("{"),
        api.submit("nothing").body(vec![0; 300 * 1024]),
    ] {
        let answer = request.without("Authorization").send().await;
        assert_eq!(answer.problem(), problem(401, "key_missing"));
    }
}
