use serde_json::json;

use super::size;
use crate::graph::Role::*;
use crate::graph::testing::{Empty, Recorder};
use crate::ops::copy::Copy;

#[test]
fn a_graph_as_text() {
    let mut recorder = Recorder::default();
    let (x, y) = (recorder.tensor(Argument, 16), recorder.tensor(Slot, 16));
    let half = recorder.tensor(Temporary, 16);
    recorder.negate(&x, &half);
    recorder.add(&half, &x, &y);
    let graph = recorder.graph().unwrap();
    assert_eq!(
        graph.summary(),
        "2 nodes, 3 blocks, 1 edges\n\
         operations: 1 add, 1 neg\n\
         blocks: 1 argument (64 bytes), 1 slot (64 bytes), 1 temporary (64 bytes)\n\
         arena: 64 bytes, 0.00% over the lower bound of 64 bytes"
    );
    let json = graph.to_json();
    assert_eq!(json["nodes"][1]["name"], "add");
    assert_eq!(json["nodes"][1]["inputs"][0]["shape"], json!([16]));
    assert_eq!(json["nodes"][1]["attributes"], json!({"f": "add"}));
    assert_eq!((&json["nodes"][1]["flops"], &json["nodes"][1]["bytes"]), (&json!(16), &json!(192)));
    assert_eq!(json["edges"], json!([[], [0]]));
    assert_eq!(json["curve"], json!([64, 64]));
    let half = json!({"bytes": 64, "role": "temporary", "first": 0, "last": 1, "offset": 0,
                      "is_written": true});
    assert_eq!(json["blocks"][2], half);
    assert_eq!(json["totals"]["arena_bytes"], 64);
}

#[test]
fn memory_is_given_in_units_for_people() {
    let said = [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.00 KiB"), (3 << 19, "1.50 MiB")];
    said.into_iter().for_each(|(bytes, text)| assert_eq!(size(bytes), text));
    assert_eq!(size((1 << 20) - 1), "1024.00 KiB");
    assert_eq!(
        (size(5 << 30), size(1 << 40), size(1 << 51)),
        ("5.00 GiB".into(), "1.00 TiB".into(), "2048.00 TiB".into())
    );
}

#[test]
fn a_text_counts_operations_and_roles_and_says_what_the_plan_costs() {
    let mut recorder = Recorder::default();
    let (x, p) = (recorder.tensor(Argument, 16), recorder.tensor(Captured, 1024));
    let made = [(); 3].map(|()| recorder.tensor(Temporary, 16));
    recorder.negate(&x, &made[0]);
    recorder.negate(&x, &made[1]);
    recorder.add(&made[0], &made[1], &made[2]);
    let kind = Copy.into();
    let empty = Empty { kind, updates: false, host: false, scratch: 100 };
    recorder.push_empty(&empty, std::slice::from_ref(&made[2]), std::slice::from_ref(&p));
    recorder.tensor(Slot, 4);
    let mut graph = recorder.graph().unwrap();
    let bound = graph.lower_bound_bytes();
    let text = graph.summary();
    assert!(text.contains("\noperations: 2 neg, 1 add, 1 copy\n"), "{text}");
    let blocks = "1 argument (64 bytes), 1 captured (4.00 KiB), 1 slot (16 bytes), \
                  3 temporary (192 bytes)";
    assert!(text.contains(&format!("\nblocks: {blocks}\n")), "{text}");
    graph.layout.height = 2 * bound;
    let over = format!("{}, 100.00% over the lower bound of {}", size(2 * bound), size(bound));
    assert!(graph.summary().ends_with(&over), "{}", graph.summary());
    let json = graph.to_json();
    let scratch = json["nodes"][3]["scratch"].clone();
    assert_eq!(scratch, json!({"bytes": 100, "offset": graph.scratch_offset(3)}));
    assert!(scratch["offset"].is_u64() && json["nodes"][0]["scratch"].is_null());
    let outside = json!({"bytes": 64, "role": "argument", "first": 0, "last": 1,
                         "offset": null, "is_written": false});
    assert_eq!(json["blocks"][0], outside);
    let idle = json!({"bytes": 16, "role": "slot", "first": null, "last": null, "offset": null,
                      "is_written": false});
    assert_eq!(json["blocks"][5], idle);
    let totals = json!({"nodes": 4, "blocks": 6, "edges": 3, "arena_bytes": 2 * bound,
                        "lower_bound_bytes": bound, "peak_bytes": graph.peak_bytes()});
    assert_eq!(json["totals"], totals);
}

#[test]
fn a_text_says_what_threads_share() {
    let mut recorder = Recorder::default();
    let x = recorder.tensor(Argument, 16);
    for _ in 0..4 {
        let y = recorder.tensor(Slot, 16);
        recorder.negate(&x, &y);
    }
    let graph = recorder.parallel(3).unwrap();
    let text = graph.summary();
    assert!(text.ends_with("\nshared: 4 nodes in 1 parts, on 3 threads"), "{text}");
    assert_eq!(graph.to_json()["segments"], json!([[0, 4]]));
}
