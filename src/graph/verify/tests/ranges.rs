//! Checks ranges against a model with a value for each byte.

use std::convert::Infallible;
use std::ops::Range;

use proptest::prelude::*;

use super::super::ranges::Ranges;

const BYTES: usize = 24;

/// By byte: its value, if it is set.
type Bytes = [Option<u32>; BYTES];

/// The contents of a range, collected part by part.
fn told(ranges: &Ranges<u32>, range: Range<usize>) -> Vec<Option<u32>> {
    let mut bytes = Vec::new();
    let show = |part: Range<usize>, value: Option<&u32>| {
        assert_eq!(part.start, range.start + bytes.len(), "parts come in order, without a gap");
        bytes.extend(part.map(|_| value.copied()));
        Ok::<_, Infallible>(())
    };
    ranges.parts(range.clone(), show).unwrap();
    bytes
}

fn shape(ranges: &Ranges<u32>) -> &'static str {
    match ranges {
        Ranges::Nothing => "nothing",
        Ranges::One(..) => "one",
        Ranges::Many(_) => "many",
    }
}

proptest! {
    #[test]
    fn each_byte_has_the_value_it_was_given_last(
        steps in prop::collection::vec((0..BYTES, 0..=BYTES, any::<bool>()), 1..12),
        looks in prop::collection::vec((0..BYTES, 0..=BYTES), 4),
    ) {
        let (mut ranges, mut bytes) = (Ranges::Nothing, [None; BYTES] as Bytes);
        for (n, &(start, end, sets)) in (1u32..).zip(&steps) {
            let range = start..end.max(start);
            if sets {
                ranges.set(range.clone(), n);
                bytes[range].fill(Some(n));
            } else {
                let mut change = |value: &mut u32| {
                    *value += 100;
                    Ok::<_, Infallible>(())
                };
                ranges.update(range.clone(), &mut change).unwrap();
                bytes[range].iter_mut().for_each(|b| *b = Some(b.unwrap_or_default() + 100));
            }
            for &(start, end) in looks.iter().chain([&(0, BYTES)]) {
                let range = start..end.max(start);
                prop_assert_eq!(told(&ranges, range.clone()), &bytes[range]);
            }
        }
    }
}

/// Most memories are set repeatedly as a whole, which has to stay fast.
#[test]
fn what_is_set_as_one_stays_one() {
    let mut ranges = Ranges::Nothing;
    let add = |ranges: &mut Ranges<u32>, range| {
        let change = |value: &mut u32| {
            *value += 1;
            Ok::<_, Infallible>(())
        };
        ranges.update(range, change).unwrap();
        shape(ranges)
    };
    assert_eq!(
        (shape(&ranges), add(&mut ranges, 4..8), add(&mut ranges, 4..8)),
        ("nothing", "one", "one")
    );
    for range in [4..8, 2..8, 2..9] {
        ranges.set(range, 7);
        assert_eq!(shape(&ranges), "one");
    }
    assert_eq!(add(&mut ranges, 3..9), "many");
}
