//! Best fit on a skyline (after Sekiyama et al., "Profile-guided memory optimization for deep
//! neural networks", 2018): the lowest stretch of time takes the piece that fits it best.

use super::Piece;

/// A stretch of time, end excluded, and the height up to which memory is taken during it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stretch {
    start: u32,
    end: u32,
    height: usize,
}

/// The offsets of all pieces; where several fit, the one with the largest `key` is placed first.
pub(super) fn place(pieces: &[Piece], key: impl Fn(&Piece) -> usize) -> Vec<usize> {
    let mut offsets = vec![0; pieces.len()];
    let mut left: Vec<u32> = (0..pieces.len() as u32).collect();
    let mut sky = vec![Stretch { start: 0, end: pieces.len() as u32, height: 0 }];
    while !left.is_empty() {
        let lowest = (0..sky.len()).min_by_key(|&s| sky[s].height).unwrap_or(0);
        let stretch = sky[lowest];
        let Some(at) = best(pieces, &left, stretch, &key) else {
            lift(&mut sky, lowest);
            continue;
        };
        let p = left.remove(at) as usize;
        offsets[p] = stretch.height;
        build(&mut sky, lowest, &pieces[p]);
    }
    offsets
}

/// The position in `left` of the piece to put on a stretch; `left` is in the order in which pieces
/// begin.
fn best(
    pieces: &[Piece],
    left: &[u32],
    stretch: Stretch,
    key: impl Fn(&Piece) -> usize,
) -> Option<usize> {
    let piece = |at: usize| &pieces[left[at] as usize];
    let from = left.partition_point(|&p| pieces[p as usize].first < stretch.start);
    let mut best = None;
    for at in from..left.len() {
        if piece(at).first >= stretch.end {
            break;
        }
        let value = (key(piece(at)), piece(at).size);
        if piece(at).last < stretch.end && best.is_none_or(|(most, _)| value > most) {
            best = Some((value, at));
        }
    }
    best.map(|(_, at)| at)
}

/// Puts a piece on a stretch, which may leave stretches before and after it.
fn build(sky: &mut Vec<Stretch>, at: usize, piece: &Piece) {
    let (below, end) = (sky[at], piece.last + 1);
    let height = below.height + piece.size;
    let parts = [
        Stretch { end: piece.first, ..below },
        Stretch { start: piece.first, end, height },
        Stretch { start: end, ..below },
    ];
    sky.splice(at..=at, parts.into_iter().filter(|part| part.start < part.end));
    let built = at + (below.start < piece.first) as usize;
    join(sky, built);
}

/// Raises a stretch that no piece fits to the height of its lower neighbour.
fn lift(sky: &mut Vec<Stretch>, at: usize) {
    let before = at.checked_sub(1).map(|b| sky[b].height);
    let after = sky.get(at + 1).map(|a| a.height);
    if let Some(height) = before.into_iter().chain(after).min() {
        sky[at].height = height;
        join(sky, at);
    }
}

/// Merges a stretch with neighbours of the same height.
fn join(sky: &mut Vec<Stretch>, at: usize) {
    if sky.get(at + 1).is_some_and(|after| after.height == sky[at].height) {
        sky[at].end = sky.remove(at + 1).end;
    }
    if at > 0 && sky[at - 1].height == sky[at].height {
        sky[at - 1].end = sky.remove(at).end;
    }
}
