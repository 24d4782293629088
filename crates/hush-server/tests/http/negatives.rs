//! The negative vectors of requests, sent to a server.

use hush_server::ServerConfig;

use crate::{
    harness::{TestServer, config},
    negative_vectors::negatives,
};

#[test]
fn requests_get_the_verdicts_of_the_documents() {
    let (server, _engine) = TestServer::with_engine(ServerConfig { max_queries: 6, ..config() });
    for negative in negatives("query_request") {
        let response = server.client().post_query(&negative.input);
        let said = String::from_utf8_lossy(&response.body).into_owned();
        let problem = serde_json::from_str::<serde_json::Value>(&said).unwrap_or_default();
        let code = problem["code"].as_str();
        negative.check(response.status == 200, code, &said);
    }
    assert_eq!(server.client().get("/v1/tables").status, 200);
}
