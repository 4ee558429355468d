//! Float32 elements most of which are zero: the number of the others, their distances as integers
//! of 7 bits a byte (LEB128), and their values.

/// Bytes of an element.
const BYTES: usize = size_of::<f32>();
/// Bytes of the number of elements.
const HEADER: usize = size_of::<u64>();
/// The bit of a byte that says that the integer goes on.
const MORE: u8 = 0x80;

/// The elements that are not zero, in short form.
pub fn encode(elements: &[u8]) -> Vec<u8> {
    let (mut places, mut values, mut next) = (Vec::new(), Vec::new(), 0);
    for (place, bytes) in elements.chunks_exact(BYTES).enumerate() {
        if f32::from_ne_bytes(bytes.try_into().expect("an element's bytes")) != 0.0 {
            push(&mut places, place - next);
            values.extend_from_slice(bytes);
            next = place + 1;
        }
    }
    let count = (values.len() / BYTES) as u64;
    [&count.to_ne_bytes()[..], &places, &values].concat()
}

fn push(places: &mut Vec<u8>, mut distance: usize) {
    while distance >= MORE as usize {
        places.push(distance as u8 | MORE);
        distance >>= 7;
    }
    places.push(distance as u8);
}

/// Adds encoded elements to `sums`. `None` if they are no encoding of so many elements.
pub fn add(encoded: &[u8], sums: &mut [u8]) -> Option<()> {
    let (count, rest) = encoded.split_at_checked(HEADER)?;
    let count = usize::try_from(u64::from_ne_bytes(count.try_into().ok()?)).ok()?;
    let (places, values) = split(rest, count)?;
    let (mut bytes, mut place) = (places.iter(), 0usize);
    for value in values.chunks_exact(BYTES) {
        place = place.checked_add(pull(&mut bytes)?)?;
        let at = place.checked_mul(BYTES)?;
        let sum: &mut [u8; BYTES] = sums.get_mut(at..at.checked_add(BYTES)?)?.try_into().ok()?;
        let more = f32::from_ne_bytes(value.try_into().ok()?);
        *sum = (f32::from_ne_bytes(*sum) + more).to_ne_bytes();
        place += 1;
    }
    Some(())
}

/// The distances and the values of so many elements.
fn split(rest: &[u8], count: usize) -> Option<(&[u8], &[u8])> {
    let mut ends = (1usize..).zip(rest).filter(|(_, byte)| **byte & MORE == 0).map(|(end, _)| end);
    let end = if count == 0 { 0 } else { ends.nth(count - 1)? };
    let values = rest.get(end..end.checked_add(count.checked_mul(BYTES)?)?)?;
    Some((&rest[..end], values))
}

fn pull<'a>(bytes: &mut impl Iterator<Item = &'a u8>) -> Option<usize> {
    let mut distance = 0usize;
    for shift in (0..usize::BITS).step_by(7) {
        let byte = bytes.next()?;
        distance |= usize::from(byte & !MORE).checked_shl(shift)?;
        if byte & MORE == 0 {
            return Some(distance);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(elements: &[f32]) -> Vec<u8> {
        elements.iter().flat_map(|x| x.to_ne_bytes()).collect()
    }

    proptest! {
        #[test]
        fn what_is_encoded_and_added_to_zeros_is_the_same(
            kept in prop::collection::vec((0usize..1000, any::<f32>()), 0..20),
            len in 0usize..1001,
        ) {
            let mut elements = vec![0.0f32; len];
            for (place, value) in kept.into_iter().filter(|(place, _)| *place < len) {
                elements[place] = if value.is_nan() { 1.0 } else { value + 0.0 };
            }
            let (encoded, mut sums) = (encode(&bytes(&elements)), bytes(&vec![0.0; len]));
            add(&encoded, &mut sums).unwrap();
            prop_assert_eq!(sums, bytes(&elements));
        }

        #[test]
        fn any_bytes_are_added_or_refused(
            encoded in prop::collection::vec(any::<u8>(), 0..40), count in 0u64..6, len in 0usize..9,
        ) {
            let mut sums = bytes(&vec![0.0; len]);
            let given = [&count.to_ne_bytes()[..], &encoded].concat();
            let fits = add(&given, &mut sums).is_some();
            prop_assert!(!fits || count as usize <= len);
            prop_assert!(add(&encoded[..encoded.len().min(7)], &mut sums).is_none());
        }
    }

    #[test]
    fn a_distance_takes_a_byte_for_every_seven_bits() {
        let mut elements = vec![0.0f32; 20_000];
        elements[19_000] = 1.0;
        assert_eq!(encode(&bytes(&elements)).len(), HEADER + 3 + BYTES);
        elements[0] = 2.0;
        assert_eq!(encode(&bytes(&elements)).len(), HEADER + 1 + 3 + 2 * BYTES);
    }
}
