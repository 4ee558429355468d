//! Groups whose ranks are threads of this process.

use half::f16;

use super::testing::Channels;
use super::*;
use crate::dtype::DType;

/// What each rank receives from an exchange to which it gives these elements.
fn exchanged(exchange: &Exchange, dtype: DType, given: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let ranks = Channels::group(given.len()).into_iter().zip(given);
    let begun: Vec<_> = ranks
        .map(|(transport, bytes)| {
            let (group, count) = (open(Box::new(transport)).unwrap(), bytes.len() / dtype.size());
            let (exchange, bytes) = (exchange.clone(), vec![&bytes[..]]);
            group.begin(0, Request { exchange, dtype, count, bytes }).unwrap();
            (group, count * dtype.size())
        })
        .collect();
    let finish = |(group, bytes): (Arc<Group>, usize)| {
        let (want, mut result) = (exchange.received(bytes, given.len()), Vec::new());
        group.finish(0, exchange, want, |got| result.extend_from_slice(got)).unwrap();
        result
    };
    begun.into_iter().map(finish).collect()
}

fn floats(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    values.into_iter().flat_map(f32::to_ne_bytes).collect()
}

fn element(rank: usize, i: usize) -> f32 {
    ((rank * 7919 + i * 104_729) % 1009) as f32 / 7.0 - 70.0
}

fn reduction(fold: Fold, wire: Wire) -> Exchange {
    Exchange::AllReduce { fold, wire }
}

#[test]
fn sums_are_added_in_the_order_of_ranks_at_every_size() {
    for ranks in [1, 2, 3, 5] {
        for count in [0, 1, 17, 1024, 1025, 70_001] {
            let given: Vec<_> =
                (0..ranks).map(|rank| floats((0..count).map(|i| element(rank, i)))).collect();
            let sum = |i| (1..ranks).fold(element(0, i), |sum, rank| sum + element(rank, i));
            let got = exchanged(&reduction(Fold::Sum, Wire::Dense), DType::Float32, &given);
            assert!(got.iter().all(|one| *one == floats((0..count).map(sum))), "{ranks} {count}");
            let mean = |i| sum(i) / ranks as f32;
            let got = exchanged(&reduction(Fold::Mean, Wire::Dense), DType::Float32, &given);
            assert!(got.iter().all(|one| *one == floats((0..count).map(mean))), "{ranks} {count}");
        }
    }
}

#[test]
fn halves_travel_and_the_sum_is_rounded_once() {
    let given: Vec<_> = (0..3).map(|r| floats((0..5000).map(|i| element(r, i)))).collect();
    let short = |rank, i| f16::from_f32(element(rank, i)).to_f32();
    let want = |i| f16::from_f32(short(0, i) + short(1, i) + short(2, i)).to_f32();
    let got = exchanged(&reduction(Fold::Sum, Wire::Float16), DType::Float32, &given);
    assert!(got.iter().all(|one| *one == floats((0..5000).map(want))));
}

#[test]
fn sparse_elements_give_the_dense_sum() {
    for every in [1, 2, 100, 5001] {
        let own = |rank: usize, i: usize| {
            if (i + rank).is_multiple_of(every) { element(rank, i) } else { 0.0 }
        };
        let given: Vec<_> = (0..3).map(|r| floats((0..5000).map(|i| own(r, i)))).collect();
        for fold in [Fold::Sum, Fold::Mean] {
            let [sparse, dense] = [Wire::Sparse, Wire::Dense]
                .map(|wire| exchanged(&reduction(fold, wire), DType::Float32, &given));
            assert_eq!(sparse, dense, "{every}");
        }
    }
}

/// How many bytes each of the ranks sends in an exchange to which it gives these elements.
fn sent(exchange: &Exchange, given: &[Vec<u8>]) -> Vec<u64> {
    let groups: Vec<_> =
        Channels::group(given.len()).into_iter().map(|one| open(Box::new(one)).unwrap()).collect();
    for (group, bytes) in groups.iter().zip(given) {
        let (exchange, count) = (exchange.clone(), bytes.len() / size_of::<f32>());
        let request = Request { exchange, dtype: DType::Float32, count, bytes: vec![&bytes[..]] };
        group.begin(0, request).unwrap();
    }
    let finish = |group: &Arc<Group>| {
        let want = exchange.received(given[0].len(), given.len());
        group.finish(0, exchange, want, |_| ()).unwrap();
        group.bytes_sent()
    };
    groups.iter().map(finish).collect()
}

