use proptest::prelude::*;

use super::*;

fn life(first: u32, last: u32) -> Lifetime {
    Lifetime { first, last }
}

/// No two pieces that live at once share a byte, and all lie within the arena.
fn check(lifetimes: &[Lifetime], sizes: &[usize], plan: &Plan) {
    let range = |p: usize| plan.offsets[p]..plan.offsets[p] + sizes[p];
    for a in (0..sizes.len()).filter(|&a| sizes[a] > 0 && !lifetimes[a].is_never()) {
        assert!(plan.offsets[a].is_multiple_of(64) && range(a).end <= plan.height);
        for b in (0..a).filter(|&b| sizes[b] > 0 && lifetimes[a].meets(&lifetimes[b])) {
            assert!(range(a).end <= range(b).start || range(b).end <= range(a).start, "{a} {b}");
        }
    }
    assert!(plan.height >= plan.bound);
}

proptest! {
    #[test]
    fn pieces_that_live_at_once_lie_apart(
        given in prop::collection::vec((0u32..40, 0u32..20, 0usize..3000), 0..60),
    ) {
        let lifetimes: Vec<Lifetime> = given.iter().map(|g| life(g.0, g.0 + g.1)).collect();
        let sizes: Vec<usize> = given.iter().map(|g| g.2).collect();
        check(&lifetimes, &sizes, &plan(&lifetimes, &sizes, 64));
    }
}

#[test]
fn what_takes_no_memory_costs_nothing() {
    let nothing = plan(&[life(0, 5), Lifetime::NEVER], &[0, 100], 64);
    assert_eq!((nothing.height, nothing.bound), (0, 0));
    let plan = plan(&[], &[], 64);
    assert_eq!((plan.height, plan.bound), (0, 0));
}
