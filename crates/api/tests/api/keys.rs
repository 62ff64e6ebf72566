//! Who may call.

use serde_json::{Value, json};

use crate::harness::{Answer, Api, PATIENCE, create_application, problem};

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

async fn make(api: &Api, key: &str, body: &Value) -> Answer {
    api.post("/v1/keys").key(key).json(body).send().await
}

fn secret(answer: &Answer) -> String {
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["key"].as_str().unwrap().to_owned()
}

fn ids(list: &Answer) -> Vec<String> {
    let rows = list.json()["data"].as_array().unwrap().clone();
    rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_shown_once_works_at_once_and_is_refused_after_it_is_revoked() {
    let api = Api::start().await;
    let answer = make(&api, &api.key, &json!({"name": "shop", "role": "read"})).await;
    let key = secret(&answer);
    let created = answer.json();
    let id = created["id"].as_str().unwrap();
    assert!(key.starts_with(created["shown_prefix"].as_str().unwrap()));
    assert_eq!(
        (&created["name"], &created["role"], &created["application_id"], &created["revoked_at"]),
        (&json!("shop"), &json!("read"), &Value::Null, &Value::Null)
    );
    assert_eq!(api.get("/v1/endpoints").key(&key).send().await.status, 200);

    let listed = api.get("/v1/keys").send().await;
    assert_eq!(ids(&listed).len(), 2);
    assert!(!String::from_utf8_lossy(&listed.body).contains(&key), "never again");

    for _ in 0..2 {
        let answer = api.request("DELETE", &format!("/v1/keys/{id}")).send().await;
        assert_eq!((answer.status, answer.body.len()), (204, 0), "again is the same");
    }
    let answer = api.get("/v1/endpoints").key(&key).send().await;
    assert_eq!(answer.problem(), problem(401, "key_unknown"));
    let listed = api.get("/v1/keys").send().await.json();
    let rows = listed["data"].as_array().unwrap();
    let revoked = rows.iter().find(|row| row["id"] == *id).unwrap();
    assert!(revoked["revoked_at"].is_string(), "{revoked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_admin_key_of_all_applications_cannot_revoke_itself() {
    let api = Api::start().await;
    let own = ids(&api.get("/v1/keys").send().await).remove(0);
    let itself = api.request("DELETE", &format!("/v1/keys/{own}"));
    assert_eq!(itself.send().await.problem(), problem(409, "key_last_admin"));
    let next = secret(&make(&api, &api.key, &json!({"name": "next", "role": "admin"})).await);
    assert_eq!(itself.send().await.status, 204);
    assert_eq!(itself.send().await.problem(), problem(401, "key_unknown"));
    assert_eq!(api.get("/v1/keys").key(&next).send().await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_of_one_application_makes_sees_and_revokes_keys_of_that_one_only() {
    let api = Api::start().await;
    create_application(&api, "shop").await;
    create_application(&api, "other").await;
    let body = json!({"name": "admin", "role": "admin", "application_id": "shop"});
    let answer = make(&api, &api.key, &body).await;
    let admin = secret(&answer);
    let body = json!({"name": "other", "role": "read", "application_id": "other"});
    let other = make(&api, &api.key, &body).await.json();

    // Who names no application gets a key of its own one, and not one of all.
    let answer = make(&api, &admin, &json!({"name": "mine", "role": "admin"})).await;
    assert_eq!(answer.json()["application_id"], "shop");
    let mine = answer.json()["id"].as_str().unwrap().to_owned();
    let answer = make(&api, &admin, &body).await;
    assert_eq!(answer.problem(), problem(404, "application_not_found"));

    let answer = api.get("/v1/keys").key(&admin).send().await;
    let listed = answer.json();
    let rows = listed["data"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row["application_id"] == "shop"), "{listed}");
    // Not the whole rows: their last use is noted beside the requests.
    let narrowed = api.get("/v1/keys?application_id=shop").send().await;
    assert_eq!(ids(&narrowed), ids(&answer));

    let path = format!("/v1/keys/{}", other["id"].as_str().unwrap());
    let answer = api.request("DELETE", &path).key(&admin).send().await;
    assert_eq!(answer.problem(), problem(404, "key_not_found"));
    let answer = api.get("/v1/endpoints").key(other["key"].as_str().unwrap()).send().await;
    assert_eq!(answer.status, 200, "it still works");
    let answer = api.request("DELETE", &format!("/v1/keys/{mine}")).key(&admin).send().await;
    assert_eq!(answer.status, 204);

    let listed = api.get("/v1/applications").key(&admin).send().await;
    assert_eq!(ids(&listed), ["shop"]);
    let request = api.post("/v1/applications").json(&json!({"id": "new", "name": "New"}));
    assert_eq!(request.key(&admin).send().await.problem(), problem(403, "key_bound"));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_broken_field_of_a_key_or_an_application_is_named() {
    let api = Api::start().await;
    for (path, body, field, rule) in [
        ("/v1/keys", json!({"role": "read"}), "name", "field_missing"),
        ("/v1/keys", json!({"name": "", "role": "read"}), "name", "name_malformed"),
        ("/v1/keys", json!({"name": "n\u{7}", "role": "read"}), "name", "name_malformed"),
        ("/v1/keys", json!({"name": "n"}), "role", "field_missing"),
        ("/v1/keys", json!({"name": "n", "role": "root"}), "role", "role_unknown"),
        ("/v1/keys", json!({"name": "n", "role": "read", "key": "mine"}), "key", "field_unknown"),
        (
            "/v1/keys",
            json!({"name": "n", "role": "read", "application_id": "A"}),
            "application_id",
            "id_malformed",
        ),
        ("/v1/applications", json!({"name": "n"}), "id", "field_missing"),
        ("/v1/applications", json!({"id": "A", "name": "n"}), "id", "id_malformed"),
        ("/v1/applications", json!({"id": "a"}), "name", "field_missing"),
        ("/v1/applications", json!({"id": "a", "name": "n".repeat(201)}), "name", "name_malformed"),
    ] {
        let answer = api.post(path).json(&body).send().await;
        assert_eq!(answer.problem(), problem(422, "body_invalid"), "{body}");
        assert_eq!(answer.errors(), [(field.to_owned(), rule.to_owned())], "{body}");
    }
    let body = json!({"name": "n", "role": "read", "application_id": "nobody"});
    let answer = make(&api, &api.key, &body).await;
    assert_eq!(answer.problem(), problem(404, "application_not_found"));
    assert_eq!(ids(&api.get("/v1/keys").send().await).len(), 1, "nothing is stored");
    assert_eq!(ids(&api.get("/v1/applications").send().await), ["default"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_id_of_a_key_gets_the_answer_of_an_unknown_one() {
    let api = Api::start().await;
    let id = ids(&api.get("/v1/keys").send().await).remove(0);
    for bad in ["x".to_owned(), id.replace('-', ""), id.to_uppercase(), format!("{{{id}}}")] {
        let answer = api.request("DELETE", &format!("/v1/keys/{bad}")).send().await;
        assert_eq!(answer.problem(), problem(404, "key_not_found"), "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_use_of_a_key_is_noted_beside_the_request() {
    let api = Api::start().await;
    let answer = make(&api, &api.key, &json!({"name": "reader", "role": "read"})).await;
    let key = secret(&answer);
    let used = async || {
        let listed = api.get("/v1/keys").send().await.json();
        listed["data"].as_array().unwrap().iter().find(|row| row["name"] == "reader").unwrap()
            ["last_used_at"]
            .clone()
    };
    assert_eq!(used().await, Value::Null);
    // Even a refused call is a use of the key. The note is written beside it, and a key's turn may
    // come at a later request.
    let noted = async {
        while used().await.is_null() {
            let answer = api.get("/v1/keys").key(&key).send().await;
            assert_eq!(answer.problem(), problem(403, "role_insufficient"));
        }
    };
    tokio::time::timeout(PATIENCE, noted).await.unwrap();
}