#[test]
fn bytes_are_counted_once_for_each_rank_that_receives_them() {
    let (small, large) = (floats((0..12).map(|i| i as f32)), floats((0..12_000).map(|_| 1.0)));
    assert_eq!(sent(&Exchange::AllGather { of: 0 }, &vec![small.clone(); 3]), [2 * 48; 3]);
    assert_eq!(sent(&Exchange::AllToAll, &vec![small.clone(); 3]), [2 * 16; 3]);
    assert_eq!(sent(&Exchange::Broadcast { root: 1 }, &vec![small; 3]), [0, 2 * 48, 0]);
    let reduce = reduction(Fold::Sum, Wire::Dense);
    assert_eq!(sent(&reduce, &vec![large; 3]), [4 * 16_000; 3]);
}

#[test]
fn one_element_in_a_hundred_takes_less_than_three_hundredths_of_the_bytes() {
    let random = |rank: usize, i: usize| ((i * 2_654_435_761 + rank * 97) >> 7).is_multiple_of(100);
    for ranks in [2, 4] {
        let own = |rank, i| if random(rank, i) { element(rank, i) + 200.0 } else { 0.0 };
        let given: Vec<_> = (0..ranks).map(|r| floats((0..100_000).map(|i| own(r, i)))).collect();
        let [sparse, dense] =
            [Wire::Sparse, Wire::Dense].map(|wire| sent(&reduction(Fold::Sum, wire), &given));
        let least = sparse.iter().zip(&dense).all(|(sparse, dense)| sparse * 100 <= dense * 3);
        assert!(least && sparse[0] > 0, "{ranks}: {sparse:?} of {dense:?}");
    }
}

