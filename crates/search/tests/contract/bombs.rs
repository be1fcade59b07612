//! Queries made to exhaust a search: each is answered like any other.

use docent_search::Engine;

use crate::shelf::{fill, hits};

fn bombs() -> Vec<String> {
    let short = [
        "",
        "*",
        "a*",
        "*a*",
        "?",
        "**",
        "a?b*c",
        "/.*/",
        "/(a+)+$/",
        "[a TO z]",
        "{a TO *}",
        "title:ferry",
        "id:\"d0\"",
        "\"ferry",
        "\"ferry\"~1000000000",
        "ferry^1e38",
        "ferry~99",
        "NOT",
        "AND OR NOT",
        "-ferry",
        "+-+-",
        "field:(",
        "\\",
        "\0",
        "a\0b",
        "\u{7}\u{1b}[31m",
        "\u{FFFD}\u{FFFD}",
        "\u{202E}yrref",
        "\u{E0041}\u{E0042}",
        "\u{FEFF}",
        "'",
        "’s",
        "%00%ff",
        "{\"query\":1}",
        "<script>alert(1)</script>",
        "'; DROP TABLE documents; --",
    ];
    let mut bombs: Vec<String> = short.map(str::to_owned).into();
    bombs.extend([
        format!("{}a{}", "(".repeat(20_000), ")".repeat(20_000)),
        (0..10_000).map(|n| format!("t{n} ")).collect(),
        "ferry ".repeat(10_000),
        "x".repeat(1 << 20),
        "\u{10FFFF}".repeat(1 << 18),
        "e\u{301}".repeat(1 << 19),
        format!("a{}", "\u{301}".repeat(1 << 19)),
        "東".repeat(1 << 18),
        "\"ferry ".repeat(5_000),
        "ferry AND ".repeat(5_000),
        "İ".repeat(1 << 18),
        "\u{FDFA}".repeat(2_000),
    ]);
    bombs
}

pub(crate) async fn every_bomb_is_answered(engine: &dyn Engine) {
    fill(
        engine,
        &["The ferry was late.", "東京都", "t1 t2 t3 x a b", ""],
    )
    .await;
    let bombs = bombs();
    assert!(bombs.len() >= 40);
    for bomb in &bombs {
        let found = hits(engine, bomb, usize::MAX).await;
        let shown: String = bomb.chars().take(40).collect();
        assert!(found.len() <= 3, "{shown:?}");
        assert!(found.iter().all(|hit| hit.score > 0.0), "{shown:?}");
    }
    assert_eq!(hits(engine, "ferry", 10).await.len(), 1);
}
