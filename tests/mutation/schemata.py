"""All mutants in one source: each site checks whether one of its mutants is on.

Only one mutant is on at a time, so the text of a mutant needs no mutants of its own, and the source
grows with the depth of its expressions, not with the number of their combinations.
"""

from dataclasses import dataclass

from sites import Mutant, Site

# `on` costs one relaxed load of an atomic. The environment names the mutant, or a file with one
# byte per mutant in which each records that it was reached, however the process ends.
MODULE = """
//! Which mutant is on.
#![allow(missing_docs, unsafe_code, clippy::all)]
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};

const UNKNOWN: u32 = u32::MAX;
const TRACED: u32 = u32::MAX - 1;
const SIZE: usize = @SIZE@;
static ACTIVE: AtomicU32 = AtomicU32::new(UNKNOWN);
static REACHED: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());

#[inline(always)]
pub fn on(id: u32) -> bool {
    let active = ACTIVE.load(Relaxed);
    if active >= TRACED { asked(id, active) } else { active == id }
}

#[cold]
#[inline(never)]
fn asked(id: u32, active: u32) -> bool {
    if active == UNKNOWN {
        begin();
        return on(id);
    }
    let reached = REACHED.load(Relaxed);
    // SAFETY: the file has SIZE bytes, more than there are mutants.
    unsafe { reached.add(id as usize).write_volatile(1) };
    false
}

fn begin() {
    let Ok(path) = std::env::var("MUTANT_TRACE") else {
        let id = std::env::var("MUTANT").ok().and_then(|id| id.parse().ok());
        ACTIVE.store(id.unwrap_or(0), Relaxed);
        return;
    };
    use std::os::fd::AsRawFd;
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    let both = libc::PROT_READ | libc::PROT_WRITE;
    let null = std::ptr::null_mut();
    // SAFETY: a new mapping of a file that has SIZE bytes.
    let map = unsafe { libc::mmap(null, SIZE, both, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    assert!(map != libc::MAP_FAILED);
    REACHED.store(map.cast(), Relaxed);
    ACTIVE.store(TRACED, Relaxed);
}
"""


@dataclass
class Span:
    """A byte range of a written file: the text of one mutant, or a whole site."""

    start: int
    end: int
    mutants: list[int]


class Writer:
    """Writes one file's source with its sites."""

    def __init__(self, source: bytes, sites: list[Site], numbers: dict[str, int]):
        self.source, self.sites, self.numbers = source, sites, numbers
        self.out, self.spans = bytearray(), []

    def write(self) -> tuple[bytes, list[Span]]:
        self.copy(0, len(self.source), 0)
        return bytes(self.out), self.spans

    def copy(self, start: int, end: int, first: int) -> int:
        """Copies a range of the source with its sites, from `first` on; the first site after it."""
        at, sites = start, self.sites
        while first < len(sites) and sites[first].end <= end:
            site = sites[first]
            self.out += self.source[at : site.start]
            first = self.site(site, first + 1)
            at = site.end
        self.out += self.source[at:end]
        return first

    def site(self, site: Site, inner: int) -> int:
        """Writes a site; the first site after it."""
        begin = len(self.out)
        mutants = [m for m in site.mutants if m.key in self.numbers]
        if not mutants:
            return self.copy(site.start, site.end, inner)
        following = getattr(self, site.form)(site, mutants, inner)
        self.spans.append(Span(begin, len(self.out), [self.numbers[m.key] for m in mutants]))
        return following

    def text(self, mutant: Mutant, before: str, after: str) -> None:
        number = self.numbers[mutant.key]
        self.out += f"{before}crate::mutant::on({number})".encode()
        begin = len(self.out)
        self.out += f"{after}{mutant.text}".encode()
        self.spans.append(Span(begin, len(self.out), [number]))

    # ---- the forms of sites ---------------------------------------------------------------------

    def value(self, site: Site, mutants: list[Mutant], inner: int) -> int:
        self.out += b"("
        following = self.statement(site, mutants, inner)
        self.out += b")"
        return following

    def statement(self, site: Site, mutants: list[Mutant], inner: int) -> int:
        for mutant in mutants:
            self.text(mutant, "if ", " { ")
            self.out += b" } else "
        self.out += b"{ "
        following = self.copy(site.start, site.end, inner)
        self.out += b" }"
        return following

    def body(self, site: Site, mutants: list[Mutant], inner: int) -> int:
        for mutant in mutants:
            self.text(mutant, " if ", " { return ")
            self.out += b"; }"
        return inner

    def guard(self, site: Site, mutants: list[Mutant], inner: int) -> int:
        self.text(mutants[0], " if !", "")
        return inner


def write(source: bytes, sites: list[Site], numbers: dict[str, int]) -> tuple[bytes, list[Span]]:
    """The source with all mutants that have a number, and the span of each in it."""
    return Writer(source, sites, numbers).write()


def module(mutants: int) -> str:
    """The source of the module that knows which of so many mutants is on."""
    return MODULE.replace("@SIZE@", str(size(mutants)))


def size(mutants: int) -> int:
    """The size of the file that records which mutants were reached: whole pages."""
    return (mutants + 1 + 4095) // 4096 * 4096