#[test]
fn all_ranks_get_the_cost_that_rank_0_has_measured() {
    let groups: Vec<_> =
        Channels::group(3).into_iter().map(|one| open(Box::new(one)).unwrap()).collect();
    let costs: Vec<Cost> = std::thread::scope(|scope| {
        let begun: Vec<_> =
            groups.iter().map(|group| scope.spawn(|| group.measure().unwrap())).collect();
        begun.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(costs[0].byte > 0.0 && costs[0].latency >= 0.0);
    assert_eq!(costs, [costs[0]; 3]);
}

#[test]
fn integers_wrap_and_the_largest_is_nan_if_one_is() {
    let ints = |values: [i8; 2]| values.map(|v| v as u8).to_vec();
    let given = [ints([127, -3]), ints([1, -4])];
    let got = |fold| exchanged(&reduction(fold, Wire::Dense), DType::Int8, &given);
    assert_eq!(got(Fold::Sum), [ints([-128, -7]), ints([-128, -7])]);
    assert_eq!(got(Fold::Min)[0], ints([1, -4]));
    let given = [floats([1.0, f32::NAN]), floats([f32::NAN, 2.0]), floats([3.0, 4.0])];
    let got = exchanged(&reduction(Fold::Max, Wire::Dense), DType::Float32, &given);
    let read = |bytes: &[u8]| f32::from_ne_bytes(bytes.try_into().unwrap());
    assert!(got.iter().all(|one| one.chunks_exact(4).all(|bytes| read(bytes).is_nan())));
}

#[test]
fn parts_are_gathered_scattered_and_sent() {
    let given: Vec<Vec<u8>> = (0..3).map(|rank| (0..6).map(|i| 10 * rank + i).collect()).collect();
    let got = |exchange| exchanged(&exchange, DType::UInt8, &given);
    assert!(got(Exchange::AllGather { of: 0 }).iter().all(|one| *one == given.concat()));
    assert_eq!(got(Exchange::AllToAll)[1], [2, 3, 12, 13, 22, 23]);
    assert_eq!(got(Exchange::ReduceScatter { fold: Fold::Sum })[2], [42, 45]);
    assert!(got(Exchange::Broadcast { root: 2 }).iter().all(|one| *one == given[2]));
    let none = exchanged(&Exchange::Barrier, DType::UInt8, &[Vec::new(), Vec::new()]);
    assert!(none.iter().all(Vec::is_empty));
}

fn ask(bytes: &[u8]) -> Request<Vec<&[u8]>> {
    let (exchange, dtype) = (Exchange::AllGather { of: 0 }, DType::UInt8);
    Request { exchange, dtype, count: bytes.len(), bytes: vec![bytes] }
}

fn error(done: crate::Result<()>) -> String {
    done.unwrap_err().to_string()
}

#[test]
fn several_parts_are_given_at_once_and_zeros_after_them() {
    let groups: Vec<_> =
        Channels::group(2).into_iter().map(|one| open(Box::new(one)).unwrap()).collect();
    let exchange = Exchange::ReduceScatter { fold: Fold::Sum };
    for (rank, group) in (1..).zip(&groups) {
        let parts: [&[u8]; 3] = [&[rank], &[], &[2 * rank, 3 * rank]];
        let (exchange, dtype) = (exchange.clone(), DType::UInt8);
        group.begin(0, Request { exchange, dtype, count: 4, bytes: parts.to_vec() }).unwrap();
    }
    for (group, want) in groups.iter().zip([[3, 6], [9, 0]]) {
        group.finish(0, &exchange, 2, |got| assert_eq!(got, want)).unwrap();
    }
}

#[test]
fn a_slot_gives_the_result_of_what_was_started_last() {
    let groups: Vec<_> =
        Channels::group(2).into_iter().map(|one| open(Box::new(one)).unwrap()).collect();
    let finish = |group: &Group, want: &[u8]| {
        group.finish(1, &Exchange::AllGather { of: 0 }, 2, |got| assert_eq!(got, want)).unwrap();
    };
    groups[0].begin(1, ask(&[1])).unwrap();
    let begin_again = || groups[0].begin(1, ask(&[7]));
    let other = std::thread::scope(|scope| scope.spawn(begin_again).join().unwrap());
    assert!(error(other).contains("another thread"));
    groups[0].begin(1, ask(&[2])).unwrap();
    for value in [3, 4] {
        groups[1].begin(value, ask(&[value as u8])).unwrap();
    }
    finish(&groups[0], &[2, 4]);
    groups[1].begin(1, ask(&[5])).unwrap();
    let other = || groups[0].begin(1, ask(&[6]));
    std::thread::scope(|scope| scope.spawn(other).join().unwrap().unwrap());
    groups.iter().for_each(|group| finish(group, &[6, 5]));
}

#[test]
fn a_slot_that_is_forgotten_is_free_for_another_thread() {
    let groups: Vec<_> =
        Channels::group(2).into_iter().map(|one| open(Box::new(one)).unwrap()).collect();
    groups[0].begin(1, ask(&[1])).unwrap();
    groups[0].forget(1);
    let other = || groups[0].begin(1, ask(&[2]));
    std::thread::scope(|scope| scope.spawn(other).join().unwrap().unwrap());
    groups[1].begin(0, ask(&[3])).unwrap();
    groups[1].begin(1, ask(&[4])).unwrap();
    for group in &groups {
        let take = |got: &[u8]| assert_eq!(got, [2, 4]);
        group.finish(1, &Exchange::AllGather { of: 0 }, 2, take).unwrap();
    }
}

#[test]
fn ranks_that_come_with_other_steps_are_told_in_what_they_differ() {
    let groups: Vec<_> =
        Channels::group(3).into_iter().map(|one| open(Box::new(one)).unwrap()).collect();
    let step = |name| {
        Arc::new(Signature::new(7, vec![("add", "net.py:1".into()), (name, "net.py:2".into())]))
    };
    let run = |steps: [Option<&'static str>; 3]| {
        for (group, name) in groups.iter().zip(steps) {
            name.into_iter().for_each(|name| group.enter(&step(name)));
            group.begin(0, ask(&[1])).unwrap();
        }
        let finish =
            |group: &Arc<Group>| group.finish(0, &Exchange::AllGather { of: 0 }, 3, |_| ());
        groups.iter().map(finish).collect::<Vec<_>>()
    };
    assert!(run([Some("tanh"), None, Some("tanh")]).iter().all(Result::is_ok));
    let errors: Vec<String> =
        run([Some("tanh"), None, Some("relu")]).into_iter().map(error).collect();
    let words = |name| format!("a recorded step whose operation 1 is {name} (net.py:2)");
    let (tanh, relu) = (words("tanh"), words("relu"));
    let begin = "exchange: all_gather: rank";
    assert_eq!(errors[0], format!("{begin} 2 came with {relu}, this one with {tanh}"));
    assert_eq!(errors[1], format!("{begin} 0 failed: it came with {tanh}, rank 2 with {relu}"));
    assert_eq!(errors[2], format!("{begin} 0 came with {tanh}, this one with {relu}"));
    assert!(run([None; 3]).iter().all(Result::is_ok), "a step begins only once");
}

#[test]
fn what_is_wrong_is_an_error_and_a_closed_group_takes_nothing() {
    let mut ranks = Channels::group(2);
    ranks[0].hurts = Some("it hurts");
    let group = open(Box::new(ranks.remove(0))).unwrap();
    let finish = || error(group.finish(1, &Exchange::AllGather { of: 0 }, 2, |_| ()));
    assert_eq!(finish(), "exchange: all_gather: it was not started");
    group.begin(1, ask(&[1])).unwrap();
    assert_eq!(finish(), "exchange: all_gather: rank 1 failed: it hurts");
    assert!(super::group(group.number()).is_ok());
    group.close();
    assert!(error(group.begin(2, ask(&[1]))).contains("closed"));
    let number = group.number();
    drop(group);
    assert!(super::group(number).is_err());
}
