//! Prepared kernels: which of them are cached, and that they run.

use super::*;
use crate::kernels::testing::user_code;
use crate::ops::call::Parts;
use crate::ops::random::Advance;
use crate::ops::unary::{Unary, UnaryFn};

/// How many bytes prepared kernels may hold.
const MOST: usize = 256 << 20;

#[test]
fn equal_operations_share_a_kernel_and_others_of_the_same_hash_do_not() {
    let engine = engine(1 << 20);
    let mut kernels = KernelCache::new(engine.device());
    let [one, other] = [(); 2].map(|()| user_code());
    let hash = |kind| Parts { kind, inputs: <&[View]>::default(), given: None }.hash(1);
    assert_eq!(hash(&one), hash(&other), "both have one name");
    let mut get = |kind: &Kind| kernels.get(kind, &[], None).unwrap().clone();
    let first = get(&one);
    assert!(Arc::ptr_eq(&first, &get(&one)));
    assert!(get(&other).kind == other && get(&one).kind == one);
}

#[test]
fn kernels_that_hold_too_much_are_let_go_those_used_longest_ago_first() {
    let engine = engine(1 << 20);
    let state = tensor(&engine, &[2], &[0i64; 2]);
    let mut kernels = KernelCache::new(engine.device());
    let mut get = |by| {
        let advance = Kind::from(Advance { by });
        kernels.get(&advance, std::slice::from_ref(&state), None).unwrap();
    };
    let ledger = engine.device().ledger();
    let held = || ledger.balance(Account::Kernels);
    [1, 2, 3].into_iter().for_each(&mut get);
    let one = held() / 3;
    // Pretend that a kernel holds this much: together with one of the three, exactly the limit.
    ledger.charge(Account::Kernels, MOST - one);
    get(4);
    assert_eq!(held(), MOST + one);
    ledger.release(Account::Kernels, MOST - one);
    get(3);
    get(4);
    assert_eq!(held(), 2 * one, "these two are kept");
    get(1);
    assert_eq!(held(), 3 * one);
}

#[test]
fn an_operation_whose_results_are_looked_at_runs() {
    let engine = engine(1 << 20);
    let x = tensor(&engine, &[2], &[1f32, -2.0]);
    let before = check_finite(true);
    let made = run(&engine, Unary { f: UnaryFn::Neg }, &[&x]);
    check_finite(before);
    assert_eq!(values::<f32>(&made.unwrap()[0]), [-1.0, 2.0]);
}
