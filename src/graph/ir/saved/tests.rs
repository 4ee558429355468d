use proptest::prelude::*;
use smallvec::smallvec;

use super::*;
use crate::device::cpu;
use crate::graph::Graph;
use crate::graph::Role::*;
use crate::graph::testing::{Empty, Recorder, kernels};
use crate::ops::copy::Copy;
use crate::ops::gemm::Matmul;
use crate::ops::region::{Link, Region};
use crate::ops::unary::{Unary, UnaryFn};
use crate::ops::{Real, View};
use crate::view::SliceRange;

/// Products, views, a state, a fused operation and an attribute of these bits.
fn recorded(bits: u64) -> Recorder {
    let mut recorder = Recorder::default();
    let roles = [Argument, Captured, Temporary, Temporary, Slot];
    let [x, w, a, b, y] = roles.map(|role| recorder.tensor(role, 16));
    let matrix = |view: &View| view.reshape(&[4, 4][..].into()).unwrap().unwrap();
    let [columns, rows] = [matrix(&x).permute(&[1, 0]).unwrap(), matrix(&w)];
    recorder.push(Matmul, &[columns, rows], &[matrix(&a)]);
    let half = [SliceRange { start: 8, count: 8, step: 1 }];
    let [from, to] = [&a, &b].map(|view| view.slice(&half).unwrap());
    let f = UnaryFn::LeakyRelu { a: Real(f64::from_bits(bits)) };
    recorder.push(Unary { f: f.clone() }, std::slice::from_ref(&a), std::slice::from_ref(&b));
    recorder.negate(&from, &to);
    let links = vec![Link { kind: Unary { f }.into(), operands: smallvec![0] }];
    let region = Region::of_links(1, links, vec![0]);
    recorder.push(region, std::slice::from_ref(&b), std::slice::from_ref(&y));
    recorder.add(&w, &b, &w);
    recorder
}

fn written(recorder: &Recorder) -> Vec<u8> {
    recorder.queue.to_bytes(&recorder.roles).unwrap()
}

fn read(bytes: &[u8]) -> Result<(Queue, Vec<Role>)> {
    Queue::from_bytes(cpu::device(), bytes)
}

/// The graph of a queue, as text.
fn shown(queue: &Queue, roles: &[Role]) -> String {
    let known = Default::default();
    let graph = Graph::new(queue.clone(), roles.to_vec(), &kernels(queue, &known)).unwrap();
    graph.to_json().to_string()
}

#[test]
fn a_recording_is_read_as_it_was_written() {
    let recorder = recorded(0.1f64.to_bits());
    let (queue, roles) = read(&written(&recorder)).unwrap();
    assert_eq!(shown(&queue, &roles), shown(&recorder.queue, &recorder.roles));
    assert_eq!(queue.to_bytes(&roles).unwrap(), written(&recorder));
    assert_eq!(read(&written(&Recorder::default())).unwrap().0.ops().len(), 0);
}

#[test]
fn user_code_is_not_written() {
    let mut recorder = Recorder::default();
    let [x, y] = [Argument, Slot].map(|role| recorder.tensor(role, 4));
    let like = Empty { kind: Copy.into(), updates: false, host: true, scratch: 0 };
    recorder.push_empty(&like, &[x], &[y]);
    let error = recorder.queue.to_bytes(&recorder.roles).unwrap_err();
    let want = "a saved recording: copy runs user code, or exchanges with other processes";
    assert_eq!(error.to_string(), want);
}

#[test]
fn blocks_that_nothing_uses_are_few() {
    let of = |count: usize| {
        let blocks = vec![(0, Temporary); count];
        let saved = Saved::<Meta> { metas: vec![], calls: vec![], blocks, ops: vec![] };
        let mut body = Vec::new();
        ciborium::into_writer(&saved, &mut body).unwrap();
        read(&sealed(VERSION, &body)).map(|(queue, _)| queue.blocks().len())
    };
    assert_eq!(of(100).unwrap(), 100);
    let error = of(MOST_UNUSED + 1).unwrap_err().to_string();
    assert_eq!(error, "a saved recording: it has many more blocks than operations use");
}

