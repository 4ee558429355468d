//! Sorting the entries of one row, or the least of them.

use super::keys::Entry;

/// Rows from this length on are sorted digit by digit, shorter ones by comparisons.
const LONG: usize = 1024;
/// The number of bits of a digit, whose counts stay in the cache.
const DIGIT: u32 = 11;
/// The number of digits of the longest key.
const DIGITS: usize = 6;
/// At least this many entries are held before the least are selected from them.
const FEW: usize = 32;
/// Entries are compared with a bound in groups, since the compiler vectorises that.
const GROUP: usize = 32;

/// The lengths of the two arrays that [`first`] needs for `count` of `length` entries.
pub fn room<E: Entry>(length: usize, count: usize) -> [usize; 2] {
    let held = if count == length { length } else { (2 * count).max(FEW) + GROUP };
    [held, if is_long(length, count) { held } else { 0 }]
}

/// Whether all are sorted, and by their digits, which keeps the order of places that they begin in;
/// selecting some of them does not.
fn is_long(length: usize, count: usize) -> bool {
    count == length && length >= LONG
}

/// The `count` least of `length` entries, in order.
#[inline(always)]
pub fn first<'a, E: Entry>(
    length: usize,
    count: usize,
    entry: impl Fn(usize) -> E,
    held: &'a mut [E],
    spare: &'a mut [E],
) -> &'a [E] {
    if count == length {
        held.iter_mut().enumerate().for_each(|(i, to)| *to = entry(i));
    } else {
        select(length, count, entry, held);
    }
    let held = &mut held[..count];
    if !is_long(length, count) {
        held.sort_unstable();
        return held;
    }
    sort_long(held, &mut spare[..count])
}

/// Moves the `count` least of `length` entries to the front of `held`, in any order. Once `count`
/// are known, only what is less than the greatest of them is looked at.
#[inline(always)]
fn select<E: Entry>(length: usize, count: usize, entry: impl Fn(usize) -> E, held: &mut [E]) {
    if count == 0 {
        return;
    }
    let (mut have, mut bound, mut group) = (0, E::new(u64::MAX, usize::MAX), [E::default(); GROUP]);
    for start in (0..length).step_by(GROUP) {
        let group = &mut group[..GROUP.min(length - start)];
        group.iter_mut().enumerate().for_each(|(i, to)| *to = entry(start + i));
        if !group.iter().fold(false, |any, entry| any | (*entry < bound)) {
            continue;
        }
        if have + GROUP > held.len() {
            bound = *held[..have].select_nth_unstable(count - 1).1;
            have = count;
        }
        for entry in group {
            // Without a branch, which would be hard to predict.
            held[have] = *entry;
            have += usize::from(*entry < bound);
        }
    }
    if have > count {
        held[..have].select_nth_unstable(count - 1);
    }
}

/// Sorts from the lowest digit to the highest, back and forth between two arrays; returns the one
/// that has the result.
fn sort_long<'a, E: Entry>(mut from: &'a mut [E], mut to: &'a mut [E]) -> &'a [E] {
    let mut counts = [[0u32; 1 << DIGIT]; DIGITS];
    let digits = E::KEY_BITS.div_ceil(DIGIT) as usize;
    if from.len() > u32::MAX as usize {
        from.sort_unstable();
        return from;
    }
    for entry in from.iter() {
        for (d, counts) in (0..digits as u32).zip(&mut counts) {
            counts[entry.digit(d * DIGIT, DIGIT)] += 1;
        }
    }
    for (d, counts) in (0..digits as u32).zip(&mut counts) {
        let same = from[0].digit(d * DIGIT, DIGIT);
        if counts[same] as usize == from.len() {
            continue; // all have the same digit
        }
        let mut start = 0;
        for count in counts.iter_mut() {
            start += std::mem::replace(count, start);
        }
        for entry in from.iter() {
            let place = &mut counts[entry.digit(d * DIGIT, DIGIT)];
            to[*place as usize] = *entry;
            *place += 1;
        }
        std::mem::swap(&mut from, &mut to);
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries<E: Entry>(length: usize, keys: u64) -> Vec<E> {
        let mixed = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        (0..length).map(|i| E::new(mixed(i) % keys, i)).collect()
    }

    fn check<E: Entry + std::fmt::Debug>(length: usize, count: usize, keys: u64) {
        let given = entries::<E>(length, keys);
        let [held, spare] = room::<E>(length, count);
        let (mut held, mut spare) = (vec![E::default(); held], vec![E::default(); spare]);
        let got = first(length, count, |i| given[i], &mut held, &mut spare).to_vec();
        let mut want = given;
        want.sort();
        assert_eq!(got, want[..count]);
    }

    #[test]
    fn any_number_of_entries_in_any_order() {
        for length in [0usize, 1, 2, 127, 128, 1023, 1024, 5000] {
            for count in [0, 1, length / 3, length.saturating_sub(1), length] {
                let count = count.min(length);
                for keys in [1, 7, 1 << 20, 1 << 32] {
                    check::<u64>(length, count, keys);
                    check::<u128>(length, count, keys << 30);
                }
            }
        }
    }
}
