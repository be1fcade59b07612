//! Tests of routes and their limits: in-flight permits, body sizes, and clients that disconnect.

use std::convert::Infallible;

use axum::body::Body;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::*;

#[test]
fn variables_are_decoded_or_not_found() {
    assert_eq!(decode("a%20b%C3%A9+"), Some("a bé+".to_owned()));
    for bad in ["%", "%2", "%zz", "%ff"] {
        assert_eq!(decode(bad), None, "{bad}");
    }
}

/// Routes that answer at once or never, with one in-flight permit for each sign-in page and one for all others.
fn served() -> RouteTable {
    let never = |_: RouteRequest| std::future::pending::<Result<RouteResponse, Failure>>();
    let at_once = |_: RouteRequest| async { Ok(RouteResponse::html("x")) };
    let routes = vec![
        Route::post("/slow", never).sign_in(),
        Route::post("/quick", at_once).sign_in(),
        Route::post("/page", never),
        Route::post("/other", at_once),
    ];
    let limits = HttpLimits {
        in_flight: 1,
        sign_in_in_flight: 1,
        sign_in_bytes: 10,
        ..HttpLimits::default()
    };
    RouteTable::new(routes, Arc::new(limits), AuthMiddleware(None))
}

fn posted(routes: &RouteTable, path: &str, body: Body) -> BoxFuture<'static, Response> {
    let request = Request::post(path).body(body).unwrap();
    routes.clone().answer(request).boxed()
}

/// Returns the status of a response that is ready once the tasks behind it have run; `None` if it waits for more.
async fn status(answer: &mut BoxFuture<'static, Response>) -> Option<u16> {
    for _ in 0..10 {
        if let Some(response) = answer.now_or_never() {
            return Some(response.status().as_u16());
        }
        tokio::task::yield_now().await;
    }
    None
}

#[tokio::test]
async fn every_page_of_sign_in_has_places_of_its_own() {
    let routes = served();
    let ask = async |path: &str| status(&mut posted(&routes, path, Body::empty())).await;
    let mut held = posted(&routes, "/slow", Body::empty());
    assert_eq!(status(&mut held).await, None);
    assert_eq!(ask("/slow").await, Some(503), "one too many");
    assert_eq!(ask("/quick").await, Some(200));
    assert_eq!(ask("/other").await, Some(200));
    drop(held);
    let mut held = posted(&routes, "/page", Body::empty());
    assert_eq!(status(&mut held).await, None);
    assert_eq!(ask("/other").await, Some(503));
    assert_eq!(ask("/quick").await, Some(200));
    drop(held);
    assert_eq!(ask("/other").await, Some(200));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_sign_in_request_keeps_its_slot_until_the_work_ends() {
    let routes = served();
    let ask = async || status(&mut posted(&routes, "/slow", Body::empty())).await;
    assert_eq!(ask().await, None);
    assert_eq!(ask().await, Some(503), "the visitor left, the work goes on");
    tokio::time::sleep(routes.limits.handler * 2).await;
    assert_eq!(ask().await, None, "there is a place again");
}

#[tokio::test]
async fn a_body_that_is_still_coming_takes_no_place() {
    let routes = served();
    let coming = || Body::from_stream(futures::stream::pending::<Result<Bytes, Infallible>>());
    let mut slow: Vec<_> = ["/quick", "/other"]
        .map(|path| posted(&routes, path, coming()))
        .into();
    for request in &mut slow {
        assert_eq!(status(request).await, None);
    }
    for path in ["/quick", "/other"] {
        let answered = status(&mut posted(&routes, path, Body::empty())).await;
        assert_eq!(answered, Some(200), "{path}");
    }
}

#[tokio::test]
async fn bodies_of_sign_in_have_a_bound_of_their_own() {
    let routes = served();
    for (path, size, expected) in [
        ("/quick", 10, 200),
        ("/quick", 11, 413),
        ("/other", 11, 200),
    ] {
        let body = Body::from(vec![b'x'; size]);
        let answered = status(&mut posted(&routes, path, body)).await;
        assert_eq!(answered, Some(expected), "{path} {size}");
    }
}