#[test]
fn bytes_of_another_kind_or_version_are_refused() {
    let bytes = written(&recorded(0));
    let said = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert_eq!(said(b"singa"), "a saved recording: the bytes are no recording");
    assert_eq!(said(&[0; 100]), "a saved recording: the bytes are no recording");
    let other = sealed(VERSION + 1, &bytes[HEADER..]);
    assert!(said(&other).contains("version 3, and this is version 2"), "{}", said(&other));
    let longer = sealed(VERSION, &[&bytes[HEADER..], &[0]].concat());
    assert_eq!(said(&longer), "a saved recording: more follows it");
}

/// A recording whose parts were changed before it was written.
fn changed(change: impl Fn(&mut Saved<Meta>)) -> Result<(Queue, Vec<Role>)> {
    let bytes = written(&recorded(0));
    let mut saved: Saved<Meta> = ciborium::from_reader(&bytes[HEADER..]).unwrap();
    change(&mut saved);
    let mut body = Vec::new();
    ciborium::into_writer(&saved, &mut body).unwrap();
    read(&sealed(VERSION, &body))
}

#[test]
fn what_could_not_have_been_recorded_is_refused() {
    assert!(changed(|_| ()).is_ok());
    let changes: [fn(&mut Saved<Meta>); 14] = [
        |saved| saved.blocks[0].0 = 60,
        |saved| saved.blocks[0].0 = usize::MAX,
        |saved| saved.blocks.truncate(4),
        |saved| saved.ops[0].0 = 9,
        |saved| saved.ops[0].1[0].0 = 9,
        |saved| saved.ops[0].1[0].1 = 1,
        |saved| saved.ops[0].1[0].1 = usize::MAX,
        |saved| saved.ops[0].1.truncate(1),
        |saved| saved.ops[0].2.push((0, 0)),
        |saved| saved.metas[0].shape = [3, 4][..].into(),
        |saved| saved.metas[0].strides[0] = isize::MAX / 4,
        |saved| saved.metas[0].strides[0] = -1,
        |saved| saved.metas[0].strides.truncate(1),
        |saved| saved.calls[0].1[0] = 9,
    ];
    for (n, change) in changes.into_iter().enumerate() {
        let refused = changed(change).map(drop).unwrap_err();
        assert!(!matches!(refused, Error::Internal { .. }), "{n}: {refused}");
    }
}

proptest! {
    #[test]
    fn attributes_keep_their_bits(bits in prop_oneof![
        any::<u64>(),
        any::<f64>().prop_map(f64::to_bits),
        any::<u32>().prop_map(|payload| f64::NAN.to_bits() | u64::from(payload)),
        Just((-0.0f64).to_bits()),
        Just(f64::NEG_INFINITY.to_bits()),
    ]) {
        let (recorder, kinds) = (recorded(bits), |queue: &Queue| -> Vec<Kind> {
            queue.ops().iter().map(|op| op.call.kind.clone()).collect()
        });
        let (queue, _) = read(&written(&recorder)).unwrap();
        prop_assert_eq!(kinds(&queue), kinds(&recorder.queue));
    }

    #[test]
    fn damaged_bytes_are_refused(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1..=255u8), 1..4),
        length in any::<prop::sample::Index>(),
    ) {
        let whole = written(&recorded(0));
        let mut damaged = whole.clone();
        flips.iter().for_each(|(at, bits)| *at.get_mut(&mut damaged) ^= bits);
        prop_assert!(damaged == whole || read(&damaged).is_err());
        prop_assert!(read(&whole[..length.index(whole.len())]).is_err());
        // Behind a checksum that fits, what is damaged may be sound, but never stops the process.
        if let Ok((queue, roles)) = read(&sealed(VERSION, &damaged[HEADER..])) {
            prop_assert!(queue.to_bytes(&roles).is_ok());
        }
    }
}
