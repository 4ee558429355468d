//! Instruction sets, detected once at run time. Loops are written once, as a [`Body`], and compiled
//! for each set; the compiler vectorises them.
//!
//! Results may depend on the instruction set (a fused multiply-add does not round the product
//! before the addition) but never on an element's position in a loop.
#![allow(unsafe_code)]

use std::sync::OnceLock;

/// An instruction set, ordered from the least capable to the most.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Isa {
    /// The minimum of the target: SSE2, or NEON.
    Baseline,
    /// 256-bit vectors with fused multiply-add.
    Avx2,
    /// 512-bit vectors (F, BW, DQ and VL).
    Avx512,
}

impl Isa {
    /// All sets, the least capable first.
    pub const ALL: [Isa; 3] = [Isa::Baseline, Isa::Avx2, Isa::Avx512];

    /// The set that kernels use: the best that the machine has, or a lesser one if the environment
    /// variable `SINGA_RS_ISA` is `baseline` or `avx2`.
    pub fn active() -> Isa {
        static ACTIVE: OnceLock<Isa> = OnceLock::new();
        *ACTIVE.get_or_init(|| Isa::wanted().min(Isa::best()))
    }

    /// Whether the machine supports it.
    pub fn is_available(self) -> bool {
        self <= Isa::best()
    }

    fn wanted() -> Isa {
        match std::env::var("SINGA_RS_ISA").as_deref() {
            Ok("baseline") => Isa::Baseline,
            Ok("avx2") => Isa::Avx2,
            Ok("avx512") | Err(_) => Isa::Avx512,
            Ok(other) => {
                log::warn!("SINGA_RS_ISA={other} is ignored: want baseline, avx2 or avx512");
                Isa::Avx512
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn best() -> Isa {
        use std::is_x86_feature_detected as has;
        let avx2 = has!("avx2") && has!("fma") && has!("f16c");
        let avx512 = has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
        match (avx2, avx512) {
            (true, true) => Isa::Avx512,
            (true, false) => Isa::Avx2,
            _ => Isa::Baseline,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn best() -> Isa {
        Isa::Baseline
    }
}

/// The guarantees of an instruction set that code is compiled for. A type, so that the choice is
/// made at compile time.
pub trait Level: Copy + Send + Sync + 'static {
    /// Whether a fused multiply-add is one instruction.
    const FMA: bool;
}

/// [`Isa::Baseline`] as a type.
#[derive(Clone, Copy)]
pub struct Baseline;

/// [`Isa::Avx2`] and [`Isa::Avx512`] as a type.
#[derive(Clone, Copy)]
pub struct Fused;

impl Level for Baseline {
    const FMA: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));
}

impl Level for Fused {
    const FMA: bool = true;
}

/// Code to be compiled for each instruction set.
pub trait Body {
    /// The type of the result.
    type Output;

    /// Runs the code. Implementations, and all their callees, must be `#[inline(always)]`: anything
    /// not inlined is compiled for the baseline.
    fn run<L: Level>(self) -> Self::Output;
}

/// Runs `body` as compiled for `isa`, which must be available.
#[inline]
pub fn run<B: Body>(isa: Isa, body: B) -> B::Output {
    debug_assert!(isa.is_available());
    match isa {
        Isa::Baseline => body.run::<Baseline>(),
        // SAFETY: the machine has the instructions: `Isa::active` and callers check first.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { avx2(body) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { avx512(body) },
        #[cfg(not(target_arch = "x86_64"))]
        Isa::Avx2 | Isa::Avx512 => body.run::<Baseline>(),
    }
}

/// The instruction sets that code is compiled for, as a type, so that nothing else is compiled.
pub trait Reach: 'static {
    /// Runs `body` as compiled for `isa`, or for a lesser set.
    fn run<B: Body>(isa: Isa, body: B) -> B::Output;
}

/// Every instruction set.
pub struct Every;

/// Every instruction set but the one with the widest vectors, which gain least where elements are
/// wide themselves.
pub struct Narrow;

/// The baseline alone.
pub struct Least;

impl Reach for Every {
    #[inline]
    fn run<B: Body>(isa: Isa, body: B) -> B::Output {
        run(isa, body)
    }
}

impl Reach for Narrow {
    #[inline]
    fn run<B: Body>(isa: Isa, body: B) -> B::Output {
        match isa.min(Isa::Avx2) {
            // SAFETY: the machine has the instructions, if it has this set or a greater one.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { avx2(body) },
            _ => body.run::<Baseline>(),
        }
    }
}

impl Reach for Least {
    /// A function of its own, as for the other sets: within its caller, loops have fewer registers.
    #[inline(never)]
    fn run<B: Body>(_isa: Isa, body: B) -> B::Output {
        body.run::<Baseline>()
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn avx2<B: Body>(body: B) -> B::Output {
    body.run::<Fused>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")]
fn avx512<B: Body>(body: B) -> B::Output {
    body.run::<Fused>()
}
